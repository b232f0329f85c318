// What operators on Int8 tensors share.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/int8_tensor.h"
#include "core/operator.h"
#include "kernels/int8.h"
#include "operators/parallel.h"

namespace caffe2 {

// The nearest integer, halves to even, within [low, 255]; a NaN becomes `low`.
inline uint8_t quantum(float value, int32_t zero_point, int32_t low = 0) {
  const float place = std::nearbyint(value) + static_cast<float>(zero_point);
  if (!(place > static_cast<float>(low))) return static_cast<uint8_t>(low);
  return static_cast<uint8_t>(std::min(place, 255.f));
}

// The scale and the zero point with which numbers from `low` to `high`, and 0, take all 256 values
// (Jacob et al., 2018, 3), as the engine DNNLOWP chooses them; 0 is a value. NaN where they are not
// finite.
struct Quantization {
  float scale = 0.1f;
  int32_t zero_point = 0;
  float inverse() const { return 1 / scale; }
};
Quantization quantization_of(const float* values, int64_t n);

// A float bias as int32 of this scale; what does not fit becomes the nearest that does.
std::shared_ptr<Int8Tensor> quantized_bias(const std::shared_ptr<Allocator>& allocator,
                                           const Tensor& b, float scale);

// What the kernel does with sums that stand for themselves times `factor`; with `even` halves
// become even, else they go away from zero, after a first rounding at 31 bits, as nets were made
// for.
inline kernels::Requantization requantization(float factor, int32_t zero_point, int32_t low,
                                              bool even) {
  constexpr float kLargest = 1 << 29;  // all but 0 becomes 0 or 255
  kernels::Requantization to;
  to.factor = factor;
  to.even = even;
  to.zero_point = zero_point;
  to.low = low;
  int exponent = 0;
  const float fraction = std::frexp(std::min(factor, kLargest), &exponent);
  if (exponent < -31) return to;  // all becomes 0
  to.multiplier = static_cast<int32_t>(std::ldexp(fraction, 31));
  to.low_bits = 31 - std::max(exponent, 0);
  to.shift = std::max(-exponent, 0);
  return to;
}

// Base: Operator, or what an operator on Int8 tensors has in common with one on tensors.
template <class Base>
class Int8On : public Base {
 public:
  template <class... More>
  explicit Int8On(const OperatorContext& context, More... more)
      : Base(context, more...),
        scale_(this->args().real("Y_scale")),
        zero_(this->args().int32("Y_zero_point")),
        int8_kernels_(*kernels::int8_table(this->engine().isa())) {}

 protected:
  // An input that holds an Int8 tensor of this type.
  std::shared_ptr<Int8Tensor> quantized(int i, DataType type = DataType::kUInt8) const {
    auto found = this->template input_object<Int8Tensor>(i);
    CAFFE2_ENFORCE(found->values.type() == type, this->describe_input(i), " has type ",
                   type_name(found->values.type()), "; ", type_name(type), " is needed");
    return found;
  }
  static void require_rank(const Int8Tensor& x, int rank, const Operand& what) {
    CAFFE2_ENFORCE(x.values.rank() == rank, what, " has shape ", x.values.shape().text(), "; ",
                   rank, " dimensions are needed");
  }

  Tensor bytes(const Shape& shape) const {
    return Tensor(this->engine().allocator(), shape, DataType::kUInt8);
  }
  void give(Tensor y) {
    this->output_object(0, std::make_shared<Int8Tensor>(std::move(y), scale_, zero_));
  }
  // For operators that only move values: the output is quantized as the input is.
  void give_like(const Int8Tensor& x, Tensor y) {
    const Arguments& args = this->args();
    const bool same = !args.has("Y_scale") || std::abs(x.scale - scale_) <= 1e-4f * x.scale;
    CAFFE2_ENFORCE(same && (!args.has("Y_zero_point") || x.zero_point == zero_),
                   this->describe_output(0), " is to have scale ", scale_, " and zero point ",
                   zero_, ", but ", this->describe_input(0), " has ", x.scale, " and ",
                   x.zero_point, "; this operator needs the same");
    this->output_object(0, std::make_shared<Int8Tensor>(std::move(y), x.scale, x.zero_point));
  }
  // What is added to the sums of a layer, which have this scale, from input i; null without.
  const int32_t* bias(int i, int64_t outputs, float scale) {
    if (!this->has_input(i)) return nullptr;
    const bool plain = this->input_value(i).is_tensor();
    const auto b = plain ? nullptr : quantized(i, DataType::kInt32);
    const Tensor& values = plain ? this->input(i) : b->values;
    CAFFE2_ENFORCE(values.shape() == Shape{outputs}, this->describe_input(i), " has shape ",
                   values.shape().text(), "; (", outputs, ",) is needed");
    bias_ = plain ? quantized_bias(this->engine().allocator(), values, scale) : b;
    return bias_->values.template data<int32_t>();
  }

  // For the sums of a layer.
  kernels::Requantization requantization(const Int8Tensor& x, const Int8Tensor& w,
                                         int32_t low) const {
    const bool even = this->def().engine.value_or("").starts_with("DNNLOWP");
    return caffe2::requantization(x.scale * w.scale / scale_, zero_, low, even);
  }
  const kernels::Int8Table& int8_kernels() const { return int8_kernels_; }

  const float scale_;
  const int32_t zero_;

 private:
  const kernels::Int8Table& int8_kernels_;
  std::shared_ptr<Int8Tensor> bias_;
};

using Int8Operator = Int8On<Operator>;

// A MovingOperator for Int8 tensors.
template <class Base>
class Int8Moving : public Int8On<Base> {
 public:
  using Int8On<Base>::Int8On;

 protected:
  const Tensor& source() override {
    x_ = this->quantized(0);
    return x_->values;
  }
  Tensor& target(const Shape& shape, DataType) override { return y_ = this->bytes(shape); }
  void run() override {
    Base::run();
    const auto x = std::exchange(x_, nullptr);
    this->give_like(*x, std::move(y_));
  }

 private:
  std::shared_ptr<Int8Tensor> x_;
  Tensor y_;
};

}  // namespace caffe2
