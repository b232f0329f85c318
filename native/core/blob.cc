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

const char* Blob::kind() const {
  if (tensor() != nullptr) return "a tensor";
  const auto* held = std::get_if<std::shared_ptr<Object>>(&value_);
  return held ? (*held)->kind() : "nothing";
}

}  // namespace caffe2
