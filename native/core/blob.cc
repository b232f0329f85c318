#include "core/blob.h"

#include "core/messages.h"

namespace caffe2 {

void Object::serialize(BlobProto&) const {
  fail(Code::kUnsupported, "a blob that holds ", kind(), " cannot be saved");
}

void Text::serialize(BlobProto& proto) const {
  proto.type = kind();
  proto.content = wire::Bytes(value);
}

const char* BlobValue::kind() const {
  if (is_tensor()) return "a tensor";
  return object ? object->kind() : "nothing";
}

}  // namespace caffe2
