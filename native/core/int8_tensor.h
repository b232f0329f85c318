// Numbers as integers: q stands for (q - zero_point) * scale (Jacob et al., 2018, 1712.05877).
#pragma once
#include <cstdint>
#include <utility>

#include "core/blob.h"

namespace caffe2 {

class Int8Tensor : public Object {
 public:
  Int8Tensor(Tensor values, float scale, int32_t zero_point)
      : values(std::move(values)), scale(scale), zero_point(zero_point) {}
  const char* kind() const override { return "int8::Int8TensorCPU"; }

  const Tensor values;  // uint8, or int32 for biases
  const float scale;
  const int32_t zero_point;
};

}  // namespace caffe2
