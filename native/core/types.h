// Element types and shapes. Sizes are computed with overflow checks.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "core/error.h"

namespace caffe2 {

// The numbers are those of TensorProto.DataType.
enum class DataType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt32 = 2,
  kByte = 3,
  kString = 4,
  kBool = 5,
  kUInt8 = 6,
  kInt8 = 7,
  kUInt16 = 8,
  kInt16 = 9,
  kInt64 = 10,
  kFloat16 = 12,
  kDouble = 13,
};

const char* type_name(DataType type);
size_t type_size(DataType type);  // bytes per element; 0 for kUndefined

template <class T>
struct TypeOf;
// clang-format off
template <> struct TypeOf<float> { static constexpr DataType value = DataType::kFloat; };
template <> struct TypeOf<double> { static constexpr DataType value = DataType::kDouble; };
template <> struct TypeOf<int32_t> { static constexpr DataType value = DataType::kInt32; };
template <> struct TypeOf<int64_t> { static constexpr DataType value = DataType::kInt64; };
template <> struct TypeOf<bool> { static constexpr DataType value = DataType::kBool; };
template <> struct TypeOf<uint8_t> { static constexpr DataType value = DataType::kUInt8; };
template <> struct TypeOf<int8_t> { static constexpr DataType value = DataType::kInt8; };
template <> struct TypeOf<uint16_t> { static constexpr DataType value = DataType::kUInt16; };
template <> struct TypeOf<std::string> { static constexpr DataType value = DataType::kString; };
template <> struct TypeOf<int16_t> { static constexpr DataType value = DataType::kInt16; };
// clang-format on

inline int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) {
    fail(Code::kInvalidArgument, "the size ", a, " x ", b, " overflows 64 bits");
  }
  return product;
}

// A number of bytes in memory, where addresses may have 32 bits.
inline size_t checked_size(int64_t bytes) {
  if (!std::in_range<size_t>(bytes)) {
    fail(Code::kOutOfMemory, "a request for ", bytes, " bytes is too large");
  }
  return static_cast<size_t>(bytes);
}

// Numbers of elements fit into addresses, also of tensors without any: loops, vectors and offsets
// may rely on it where addresses have 32 bits.
inline void require_addressable(int64_t elements) {
  if (!std::in_range<ptrdiff_t>(elements)) {
    fail(Code::kOutOfMemory, "a tensor of ", elements, " elements is too large");
  }
}

class Shape {
 public:
  static constexpr int kMaxDims = 16;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t d : dims) append(d);
  }

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }

  void append(int64_t dim) {
    CAFFE2_ENFORCE(dim >= 0, "a dimension of ", dim, " is negative");
    require_addressable(dim);
    CAFFE2_ENFORCE(rank_ < kMaxDims, "a tensor has at most ", kMaxDims, " dimensions");
    dims_[rank_++] = dim;
  }

  // Product of the dimensions in [first, last): 1 for none.
  int64_t product(int first, int last) const {
    int64_t n = 1;
    for (int i = first; i < last; i++) n = checked_multiply(n, dims_[i]);
    require_addressable(n);
    return n;
  }
  int64_t size() const { return product(0, rank_); }

  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; i++) {
      if (dims_[i] != other.dims_[i]) return false;
    }
    return true;
  }

  std::string text() const;  // "(2, 3)"

 private:
  std::array<int64_t, kMaxDims> dims_;
  int rank_ = 0;
};

}  // namespace caffe2
