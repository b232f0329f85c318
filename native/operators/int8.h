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

class Int8Operator : public Operator {
 public:
  explicit Int8Operator(const OperatorContext& context)
      : Operator(context), scale_(args().real("Y_scale")), zero_(args().int32("Y_zero_point")) {}

 protected:
  // An input that holds an Int8 tensor of this type.
  std::shared_ptr<Int8Tensor> quantized(int i, DataType type = DataType::kUInt8) const {
    auto found = input_object<Int8Tensor>(i);
    CAFFE2_ENFORCE(found->values.type() == type, describe_input(i), " has type ",
                   type_name(found->values.type()), "; ", type_name(type), " is needed");
    return found;
  }
  static void require_rank(const Int8Tensor& x, int rank, const std::string& what) {
    CAFFE2_ENFORCE(x.values.rank() == rank, what, " has shape ", x.values.shape().text(), "; ",
                   rank, " dimensions are needed");
  }

  Tensor bytes(const Shape& shape) const {
    return Tensor(engine().allocator(), shape, DataType::kUInt8);
  }
  void give(Tensor y) {
    output_object(0, std::make_shared<Int8Tensor>(std::move(y), scale_, zero_));
  }
  // For operators that only move values: the output is quantized as the input is.
  void give_like(const Int8Tensor& x, Tensor y) {
    const bool same = !args().has("Y_scale") || std::abs(x.scale - scale_) <= 1e-4f * x.scale;
    CAFFE2_ENFORCE(same && (!args().has("Y_zero_point") || x.zero_point == zero_),
                   describe_output(0), " is to have scale ", scale_, " and zero point ", zero_,
                   ", but ", describe_input(0), " has ", x.scale, " and ", x.zero_point,
                   "; this operator needs the same");
    output_object(0, std::make_shared<Int8Tensor>(std::move(y), x.scale, x.zero_point));
  }

  const float scale_;
  const int32_t zero_;
};

}  // namespace caffe2
