// What pooling and its gradients share.
#pragma once

#include "kernels/blocks.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// Outputs whose running values fit on the stack.
constexpr int64_t OUTPUTS = 256;

// The first of the taps start, start + dilation, ... that is not before 0.
FORCE_INLINE int64_t first_inside(int64_t start, int64_t dilation) {
  return start < 0 ? ceil_div(-start, dilation) : 0;
}

// How many of `taps` positions start, start + dilation, ... lie in [0, size).
FORCE_INLINE int64_t taps_inside(int64_t start, int64_t taps, int64_t dilation, int64_t size) {
  const int64_t before = min_of(taps, first_inside(start, dilation));
  const int64_t until = start + (taps - 1) * dilation < size
                            ? taps
                            : max_of<int64_t>(0, ceil_div(size - start, dilation));
  return max_of<int64_t>(0, until - before);
}

// What an average divides by.
FORCE_INLINE float window_count(const PoolShape& s, bool count_include_pad, int64_t row,
                                int64_t column) {
  if (count_include_pad) return (float)(s.kh * s.kw);
  return (float)(taps_inside(row * s.stride_h - s.pad_t, s.kh, s.dilation_h, s.h) *
                 taps_inside(column * s.stride_w - s.pad_l, s.kw, s.dilation_w, s.w));
}

// Calls body(first, last, row, offset): outputs [first, last) of output row y find their
// inputs in that row of the plane, at output * stride_w + offset. Goes through the window in order.
template <class Body>
FORCE_INLINE void for_taps(const PoolShape& s, int64_t y, int64_t begin, int64_t end,
                           const Body& body) {
  // A window may be much larger than the map: only taps that some output meets are looked at.
  const int64_t top = y * s.stride_h - s.pad_t;
  const int64_t q0 = first_inside((end - 1) * s.stride_w - s.pad_l, s.dilation_w);
  for (int64_t r = first_inside(top, s.dilation_h); r < s.kh; r++) {
    const int64_t row = top + r * s.dilation_h;
    if (row >= s.h) break;
    for (int64_t q = q0; q < s.kw; q++) {
      const int64_t offset = q * s.dilation_w - s.pad_l;
      if (begin * s.stride_w + offset >= s.w) break;
      const Range xs(begin, end, s.stride_w, offset, s.w);
      if (xs.begin < xs.end) body(xs.begin, xs.end, row, offset);
    }
  }
}

// 2x2 windows side by side, nothing clipped: the usual case.
FORCE_INLINE bool is_two_by_two(const PoolShape& s) {
  return s.kh == 2 && s.kw == 2 && s.stride_h == 2 && s.stride_w == 2 && s.dilation_h == 1 &&
         s.dilation_w == 1 && s.pad_t == 0 && s.pad_l == 0 && 2 * s.oh <= s.h && 2 * s.ow <= s.w;
}

// The two vectors at x, of which n <= 2 * VL floats are there.
struct Pair {
  vf low, high;
  FORCE_INLINE Pair(vf a, vf b) : low(a), high(b) {}
  FORCE_INLINE Pair(const float* x, int64_t n)
      : low(n >= VL ? load(x) : load_partial(x, (int)n)),
        high(n >= 2 * VL ? load(x + VL)
             : n > VL    ? load_partial(x + VL, (int)n - VL)
                         : vf{}) {}
  FORCE_INLINE void write(float* x, int64_t n) const {
    if (n >= VL) {
      store(x, low);
    } else {
      store_partial(x, low, (int)n);
    }
    if (n >= 2 * VL) {
      store(x + VL, high);
    } else if (n > VL) {
      store_partial(x + VL, high, (int)n - VL);
    }
  }
};

// Calls body(plane) for every plane.
template <class Body>
FORCE_INLINE void for_planes(const PoolShape& s, const Parallel& parallel, const Body& body) {
  const int64_t size = s.h * s.w * (s.layout == Layout::kBlocked ? VL : 1);
  const int64_t step = max_of<int64_t>(1, ELEMENTS / size);
  for_ranges(parallel, s.planes, step, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) body(i);
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
