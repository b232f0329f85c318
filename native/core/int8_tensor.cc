#include "core/int8_tensor.h"

#include <cmath>
#include <vector>

#include "core/engine.h"
#include "core/messages.h"

namespace caffe2 {

void Int8Tensor::serialize(BlobProto& proto) const {
  proto.type = kSavedKind;
  QTensorProto& saved = proto.qtensor.emplace();
  saved.dims.assign(values.shape().begin(), values.shape().end());
  saved.precision = 8;
  saved.scale = scale;
  saved.bias = zero_point;
  saved.is_signed = false;
  saved.name = proto.name;
  saved.data_type = static_cast<int32_t>(values.type());
  if (values.type() == DataType::kInt32) {
    saved.data =
        wire::Packed<int32_t>({values.data<int32_t>(), static_cast<size_t>(values.size())});
  } else {
    const auto* bytes = values.data<uint8_t>();
    const std::vector<int32_t> wide(bytes, bytes + values.size());
    saved.data = wire::Packed<int32_t>(std::span<const int32_t>(wide));
  }
}

std::shared_ptr<Int8Tensor> Int8Tensor::load(const QTensorProto& proto, Engine& engine) {
  Shape shape;
  for (const int64_t dim : proto.dims) shape.append(dim);
  const auto type = static_cast<DataType>(proto.data_type.value_or(2));
  CAFFE2_ENFORCE(type == DataType::kUInt8 || type == DataType::kInt32,
                 "a saved Int8 tensor has elements of type ", type_name(type),
                 "; uint8 and int32 are allowed");
  CAFFE2_ENFORCE(static_cast<int64_t>(proto.data.size()) == shape.size(),
                 "a saved Int8 tensor of shape ", shape.text(), " holds ", proto.data.size(),
                 " elements");
  const double scale = proto.scale.value_or(1), zero = proto.bias.value_or(0);
  CAFFE2_ENFORCE(scale > 0 && std::isfinite(static_cast<float>(scale)),
                 "a saved Int8 tensor has scale ", scale);
  CAFFE2_ENFORCE(zero >= INT32_MIN && zero <= INT32_MAX && zero == std::trunc(zero),
                 "a saved Int8 tensor has zero point ", zero);
  Tensor values(engine.allocator(), shape, type);
  if (type == DataType::kInt32) {
    proto.data.copy_to(values.mutable_data<int32_t>());
  } else {
    const std::vector<int32_t> wide = proto.data.values();
    auto* bytes = values.mutable_data<uint8_t>();
    for (const int32_t value : wide) {
      CAFFE2_ENFORCE(value >= 0 && value <= 255, "a saved Int8 tensor holds ", value,
                     "; 0 to 255 are allowed");
      *bytes++ = static_cast<uint8_t>(value);
    }
  }
  return std::make_shared<Int8Tensor>(std::move(values), static_cast<float>(scale),
                                      static_cast<int32_t>(zero));
}

}  // namespace caffe2
