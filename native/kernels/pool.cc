// Pooling. As asked of the original Caffe2: an average leaves out what lies beyond the input and
// divides by what is left, or, with count_include_pad, by kh * kw even where a window that was
// rounded up reaches behind the padding.
#include "kernels/pool.h"

#include "kernels/functions.h"
#include "kernels/map.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// Output columns [0, ow) of one row of 2x2 windows: join(upper, lower), then join(left, right).
template <class Join>
FORCE_INLINE void two_by_two_row(int64_t ow, const float* upper, const float* lower, float* y,
                                 const Join& join, float factor) {
  for (int64_t x = 0; x < ow; x += VL) {
    const int64_t n = min_of<int64_t>(VL, ow - x);
    const Pair a(upper + 2 * x, 2 * n), b(lower + 2 * x, 2 * n);
    const vf low = join(a.low, b.low), high = join(a.high, b.high);
    const vf v = join(even_lanes(low, high), odd_lanes(low, high)) * factor;
    if (n == VL) {
      store(y + x, v);
    } else {
      store_partial(y + x, v, (int)n);
    }
  }
}

// acc[x] = join(acc[x], in[x * stride]) for x < n.
template <class Join>
FORCE_INLINE void join_row(int64_t n, const float* in, int64_t stride, float* acc,
                           const Join& join) {
  if (stride == 1) return map_range(0, n, acc, join, (const float*)acc, in);
  int64_t x = 0;
  if (stride == 2) {
    for (; x + VL <= n; x += VL) store(acc + x, join(load(acc + x), load_even(in + 2 * x)));
  }
  for (; x < n; x++) acc[x] = join(splat(acc[x]), splat(in[x * stride]))[0];
}

// Output row y: the inputs of each window joined, beginning with `start`.
template <class Join>
FORCE_INLINE void join_windows(const PoolShape& s, const float* in, int64_t y, float start,
                               float* out, const Join& join) {
  for (int64_t x = 0; x < s.ow; x++) out[x] = start;
  for_taps(s, y, 0, s.ow, [&](int64_t first, int64_t last, int64_t row, int64_t offset) {
    join_row(last - first, in + row * s.w + first * s.stride_w + offset, s.stride_w, out + first,
             join);
  });
}

// A blocked plane: y[pixel] = finish(the inputs of its window joined, row, column).
template <class Join, class Finish>
FORCE_INLINE void pool_blocked(const PoolShape& s, const float* in, float start, float* out,
                               const Join& join, const Finish& finish) {
  for (int64_t row = 0; row < s.oh; row++) {
    const int64_t top = row * s.stride_h - s.pad_t;
    const Range rows(0, s.kh, s.dilation_h, top, s.h);
    for (int64_t column = 0; column < s.ow; column++, out += VL) {
      const int64_t left = column * s.stride_w - s.pad_l;
      const Range columns(0, s.kw, s.dilation_w, left, s.w);
      vf acc = splat(start);
      for (int64_t r = rows.begin; r < rows.end; r++) {
        const float* from = in + ((top + r * s.dilation_h) * s.w + left) * VL;
        for (int64_t q = columns.begin; q < columns.end; q++) {
          acc = join(acc, load(from + q * s.dilation_w * VL));
        }
      }
      store(out, finish(acc, row, column));
    }
  }
}

void max_pool(const PoolShape& s, const float* x, float* y, const Parallel& parallel) {
  const auto join = [](vf a, vf b) { return max_nan(a, b); };
  if (s.layout == Layout::kBlocked) {
    return for_planes(s, parallel, [&](int64_t plane) {
      pool_blocked(s, x + plane * s.h * s.w * VL, -__builtin_inff(), y + plane * s.oh * s.ow * VL,
                   join, [](vf v, int64_t, int64_t) { return v; });
    });
  }
  for_planes(s, parallel, [&](int64_t plane) {
    const float* in = x + plane * s.h * s.w;
    float* out = y + plane * s.oh * s.ow;
    for (int64_t row = 0; row < s.oh; row++, out += s.ow) {
      if (is_two_by_two(s)) {
        two_by_two_row(s.ow, in + 2 * row * s.w, in + (2 * row + 1) * s.w, out, join, 1);
      } else {
        join_windows(s, in, row, -__builtin_inff(), out, join);
      }
    }
  });
}

void average_pool(const PoolShape& s, bool count_include_pad, const float* x, float* y,
                  const Parallel& parallel) {
  const auto join = [](vf a, vf b) { return a + b; };
  if (s.layout == Layout::kBlocked) {
    return for_planes(s, parallel, [&](int64_t plane) {
      pool_blocked(s, x + plane * s.h * s.w * VL, 0, y + plane * s.oh * s.ow * VL, join,
                   [&](vf v, int64_t row, int64_t column) {
                     return v / window_count(s, count_include_pad, row, column);
                   });
    });
  }
  for_planes(s, parallel, [&](int64_t plane) {
    const float* in = x + plane * s.h * s.w;
    float* out = y + plane * s.oh * s.ow;
    for (int64_t row = 0; row < s.oh; row++, out += s.ow) {
      if (is_two_by_two(s)) {
        two_by_two_row(s.ow, in + 2 * row * s.w, in + (2 * row + 1) * s.w, out, join, 0.25f);
        continue;
      }
      join_windows(s, in, row, 0, out, join);
      for (int64_t column = 0; column < s.ow; column++) {
        out[column] /= window_count(s, count_include_pad, row, column);
      }
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
