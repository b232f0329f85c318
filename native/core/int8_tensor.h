// Numbers as integers: q stands for (q - zero_point) * scale (Jacob et al., 2018, 1712.05877).
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "core/blob.h"

namespace caffe2 {

class Engine;
struct QTensorProto;

class Int8Tensor : public Object {
 public:
  Int8Tensor(Tensor values, float scale, int32_t zero_point)
      : values(std::move(values)), scale(scale), zero_point(zero_point) {}
  static constexpr const char* kSavedKind = "Int8TensorCPU";
  const char* kind() const override { return "int8::Int8TensorCPU"; }
  void serialize(BlobProto& proto) const override;
  static std::shared_ptr<Int8Tensor> load(const QTensorProto& proto, Engine& engine);

  const Tensor values;  // uint8, or int32 for biases
  const float scale;
  const int32_t zero_point;
};

}  // namespace caffe2
