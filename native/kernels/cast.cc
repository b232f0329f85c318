#include "kernels/blocks.h"
#include "kernels/functions.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

struct Bool {
  uint8_t value;
};

// One value. Floats go toward zero; what a type cannot hold becomes its nearest value, NaN 0.
template <class To, class From>
struct Convert {
  static FORCE_INLINE To of(From v) { return (To)v; }
};
template <class From>
struct Convert<Bool, From> {
  static FORCE_INLINE Bool of(From v) { return {(uint8_t)(v != 0)}; }
};
template <class From>
FORCE_INLINE int32_t to_int32(From v) {
  if (v >= 2147483648.f) return INT32_MAX;
  if (v < -2147483648.f) return INT32_MIN;
  return v == v ? (int32_t)v : 0;
}
template <class From>
FORCE_INLINE int64_t to_int64(From v) {
  if (v >= 9223372036854775808.f) return INT64_MAX;
  if (v < -9223372036854775808.f) return INT64_MIN;
  return v == v ? (int64_t)v : 0;
}
template <class From>
FORCE_INLINE uint8_t to_uint8(From v) {
  if (v >= 255.f) return 255;
  return v > 0.f ? (uint8_t)(int32_t)v : 0;
}
#define CONVERT(To, From, function)                           \
  template <>                                                 \
  struct Convert<To, From> {                                  \
    static FORCE_INLINE To of(From v) { return function(v); } \
  };
CONVERT(int32_t, float, to_int32)
CONVERT(int32_t, double, to_int32)
CONVERT(int64_t, float, to_int64)
CONVERT(int64_t, double, to_int64)
CONVERT(uint8_t, float, to_uint8)
CONVERT(uint8_t, double, to_uint8)
#undef CONVERT

template <class To, class From>
void cast_array(int64_t n, const void* x, void* y, const Parallel& parallel) {
  const From* from = (const From*)x;
  To* to = (To*)y;
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) to[i] = Convert<To, From>::of(from[i]);
  });
}

template <class From>
void cast_from(Type to, int64_t n, const void* x, void* y, const Parallel& parallel) {
  switch (to) {
    case Type::kFloat:
      return cast_array<float, From>(n, x, y, parallel);
    case Type::kDouble:
      return cast_array<double, From>(n, x, y, parallel);
    case Type::kInt32:
      return cast_array<int32_t, From>(n, x, y, parallel);
    case Type::kInt64:
      return cast_array<int64_t, From>(n, x, y, parallel);
    case Type::kUint8:
      return cast_array<uint8_t, From>(n, x, y, parallel);
    case Type::kBool:
      return cast_array<Bool, From>(n, x, y, parallel);
  }
}

}  // namespace

void cast(Type from, Type to, int64_t n, const void* x, void* y, const Parallel& parallel) {
  switch (from) {
    case Type::kFloat:
      return cast_from<float>(to, n, x, y, parallel);
    case Type::kDouble:
      return cast_from<double>(to, n, x, y, parallel);
    case Type::kInt32:
      return cast_from<int32_t>(to, n, x, y, parallel);
    case Type::kInt64:
      return cast_from<int64_t>(to, n, x, y, parallel);
    case Type::kUint8:
    case Type::kBool:
      return cast_from<uint8_t>(to, n, x, y, parallel);
  }
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
