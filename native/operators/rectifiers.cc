// Relatives of Relu and Sigmoid, smooth ones, and Clip, with their gradients.
#include <cmath>
#include <vector>

#include "core/registry.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

using kernels::Unary;

Parameters alpha(const Arguments& args) { return {args.real("alpha"), 0}; }
Parameters alpha_beta(const Arguments& args) { return {args.real("alpha"), args.real("beta")}; }
Parameters alpha_scale(const Arguments& args) { return {args.real("alpha"), args.real("scale")}; }
Parameters min_max(const Arguments& args) { return {args.real("min"), args.real("max")}; }
Parameters zero_to_n(const Arguments& args) { return {0, args.real("n")}; }

// ln(1 + e^x) without overflow.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
constexpr auto kMish = [](double x) { return x * std::tanh(softplus(x)); };
constexpr auto kMishGradient = [](double x, double dy) {
  const double t = std::tanh(softplus(x));
  return dy * (t + x / (1 + std::exp(-x)) * (1 - t * t));
};

// Floats by the kernel, doubles one by one.
class MishOperator : public UnaryOperator<Unary::kMish> {
 public:
  using UnaryOperator::UnaryOperator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    if (x.type() == DataType::kFloat) return UnaryOperator::run();
    Tensor& y = output(0, x.shape(), x.type());
    map(parallel(), x.size(), kMish, y.mutable_data<double>(), x.data<double>());
  }
};

class MishGradientOperator : public MapGradientOperator<kMishGradient, 0, 2, double> {
 public:
  using MapGradientOperator::MapGradientOperator;

 protected:
  void run() override {
    const Tensor &x = input(0), &dy = input(2);
    if (x.type() == DataType::kDouble) return MapGradientOperator::run();
    require_alike();
    Tensor& dx = output(0, x.shape(), x.type());
    kernels().unary_gradient(Unary::kMish, 0, 0, x.size(), x.data<float>(), dy.data<float>(),
                             dx.mutable_data<float>(), parallel());
  }
};

class GeluOperator : public Operator {
 public:
  explicit GeluOperator(const OperatorContext& context)
      : Operator(context),
        function_(args().boolean("fast_gelu") ? Unary::kFastGelu : Unary::kGelu) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    kernels().unary(function_, 0, 0, x.size(), x.data<float>(), y.mutable_data<float>(),
                    parallel());
  }

 private:
  const Unary function_;
};

class GeluGradientOperator : public Operator {
 public:
  explicit GeluGradientOperator(const OperatorContext& context)
      : Operator(context),
        function_(args().boolean("fast_gelu") ? Unary::kFastGelu : Unary::kGelu) {}

 protected:
  void run() override {
    const Tensor &dy = input(0), &x = input(1);
    require_same_size(describe_input(0), dy, describe_input(1), x);
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    kernels().unary_gradient(function_, 0, 0, x.size(), x.data<float>(), dy.data<float>(),
                             dx.mutable_data<float>(), parallel());
  }

 private:
  const Unary function_;
};

// X seen as rows x channels x inner, where a channel has one slope.
class PReluBase : public Operator {
 public:
  explicit PReluBase(const OperatorContext& context)
      : Operator(context), last_(args().text("order") == "NHWC") {}

 protected:
  struct Parts {
    int64_t rows, channels, inner;
  };

  Parts parts(int x, int slope) const {
    const Shape& shape = input(x).shape();
    const int64_t count = input(slope).size();
    if (count == 1) return {1, 1, shape.size()};
    const int rank = shape.rank(), axis = last_ ? rank - 1 : 1;
    CAFFE2_ENFORCE(axis > 0 && axis < rank && shape[axis] == count, describe_input(slope),
                   " has shape ", input(slope).shape().text(),
                   "; one value or one for each channel of ", describe_input(x), ", which has ",
                   shape.text(), ", is needed");
    return {shape.product(0, axis), count, shape.product(axis + 1, rank)};
  }

 private:
  const bool last_;
};

class PReluOperator : public PReluBase {
 public:
  using PReluBase::PReluBase;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Parts p = parts(0, 1);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const float *from = x.data<float>(), *slope = input(1).data<float>();
    float* to = y.mutable_data<float>();
    if (p.rows * p.channels == 1) {
      return kernels().unary(Unary::kLeakyRelu, *slope, 0, x.size(), from, to, parallel());
    }
    for_ranges(parallel(), p.rows * p.channels, p.inner, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const float alpha = slope[r % p.channels];
        if (p.inner == 1) {
          to[r] = from[r] > 0 ? from[r] : alpha * from[r];
        } else {
          kernels().unary(Unary::kLeakyRelu, alpha, 0, p.inner, from + r * p.inner,
                          to + r * p.inner, {});
        }
      }
    });
  }
};

class PReluGradientOperator : public PReluBase {
 public:
  using PReluBase::PReluBase;

