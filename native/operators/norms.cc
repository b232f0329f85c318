// Sums of all elements, norms, and moments.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/axes.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// A sum of all elements of X, of which `average` makes the mean.
class WholeSum : public Operator {
 public:
  explicit WholeSum(const OperatorContext& context)
      : Operator(context), average_(args().boolean("average")) {}

 protected:
  float share() const {
    return average_ ? 1 / static_cast<float>(std::max<int64_t>(1, input(0).size())) : 1.0f;
  }
  void write_sum(kernels::Reduction reduction, Tensor& y) {
    float* out = y.mutable_data<float>();
    kernels().reduce(reduction, 1, input(0).size(), 1, input(0).data<float>(), out, parallel());
    *out *= share();
  }

 private:
  const bool average_;
};

class SumElementsOperator : public WholeSum {
 public:
  using WholeSum::WholeSum;

 protected:
  void run() override { write_sum(kernels::Reduction::kSum, output(0, {}, DataType::kFloat)); }
};

class SumSqrElementsOperator : public WholeSum {
 public:
  using WholeSum::WholeSum;

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, {}, x.type());
    if (x.type() == DataType::kFloat) return write_sum(kernels::Reduction::kSumSquares, y);
    const double* in = x.data<double>();
    double sum = 0;
    for (int64_t i = 0; i < x.size(); i++) sum += in[i] * in[i];
    y.mutable_data<double>()[0] = sum * share();
  }
};

class SumElementsGradientOperator : public WholeSum {
 public:
  using WholeSum::WholeSum;

 protected:
  void run() override {
    const float dy = scalar_value(input(1), describe_input(1));
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    kernels().fill(dx.size(), dy * share(), dx.mutable_data<float>(), parallel());
  }
};

class SumElementsIntOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, {}, DataType::kInt32);
    const int32_t* in = x.data<int32_t>();
    int32_t sum = 0;
    for (int64_t i = 0; i < x.size(); i++) sum = wrapping_add(sum, in[i]);
    y.mutable_data<int32_t>()[0] = sum;
  }
};

class LpNormOperator : public WholeSum {
 public:
  explicit LpNormOperator(const OperatorContext& context)
      : WholeSum(context), p_(args().integer("p")) {}

 protected:
  void run() override {
    CAFFE2_ENFORCE(input(0).size() > 0, describe_input(0), " has shape ", input(0).shape().text(),
                   "; at least one element is needed");
    write_sum(p_ == 1 ? kernels::Reduction::kSumAbs : kernels::Reduction::kSumSquares,
              output(0, {1}, DataType::kFloat));
  }

 private:
  const int64_t p_;
};

// Inputs X, d(norm).
class LpNormGradientOperator : public WholeSum {
 public:
  explicit LpNormGradientOperator(const OperatorContext& context)
      : WholeSum(context), p_(args().integer("p")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const float dy = scalar_value(input(1), describe_input(1)) * share();
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    const float* in = x.data<float>();
    float* out = dx.mutable_data<float>();
    if (p_ == 2) return kernels().scale(x.size(), 2 * dy, in, out, parallel());
    for_ranges(parallel(), x.size(), kElementsPerRange, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) out[i] = in[i] > 0 ? dy : in[i] < 0 ? -dy : 0;
    });
  }

 private:
  const int64_t p_;
};

// Lines of n elements, `inner` apart, along the argument `axis`.
class AlongAxis : public Operator {
 public:
  explicit AlongAxis(const OperatorContext& context)
      : Operator(context), axis_(args().int32("axis")) {}

 protected:
  // Calls f(offset of the first element, n, distance) for each line of X.
  template <class F>
  void for_lines(const F& f) {
    const Shape& shape = input(0).shape();
    const int axis = canonical_axis(axis_, shape.rank(), describe_input(0));
    const int64_t n = shape[axis], inner = shape.product(axis + 1, shape.rank());
    const int64_t lines = shape.product(0, axis) * inner;
    for_ranges(parallel(), lines, rows_per_range(n), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) f(i / inner * n * inner + i % inner, n, inner);
    });
  }
  void check() const { canonical_axis(axis_, input(0).rank(), describe_input(0)); }

 private:
  const int axis_;
};

constexpr double kSmallest = 1e-12;  // no norm that is divided by counts as less

double norm_of(int64_t n, int64_t step, const float* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += static_cast<double>(x[i * step]) * x[i * step];
  return std::max(std::sqrt(sum), kSmallest);
}

double size_of(int64_t n, int64_t step, const float* x) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += std::fabs(x[i * step]);
  return sum > 0 || std::isnan(sum) ? sum : 1;
}

template <double (*Measure)(int64_t, int64_t, const float*)>
class NormalizeOperator : public AlongAxis {
 public:
  using AlongAxis::AlongAxis;

