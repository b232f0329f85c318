// Elements of tensors of any type.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/tensor.h"

namespace caffe2 {

// Copies n elements of `from`, from number `start` on, to those of `to` from number `place` on.
inline void copy_elements(const Tensor& from, int64_t start, int64_t n, Tensor& to, int64_t place) {
  if (n == 0) return;
  if (from.type() == DataType::kString) {
    std::copy_n(from.data<std::string>() + start, n, to.mutable_data<std::string>() + place);
    return;
  }
  const size_t unit = type_size(from.type());
  std::memcpy(static_cast<char*>(to.raw_mutable_data()) + static_cast<size_t>(place) * unit,
              static_cast<const char*>(from.raw_data()) + static_cast<size_t>(start) * unit,
              static_cast<size_t>(n) * unit);
}

}  // namespace caffe2
