// Blobs as BlobProto bytes, the form in which files and databases hold them.
#pragma once
#include <string>
#include <string_view>

#include "core/blob.h"
#include "core/engine.h"

namespace caffe2 {

std::string serialize_blob(const std::string& name, const BlobValue& value);

// Raises Error(kInvalidArgument) for malformed bytes or when sizes contradict each other.
BlobValue deserialize_blob(std::string_view bytes, Engine& engine);

}  // namespace caffe2