 protected:
  void run() override {
    check();
    Tensor& y = output(0, input(0).shape(), DataType::kFloat);
    const float* x = input(0).template data<float>();
    float* out = y.mutable_data<float>();
    for_lines([=](int64_t first, int64_t n, int64_t step) {
      const double divisor = Measure(n, step, x + first);
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = first + i * step;
        out[at] = static_cast<float>(x[at] / divisor);
      }
    });
  }
};

// Inputs X, dY.
class NormalizeGradientOperator : public AlongAxis {
 public:
  using AlongAxis::AlongAxis;

 protected:
  void run() override {
    check();
    require_same_shape(describe_input(0), input(0), describe_input(1), input(1));
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    const float *x = input(0).data<float>(), *dy = input(1).data<float>();
    float* out = dx.mutable_data<float>();
    for_lines([=](int64_t first, int64_t n, int64_t step) {
      const double norm = norm_of(n, step, x + first);
      double product = 0;
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = first + i * step;
        product += static_cast<double>(x[at]) * dy[at];
      }
      const double share = product / (norm * norm);
      for (int64_t i = 0; i < n; i++) {
        const int64_t at = first + i * step;
        out[at] = static_cast<float>(dy[at] / norm - x[at] / norm * share);
      }
    });
  }
};

class MomentsOperator : public AxesOperator {
 public:
  using AxesOperator::AxesOperator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Axes axes = resolve(x.shape(), describe_input(0));
    const Runs runs(x.shape(), axes);
    const Shape shape = kept_shape(x.shape(), axes);
    float* squares = scratch<float>(x.size());
    void* buffer = scratch(reduce_scratch_bytes(runs));
    Tensor& mean = output(0, shape, DataType::kFloat);
    Tensor& variance = output(1, shape, DataType::kFloat);
    const float* in = x.data<float>();
    float *means = mean.mutable_data<float>(), *variances = variance.mutable_data<float>();
    const float share = 1 / static_cast<float>(std::max<int64_t>(1, runs.reduced_size()));
    using kernels::Reduction;
    reduce(kernels(), Reduction::kSum, runs, in, means, buffer, parallel());
    kernels().scale(mean.size(), share, means, means, parallel());
    for_ranges(parallel(), x.size(), kElementsPerRange, [&](int64_t begin, int64_t end) {
      runs.walk(begin, end, [&](int64_t from, int64_t to, int64_t n, int64_t step) {
        for (int64_t i = 0; i < n; i++) squares[from + i] = in[from + i] - means[to + i * step];
      });
    });
    reduce(kernels(), Reduction::kSumSquares, runs, squares, variances, buffer, parallel());
    kernels().scale(mean.size(), share, variances, variances, parallel());
  }
};

// Inputs dmean, dvariance, X, mean.
class MomentsGradientOperator : public AxesOperator {
 public:
  using AxesOperator::AxesOperator;

 protected:
  void run() override {
    const Tensor& x = input(2);
    const Runs runs(x.shape(), resolve(x.shape(), describe_input(2)));
    for (int i : {0, 1, 3}) {
      CAFFE2_ENFORCE(input(i).size() == runs.kept_size(), describe_input(i), " has shape ",
                     input(i).shape().text(), "; ", runs.kept_size(), " values are needed");
    }
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    const float *dmean = input(0).data<float>(), *dvariance = input(1).data<float>();
    const float *in = x.data<float>(), *mean = input(3).data<float>();
    float* out = dx.mutable_data<float>();
    const float share = 1 / static_cast<float>(std::max<int64_t>(1, runs.reduced_size()));
    for_ranges(parallel(), x.size(), kElementsPerRange, [&](int64_t begin, int64_t end) {
      runs.walk(begin, end, [&](int64_t from, int64_t to, int64_t n, int64_t step) {
        for (int64_t i = 0; i < n; i++) {
          const int64_t at = to + i * step;
          out[from + i] = share * (dmean[at] + 2 * (in[from + i] - mean[at]) * dvariance[at]);
        }
      });
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(SumElements, SumElementsOperator)
REGISTER_CPU_OPERATOR(SumElementsGradient, SumElementsGradientOperator)
REGISTER_CPU_OPERATOR(SumElementsInt, SumElementsIntOperator)
REGISTER_CPU_OPERATOR(SumSqrElements, SumSqrElementsOperator)
REGISTER_CPU_OPERATOR(LpNorm, LpNormOperator)
REGISTER_CPU_OPERATOR(LpNormGradient, LpNormGradientOperator)
REGISTER_CPU_OPERATOR(Normalize, NormalizeOperator<norm_of>)
REGISTER_CPU_OPERATOR(NormalizeL1, NormalizeOperator<size_of>)
REGISTER_CPU_OPERATOR(NormalizeGradient, NormalizeGradientOperator)
REGISTER_CPU_OPERATOR(Moments, MomentsOperator)
REGISTER_CPU_OPERATOR(MomentsGradient, MomentsGradientOperator)

}  // namespace caffe2
