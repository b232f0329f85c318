// Tensors between blobs and memory that is not the engine's.
#pragma once
#include <string_view>

#include "core/workspace.h"

namespace caffe2 {

struct ForeignTensor {
  DataType type;
  Shape shape;
  const void* data;  // row-major
  size_t bytes;
};

// Copies the values into a blob, which is made where there is none. Raises, and leaves the
// workspace as it was, when type, shape and bytes contradict each other or memory is short.
void feed(Workspace& workspace, std::string_view name, const ForeignTensor& values);

// The tensor that a blob holds. Raises for what has no form as plain memory.
Tensor plain_tensor(const Workspace& workspace, std::string_view name);

}  // namespace caffe2
