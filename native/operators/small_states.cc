// Rules of optimizers whose parameters or states take less memory, and SparseMomentumSGD.
#include <algorithm>
#include <cmath>

#include "core/registry.h"
#include "operators/half.h"
#include "operators/sparse_rows.h"

namespace caffe2 {
namespace {

class AdamFP16Operator : public Operator {
 public:
  explicit AdamFP16Operator(const OperatorContext& context)
      : Operator(context),
        beta1_(args().real("beta1")),
        beta2_(args().real("beta2")),
        epsilon_(args().real("epsilon")) {}

 protected:
  void run() override {
    for (const int i : {0, 1, 2}) {
      require_same_size(describe_input(i), input(i), describe_input(3), input(3));
    }
    const float lr = scalar_value(input(4), describe_input(4));
    const auto t = static_cast<double>(step_number(input(5), describe_input(5)));
    const auto factor =
        static_cast<float>(std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t)));
    const auto b1 = static_cast<float>(beta1_), b2 = static_cast<float>(beta2_);
    const auto n1 = static_cast<float>(1 - beta1_), n2 = static_cast<float>(1 - beta2_);
    Tensor& w = output(0, input(0).shape(), DataType::kFloat16);
    float* m = output(1, input(1).shape(), DataType::kFloat).mutable_data<float>();
    float* v = output(2, input(2).shape(), DataType::kFloat).mutable_data<float>();
    auto* new_w = static_cast<uint16_t*>(w.raw_mutable_data());
    const auto* old_w = static_cast<const uint16_t*>(input(0).raw_data());
    const auto* grad = static_cast<const uint16_t*>(input(3).raw_data());
    const float *old_m = input(1).data<float>(), *old_v = input(2).data<float>();
    for (int64_t i = 0; i < input(3).size(); i++) {
      const float g = half_to_float(grad[i]);
      m[i] = b1 * old_m[i] + n1 * g;
      v[i] = b2 * old_v[i] + n2 * g * g;
      const float step = factor * m[i] / (std::sqrt(v[i]) + epsilon_);
      new_w[i] = float_to_half(half_to_float(old_w[i]) + lr * step);
    }
  }

 private:
  const double beta1_, beta2_;
  const float epsilon_;
};

class Fused8BitMomentumOperator : public Operator {
 public:
  explicit Fused8BitMomentumOperator(const OperatorContext& context)
      : Operator(context),
        momentum_(args().real("momentum")),
        nesterov_(args().boolean("nesterov")) {}

 protected:
  void run() override {
    const int64_t n = input(1).size(), blocks = (n + kBlock - 1) / kBlock;
    for (const int i : {0, 2}) {
      require_same_size(describe_input(i), input(i), describe_input(1), input(1));
    }
    CAFFE2_ENFORCE(input(3).size() == blocks, describe_input(3), " has shape ",
                   input(3).shape().text(), "; needed is one for each ", kBlock, " of ", n);
    const float lr = scalar_value(input(4), describe_input(4));
    Tensor& w = output(0, input(0).shape(), DataType::kFloat);
    Tensor& codes = output(1, input(2).shape(), DataType::kInt8);
    Tensor& scales = output(2, input(3).shape(), DataType::kFloat);
    w.copy_from(input(0));
    const float *g = input(1).data<float>(), *old_scale = input(3).data<float>();
    const auto* old_code = input(2).data<int8_t>();
    float *weight = w.mutable_data<float>(), *scale = scales.mutable_data<float>();
    auto* code = codes.mutable_data<int8_t>();
    for (int64_t block = 0; block < blocks; block++) {
      const int64_t begin = block * kBlock;
      const auto size = static_cast<int>(std::min<int64_t>(kBlock, n - begin));
      scale[block] = step(size, lr, old_scale[block], g + begin, old_code + begin, weight + begin,
                          code + begin);
    }
  }

 private:
  static constexpr int64_t kBlock = 256;

  // One block; gives its new scale.
  float step(int n, float lr, float scale, const float* g, const int8_t* old_code, float* w,
             int8_t* code) const {
    float momentum[kBlock], largest = 0;
    for (int i = 0; i < n; i++) {
      const float old = scale * static_cast<float>(old_code[i]);
      momentum[i] = momentum_ * old + lr * g[i];
      w[i] -= nesterov_ ? (1 + momentum_) * momentum[i] - momentum_ * old : momentum[i];
      largest = std::max(largest, std::fabs(momentum[i]));
    }
    const float next = largest / 127;
    for (int i = 0; i < n; i++) {
      const float nearest = next > 0 ? std::nearbyint(momentum[i] / next) : 0;
      // A NaN becomes -127: the conversion of one is undefined.
      code[i] = static_cast<int8_t>(std::min(std::max(-127.0f, nearest), 127.0f));
    }
    return next;
  }

  const float momentum_;
  const bool nesterov_;
};

class SparseMomentumSGDOperator : public SparseRowsOperator {
 public:
  explicit SparseMomentumSGDOperator(const OperatorContext& context)
      : SparseRowsOperator(context), momentum_(args().real("momentum")), lr_(args().real("lr")) {}

 protected:
  void run() override {
    const SparseRows rows = rows_at(0, 1, 2);
    require_same_shape(describe_input(3), input(3), describe_input(0), input(0));
    const float lr = has_input(4) ? scalar_value(input(4), describe_input(4)) : lr_;
    const float* g = input(2).data<float>();
    float *w = changed(0, 0), *velocity = changed(1, 3);
    for (int64_t r = 0; r < rows.count; r++) {
      const int64_t at = rows.index[r] * rows.width;
      kernels().axpby(rows.width, lr, g + r * rows.width, momentum_, velocity + at, {});
      kernels().axpby(rows.width, -1, velocity + at, 1, w + at, {});
    }
  }

 private:
  const float momentum_, lr_;
};

}  // namespace

REGISTER_CPU_OPERATOR(AdamFP16, AdamFP16Operator)
REGISTER_CPU_OPERATOR(Fused8BitMomentum, Fused8BitMomentumOperator)
REGISTER_CPU_OPERATOR(SparseMomentumSGD, SparseMomentumSGDOperator)

}  // namespace caffe2
