// What RecurrentNetwork shares with the operators on its steps.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/blob.h"
#include "core/error.h"

namespace caffe2 {

// What the blobs of a step net held after each step, kept for the gradient.
struct StepWorkspaces : Object {
  const char* kind() const override { return "step workspaces"; }
  std::vector<std::string> names;
  std::vector<std::vector<BlobValue>> steps;  // of each step, the values of those names
};

// Rows [first, first + count) of a tensor, in its own memory.
inline Tensor rows(const Tensor& whole, int64_t first, int64_t count, const std::string& name) {
  CAFFE2_ENFORCE(whole.rank() > 0 && whole.type() != DataType::kString, "'", name,
                 "' is no sequence of steps: it has type ", type_name(whole.type()), " and shape ",
                 whole.shape().text());
  CAFFE2_ENFORCE(first >= 0 && count >= 0 && first <= whole.dim(0) - count, "steps ", first, " to ",
                 first + count, " of '", name, "' are needed, which has shape ",
                 whole.shape().text());
  Shape shape{count};
  for (int i = 1; i < whole.rank(); i++) shape.append(whole.dim(i));
  const int64_t row = whole.shape().product(1, whole.rank());
  const auto unit = static_cast<int64_t>(type_size(whole.type()));
  return {std::make_shared<Storage>(whole.storage(), static_cast<size_t>(first * row * unit),
                                    static_cast<size_t>(count * row * unit)),
          shape, whole.type()};
}

}  // namespace caffe2
