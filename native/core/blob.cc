#include "core/blob.h"

#include <span>

#include "core/messages.h"

namespace caffe2 {

void Object::serialize(BlobProto&) const {
  fail(Code::kUnsupported, "a blob that holds ", kind(), " cannot be saved");
}

void Text::serialize(BlobProto& proto) const {
  proto.type = kind();
  proto.content = wire::Bytes(value);
}

void Mutex::serialize(BlobProto& proto) const {
  proto.type = kind();
  proto.content = wire::Bytes(std::string());
}

void Counter::serialize(BlobProto& proto) const {
  const int64_t now = count;
  TensorProto tensor;
  tensor.dims = {1};
  tensor.data_type = static_cast<int32_t>(DataType::kInt64);
  tensor.int64_data = wire::Packed<int64_t>(std::span<const int64_t>(&now, 1));
  proto.type = kind();
  proto.tensor = std::move(tensor);
}

const char* BlobValue::kind() const {
  if (is_tensor()) return "a tensor";
  return object ? object->kind() : "nothing";
}

}  // namespace caffe2