 protected:
  void run() override {
    const Tensor &dy = input(1), &x = input(2), &slopes = input(3);
    require_same_shape(describe_input(0), input(0), describe_input(2), x);
    require_same_shape(describe_input(1), dy, describe_input(2), x);
    const Parts p = parts(2, 3);
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    Tensor& dslope = output(1, slopes.shape(), DataType::kFloat);
    const float *in = x.data<float>(), *gradient = dy.data<float>(), *slope = slopes.data<float>();
    float *out = dx.mutable_data<float>(), *sums = dslope.mutable_data<float>();
    for_ranges(parallel(), p.channels, p.rows * p.inner, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++) {
        const float alpha = slope[c];
        double sum = 0;
        for (int64_t r = 0; r < p.rows; r++) {
          const int64_t start = (r * p.channels + c) * p.inner;
          for (int64_t i = start; i < start + p.inner; i++) {
            const bool above = in[i] > 0;
            out[i] = above ? gradient[i] : alpha * gradient[i];
            if (!above) sum += static_cast<double>(in[i]) * gradient[i];
          }
        }
        sums[c] = static_cast<float>(sum);
      }
    });
  }
};

class GluOperator : public Operator {
 public:
  explicit GluOperator(const OperatorContext& context)
      : Operator(context), dim_(args().int32("dim")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const int axis = canonical_axis(dim_, x.rank(), describe_input(0));
    CAFFE2_ENFORCE(x.dim(axis) % 2 == 0, describe_input(0), " has shape ", x.shape().text(),
                   "; dimension ", axis, " cannot be halved");
    Shape shape;
    for (int d = 0; d < x.rank(); d++) shape.append(d == axis ? x.dim(d) / 2 : x.dim(d));
    Tensor& y = output(0, shape, DataType::kFloat);
    const int64_t rows = shape.product(0, axis), half = shape.product(axis, x.rank());
    const float* from = x.data<float>();
    float* to = y.mutable_data<float>();
    for_ranges(parallel(), rows, half, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const float* first = from + 2 * r * half;
        float* result = to + r * half;
        kernels().sigmoid(half, first + half, result, {});
        for (int64_t i = 0; i < half; i++) result[i] *= first[i];
      }
    });
  }

 private:
  const int dim_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Clip, UnaryOperator<Unary::kClip, min_max>)
REGISTER_CPU_OPERATOR(ClipGradient, UnaryGradientOperator<Unary::kClip, 0, 1, min_max>)
REGISTER_CPU_OPERATOR(LeakyRelu, UnaryOperator<Unary::kLeakyRelu, alpha>)
REGISTER_CPU_OPERATOR(LeakyReluGradient, UnaryGradientOperator<Unary::kLeakyRelu, 0, 1, alpha>)
REGISTER_CPU_OPERATOR(ThresholdedRelu, UnaryOperator<Unary::kThresholdedRelu, alpha>)
REGISTER_CPU_OPERATOR(ThresholdedReluGradient,
                      UnaryGradientOperator<Unary::kThresholdedRelu, 0, 1, alpha>)
REGISTER_CPU_OPERATOR(ReluN, UnaryOperator<Unary::kClip, zero_to_n>)
REGISTER_CPU_OPERATOR(ReluNGradient, UnaryGradientOperator<Unary::kClip, 0, 1, zero_to_n>)
REGISTER_CPU_OPERATOR(HardSigmoid, UnaryOperator<Unary::kHardSigmoid, alpha_beta>)
REGISTER_CPU_OPERATOR(HardSigmoidGradient,
                      UnaryGradientOperator<Unary::kHardSigmoid, 0, 1, alpha_beta>)
REGISTER_CPU_OPERATOR(Elu, UnaryOperator<Unary::kElu, alpha>)
REGISTER_CPU_OPERATOR(EluGradient, UnaryGradientOperator<Unary::kElu, 0, 1, alpha>)
REGISTER_CPU_OPERATOR(Selu, UnaryOperator<Unary::kSelu, alpha_scale>)
REGISTER_CPU_OPERATOR(SeluGradient, UnaryGradientOperator<Unary::kSelu, 0, 1, alpha_scale>)
REGISTER_CPU_OPERATOR(Softplus, UnaryOperator<Unary::kSoftplus>)
REGISTER_CPU_OPERATOR(SoftplusGradient, UnaryGradientOperator<Unary::kSoftplus, 0, 1>)
REGISTER_CPU_OPERATOR(Softsign, UnaryOperator<Unary::kSoftsign>)
REGISTER_CPU_OPERATOR(SoftsignGradient, UnaryGradientOperator<Unary::kSoftsign, 0, 1>)
REGISTER_CPU_OPERATOR(Swish, UnaryOperator<Unary::kSwish>)
REGISTER_CPU_OPERATOR(SwishGradient, UnaryGradientOperator<Unary::kSwish, 0, 2>)
REGISTER_CPU_OPERATOR(Mish, MishOperator)
REGISTER_CPU_OPERATOR(MishGradient, MishGradientOperator)
REGISTER_CPU_OPERATOR(Gelu, GeluOperator)
REGISTER_CPU_OPERATOR(GeluGradient, GeluGradientOperator)
REGISTER_CPU_OPERATOR(PRelu, PReluOperator)
REGISTER_CPU_OPERATOR(PReluGradient, PReluGradientOperator)
REGISTER_CPU_OPERATOR(Glu, GluOperator)

}  // namespace caffe2
