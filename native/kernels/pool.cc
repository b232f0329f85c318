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

// The inputs of one window joined, in blocked form; KW: its width when it is dense, or 0.
template <int KW, class Join>
FORCE_INLINE vf join_window(const PoolShape& s, const float* in, const Range& rows,
                            const Range& columns, vf acc, const Join& join) {
  for (int64_t r = rows.begin; r < rows.end; r++) {
    const float* from = in + r * s.dilation_h * s.w * VL;
    if constexpr (KW > 0) {
#pragma GCC unroll 3
      for (int q = 0; q < KW; q++) acc = join(acc, load(from + q * VL));
    } else {
      for (int64_t q = columns.begin; q < columns.end; q++) {
        acc = join(acc, load(from + q * s.dilation_w * VL));
      }
    }
  }
  return acc;
}

// Output row `row` of a blocked plane: y[pixel] = finish(its window joined, row, column).
template <class Join, class Finish>
FORCE_INLINE void pool_blocked(const PoolShape& s, const float* in, int64_t row, float start,
                               float* out, const Join& join, const Finish& finish) {
  const int64_t top = row * s.stride_h - s.pad_t;
  const Range rows(0, s.kh, s.dilation_h, top, s.h);
  const int64_t kw = s.dilation_w == 1 ? s.kw : 0;
  for (int64_t column = 0; column < s.ow; column++, out += VL) {
    const int64_t left = column * s.stride_w - s.pad_l;
    const float* corner = in + (top * s.w + left) * VL;
    const bool whole = left >= 0 && left + kw <= s.w;
    vf acc = splat(start);
    if (kw == 3 && whole) {
      acc = join_window<3>(s, corner, rows, rows, acc, join);
    } else if (kw == 2 && whole) {
      acc = join_window<2>(s, corner, rows, rows, acc, join);
    } else {
      const Range columns(0, s.kw, s.dilation_w, left, s.w);
      acc = join_window<0>(s, corner, rows, columns, acc, join);
    }
    store(out, finish(acc, row, column));
  }
}

// Calls body(plane, row) for every output row. Threads share the rows of a few large planes, as
// convolutions do: what one core has written it reads again.
template <class Body>
FORCE_INLINE void for_blocked_rows(const PoolShape& s, const Parallel& parallel, const Body& body) {
  if (parallel.threads == 1 || s.planes > 8 || s.oh * s.ow < 28 * 28) {
    return for_planes(s, parallel, [&](int64_t plane) {
      for (int64_t row = 0; row < s.oh; row++) body(plane, row);
    });
  }
  const int64_t strips = min_of<int64_t>(s.oh, 4 * parallel.threads);
  for_blocks(parallel, strips * s.planes, [&](int64_t block, int) {
    const int64_t strip = block / s.planes, end = (strip + 1) * s.oh / strips;
    for (int64_t row = strip * s.oh / strips; row < end; row++) body(block % s.planes, row);
  });
}

template <class Join, class Finish>
FORCE_INLINE void pool_planes(const PoolShape& s, const float* x, float start, float* y,
                              const Parallel& parallel, const Join& join, const Finish& finish) {
  for_blocked_rows(s, parallel, [&](int64_t plane, int64_t row) {
    pool_blocked(s, x + plane * s.h * s.w * VL, row, start, y + (plane * s.oh + row) * s.ow * VL,
                 join, finish);
  });
}

void max_pool(const PoolShape& s, const float* x, float* y, const Parallel& parallel) {
  const auto join = [](vf a, vf b) { return max_nan(a, b); };
  if (s.layout == Layout::kBlocked) {
    return pool_planes(s, x, -__builtin_inff(), y, parallel, join,
                       [](vf v, int64_t, int64_t) { return v; });
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
    return pool_planes(s, x, 0, y, parallel, join, [&](vf v, int64_t row, int64_t column) {
      return v / window_count(s, count_include_pad, row, column);
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
