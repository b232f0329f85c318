// Copies between strided views: what slicing, joining, repeating and transposing have in common.
// Elements are moved by their size alone; only strings have a copy of their own.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "core/tensor.h"
#include "kernels/kernels.h"
#include "operators/parallel.h"

namespace caffe2 {

// Calls f with a value of a type that has the size of an element, or with a string.
template <class F>
void by_size(DataType type, const F& f) {
  if (type == DataType::kString) return f(std::string());
  switch (type_size(type)) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    default:
      return f(uint64_t());
  }
}

// Calls f with a value of one of the types that can be summed; the schema admits no other.
template <class F>
void by_summed_type(DataType type, const F& f) {
  switch (type) {
    case DataType::kFloat:
      return f(float());
    case DataType::kDouble:
      return f(double());
    case DataType::kInt32:
      return f(uint32_t());  // unsigned: sums wrap around
    default:
      return f(uint64_t());
  }
}

template <class T>
const T* elements(const Tensor& tensor) {
  return static_cast<const T*>(tensor.raw_data());
}
template <class T>
T* mutable_elements(Tensor& tensor) {
  return static_cast<T*>(tensor.raw_mutable_data());
}

// Elements that a block of work moves: less is not worth another thread.
constexpr int64_t kBlockElements = 32768;

// How many rows of `width` elements make a block of work.
inline int64_t rows_per_block(int64_t width) {
  return std::max<int64_t>(1, kBlockElements / std::max<int64_t>(1, width));
}

// For each axis, slowest first: how many elements, and how far apart they are at both ends.
struct View {
  struct Axis {
    int64_t count, from, to;
  };
  static constexpr int kMostAxes = 2 * Shape::kMaxDims;

  void add(int64_t count, int64_t from, int64_t to) { axes[rank++] = {count, from, to}; }

  std::array<Axis, kMostAxes> axes;
  int rank = 0;
};

// to[sum of i * axis.to] = from[sum of i * axis.from], for every 0 <= i < axis.count of each axis.
void copy_view(DataType type, const View& view, const void* from, void* to,
               const kernels::Parallel& parallel);

// `from` and `to` are counted in elements behind the start of both tensors.
void copy_view(const View& view, const Tensor& source, int64_t from, Tensor& target, int64_t to,
               const kernels::Parallel& parallel);

// Zero, false or the empty string.
void clear(Tensor& tensor);

}  // namespace caffe2
