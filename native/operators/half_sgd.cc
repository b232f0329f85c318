// Momentum with weight decay, for parameters of 16 or 32 bits, computed in 32.
#include <type_traits>

#include "core/registry.h"
#include "operators/half.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

template <class T>
float wide(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return half_to_float(value);
  }
}

template <class T>
T narrow(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return float_to_half(value);
  }
}

template <class T>
class DecayedMomentumOperator : public Operator {
 public:
  explicit DecayedMomentumOperator(const OperatorContext& context)
      : Operator(context),
        momentum_(args().real("momentum")),
        decay_(args().real("weight_decay")),
        nesterov_(args().boolean("nesterov")) {}

 protected:
  void run() override {
    for (const int i : {1, 3}) {
      require_same_size(describe_input(i), input(i), describe_input(0), input(0));
    }
    const float lr = scalar_value(input(2), describe_input(2));
    const T *g = values(0), *m = values(1), *w = values(3);
    T *step = target(0, 0), *new_m = target(1, 1), *new_w = target(2, 3);
    for (int64_t i = 0; i < input(0).size(); i++) {
      const float old = wide(m[i]), weight = wide(w[i]);
      const float next = momentum_ * old + lr * (wide(g[i]) + decay_ * weight);
      const float change = nesterov_ ? (1 + momentum_) * next - momentum_ * old : next;
      step[i] = narrow<T>(change);
      new_m[i] = narrow<T>(next);
      new_w[i] = narrow<T>(weight - change);
    }
  }

 private:
  const T* values(int i) const { return static_cast<const T*>(input(i).raw_data()); }
  T* target(int o, int i) {
    return static_cast<T*>(output(o, input(i).shape(), input(i).type()).raw_mutable_data());
  }

  const float momentum_, decay_;
  const bool nesterov_;
};

}  // namespace

REGISTER_CPU_OPERATOR(FP16MomentumSGDUpdate, DecayedMomentumOperator<uint16_t>)
REGISTER_CPU_OPERATOR(FP32MomentumSGDUpdate, DecayedMomentumOperator<float>)

}  // namespace caffe2
