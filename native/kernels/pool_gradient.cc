// Gradients of pooling. As asked of the original Caffe2: every input element that equals the
// largest one of a window gets the whole gradient of that window, so ties multiply it.
#include "kernels/functions.h"
#include "kernels/map.h"
#include "kernels/pool.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// Each lane of v twice.
static FORCE_INLINE Pair twice(vf v) { return {interleave_low(v, v), interleave_high(v, v)}; }

// One row of 2x2 windows; every element of the two rows of dx below them is written once.
static void two_by_two_max(int64_t ow, const float* x, int64_t width, const float* y,
                           const float* dy, float* dx) {
  for (int64_t i = 0; i < ow; i += VL) {
    const int64_t n = min_of<int64_t>(VL, ow - i);
    const auto read = [&](const float* p) {
      return n == VL ? load(p + i) : load_partial(p + i, (int)n);
    };
    const Pair largest = twice(read(y)), d = twice(read(dy));
    for (int64_t row = 0; row < 2; row++) {
      const Pair in(x + row * width + 2 * i, 2 * n);
      Pair(select(in.low == largest.low, d.low, vf{}),
           select(in.high == largest.high, d.high, vf{}))
          .write(dx + row * width + 2 * i, 2 * n);
    }
  }
}

// dx[i * stride] += dy[i] where x[i * stride] == y[i], for i < n.
static void add_where_equal(int64_t n, int64_t stride, const float* x, const float* y,
                            const float* dy, float* dx) {
  if (stride == 1) {
    return map_range(
        0, n, dx, [](vf to, vf in, vf out, vf d) { return to + select(in == out, d, vf{}); },
        (const float*)dx, x, y, dy);
  }
  for (int64_t i = 0; i < n; i++) {
    if (x[i * stride] == y[i]) dx[i * stride] += dy[i];
  }
}

void max_pool_gradient(const PoolShape& s, const float* x, const float* y, const float* dy,
                       float* dx, const Parallel& parallel) {
  for_planes(s, parallel, [&](int64_t plane) {
    const float *in = x + plane * s.h * s.w, *out = y + plane * s.oh * s.ow;
    const float* d = dy + plane * s.oh * s.ow;
    float* to = dx + plane * s.h * s.w;
    const bool two_by_two = is_two_by_two(s);
    if (!two_by_two || 2 * s.oh < s.h || 2 * s.ow < s.w) {
      __builtin_memset(to, 0, s.h * s.w * sizeof(float));
    }
    for (int64_t row = 0; row < s.oh; row++, out += s.ow, d += s.ow) {
      if (two_by_two) {
        two_by_two_max(s.ow, in + 2 * row * s.w, s.w, out, d, to + 2 * row * s.w);
        continue;
      }
      for_taps(s, row, 0, s.ow, [&](int64_t first, int64_t last, int64_t input, int64_t offset) {
        const int64_t at = input * s.w + first * s.stride_w + offset;
        add_where_equal(last - first, s.stride_w, in + at, out + first, d + first, to + at);
      });
    }
  });
}

void average_pool_gradient(const PoolShape& s, bool count_include_pad, const float* dy, float* dx,
                           const Parallel& parallel) {
  for_planes(s, parallel, [&](int64_t plane) {
    const float* d = dy + plane * s.oh * s.ow;
    float* to = dx + plane * s.h * s.w;
    __builtin_memset(to, 0, s.h * s.w * sizeof(float));
    for (int64_t row = 0; row < s.oh; row++, d += s.ow) {
      for (int64_t begin = 0; begin < s.ow; begin += OUTPUTS) {
        const int64_t end = min_of(s.ow, begin + OUTPUTS);
        float share[OUTPUTS];
        for (int64_t i = begin; i < end; i++) {
          share[i - begin] = d[i] / window_count(s, count_include_pad, row, i);
        }
        for_taps(s, row, begin, end,
                 [&](int64_t first, int64_t last, int64_t input, int64_t offset) {
                   float* out = to + input * s.w + offset;
                   for (int64_t i = first; i < last; i++) out[i * s.stride_w] += share[i - begin];
                 });
      }
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
