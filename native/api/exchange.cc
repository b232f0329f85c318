#include "api/exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace caffe2 {

namespace {

void check(std::string_view name, const ForeignTensor& values) {
  if (values.type == DataType::kString) {
    fail(Code::kUnsupported, "'", name, "' cannot be fed a tensor of strings here");
  }
  CAFFE2_ENFORCE(type_size(values.type) != 0, "'", name, "' was fed data type ",
                 static_cast<int>(values.type), ", which is no TensorProto.DataType of tensors");
  const size_t needed = Tensor::bytes_for(values.shape, values.type);
  CAFFE2_ENFORCE(values.bytes == needed, "'", name, "' was fed ", values.bytes, " bytes; shape ",
                 values.shape.text(), " of ", type_name(values.type), " needs ", needed);
  CAFFE2_ENFORCE(values.data != nullptr || needed == 0, "'", name, "' was fed data that is NULL");
  if (values.type != DataType::kBool) return;
  const auto* begin = static_cast<const unsigned char*>(values.data);
  const auto* wrong = std::find_if(begin, begin + needed, [](unsigned char v) { return v > 1; });
  CAFFE2_ENFORCE(wrong == begin + needed, "'", name, "' was fed a bool of ",
                 static_cast<int>(*wrong), " at position ", wrong - begin, "; it is 0 or 1");
}

}  // namespace

void feed(Workspace& workspace, std::string_view name, const ForeignTensor& values) {
  check(name, values);
  // In memory of its own: somebody else may hold what the blob holds now.
  Tensor tensor(workspace.engine().allocator(), values.shape, values.type);
  if (values.bytes > 0) std::memcpy(tensor.raw_mutable_data(), values.data, values.bytes);
  workspace.create_blob(name)->feed(std::move(tensor));
}

Tensor plain_tensor(const Workspace& workspace, std::string_view name) {
  const BlobValue value = workspace.get_blob(name)->get();
  if (value.empty()) {
    fail(Code::kFailedPrecondition, "blob '", name, "' is empty: nothing was fed or computed");
  }
  const bool strings = value.is_tensor() && value.tensor.type() == DataType::kString;
  if (strings || !value.is_tensor()) {
    fail(Code::kUnsupported, "blob '", name, "' holds ",
         strings ? "a tensor of strings" : value.kind(), ", which cannot be fetched here");
  }
  return value.tensor;
}

}  // namespace caffe2
