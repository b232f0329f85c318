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
#include "operators/parallel.h"

namespace caffe2 {

// The nearest integer, halves to even, within [low, 255]; a NaN becomes `low`.
inline uint8_t quantum(float value, int32_t zero_point, int32_t low = 0) {
  const float place = std::nearbyint(value) + static_cast<float>(zero_point);
  if (!(place > static_cast<float>(low))) return static_cast<uint8_t>(low);
  return static_cast<uint8_t>(std::min(place, 255.f));
}

// value / 2^shift, rounded to the nearest, halves away from zero.
inline int64_t shift_right(int64_t value, int shift) {
  if (shift <= 0) return value;
  const int64_t mask = (int64_t{1} << shift) - 1, rest = (value & mask) - (value < 0 ? 1 : 0);
  return (value >> shift) + (rest > mask >> 1 ? 1 : 0);
}

inline uint8_t saturate(int64_t value, int32_t low = 0) {
  return static_cast<uint8_t>(std::clamp<int64_t>(value, low, 255));
}

// What becomes of a sum of products: it is multiplied in fixed point (Jacob et al., 2018, 2.2),
// rounded at 31 bits and again at the place of the result, as nets were made for; with the engine
// DNNLOWP it is multiplied as a float, and halves become even.
class Requantization {
 public:
  Requantization(float factor, int32_t zero_point, int32_t low, bool even)
      : factor_(factor), even_(even), zero_point_(zero_point), low_(low) {
    int exponent = 0;
    const float fraction = std::frexp(std::min(factor, kLargest), &exponent);
    multiplier_ = std::llround(std::ldexp(fraction, 31));
    low_bits_ = 31 - std::max(exponent, 0);
    shift_ = std::clamp(-exponent, 0, 62);
  }
  uint8_t operator()(int32_t sum) const {
    if (even_) return quantum(static_cast<float>(sum) * factor_, zero_point_, low_);
    const int64_t half = int64_t{1} << (low_bits_ - 1);
    const int64_t product = (sum * multiplier_ + half) >> low_bits_;
    return saturate(shift_right(product, shift_) + zero_point_, low_);
  }

 private:
  static constexpr float kLargest = 1 << 29;  // all but 0 becomes 0 or 255
  float factor_;
  bool even_;
  int64_t multiplier_;
  int low_bits_, shift_;
  int32_t zero_point_, low_;
};

// Base: Operator, or what an operator on Int8 tensors has in common with one on tensors.
template <class Base>
class Int8On : public Base {
 public:
  template <class... More>
  explicit Int8On(const OperatorContext& context, More... more)
      : Base(context, more...),
        scale_(this->args().real("Y_scale")),
        zero_(this->args().int32("Y_zero_point")) {}

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
  // What is added to the sums of a layer, from input i; zeros without.
  const int32_t* bias(int i, int64_t outputs) {
    if (!this->has_input(i)) {
      auto* zeros =
          static_cast<int32_t*>(this->scratch(static_cast<size_t>(outputs) * sizeof(int32_t)));
      std::fill_n(zeros, outputs, 0);
      return zeros;
    }
    const auto b = quantized(i, DataType::kInt32);
    CAFFE2_ENFORCE(b->values.shape() == Shape{outputs}, this->describe_input(i), " has shape ",
                   b->values.shape().text(), "; (", outputs, ",) is needed");
    return b->values.template data<int32_t>();
  }

  Requantization requantization(const Int8Tensor& x, const Int8Tensor& w, int32_t low) const {
    const bool even = this->def().engine.value_or("").starts_with("DNNLOWP");
    return Requantization(x.scale * w.scale / scale_, zero_, low, even);
  }

  const float scale_;
  const int32_t zero_;
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
