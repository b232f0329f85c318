// Depthwise convolution: one filter per channel. On blocked activations every pixel of a block of
// channels is one vector, and so is every tap of their filters.
#include "kernels/conv_depthwise.h"

#include "kernels/conv_direct.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// A block of work is a strip of output rows of one block of channels of one image. Threads share
// what a pointwise convolution before or after shares, that is rows of large images, channels of
// small ones: what one core has written it reads again.
struct Plan {
  ConvSizes sizes;
  int64_t c_blocks, rows, strips;
  int64_t lane_bytes;
};

FORCE_INLINE Plan plan_for(const ConvShape& s, int threads) {
  Plan p = {ConvSizes(s), ceil_div(s.c, VL), 0, 1, 0};
  const bool by_rows = p.sizes.pixels >= 28 * 28;
  const int64_t blocks = threads > 1 ? 4 * threads : 1;
  const int64_t wanted = ceil_div(blocks, s.n * (by_rows ? 1 : p.c_blocks));
  const int64_t useful = max_of<int64_t>(1, p.sizes.pixels * p.sizes.taps * VL / ELEMENTS);
  p.strips = min_of(p.sizes.oh, by_rows ? wanted : min_of(wanted, useful));
  p.rows = ceil_div(p.sizes.oh, p.strips);
  p.strips = ceil_div(p.sizes.oh, p.rows);
  Slices lane(nullptr);
  lane.take(min_of(s.h, InputRows(s, 0, p.rows).rows) * s.w * VL);
  lane.take(p.rows * p.sizes.ow * VL);
  p.lane_bytes = lane.bytes();
  return p;
}

constexpr int PIXELS = VL == 16 ? 14 : 8;  // outputs held in registers

// P output pixels, STRIDE input pixels apart, that see the same taps, the first of which are at x
// and w; KW: the window's width when all of it is seen, or 0.
template <int P, int STRIDE, int KW>
void sum_taps(const Taps& t, const float* x, const float* w, const Ends& ends, const float* add,
              float* y) {
  vf acc[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; p++) acc[p] = add ? ends.bias + load(add + p * VL) : ends.bias;
  for (int64_t r = t.rows; r > 0; r--, x += t.row, w += t.kw * VL) {
    const auto tap = [&](int64_t q, int64_t column) {
      const vf factor = load(w + q * VL);
#pragma GCC unroll 16
      for (int p = 0; p < P; p++) acc[p] += load(x + q * column + p * STRIDE * VL) * factor;
    };
    if constexpr (KW > 0) {
#pragma GCC unroll 8
      for (int q = 0; q < KW; q++) tap(q, VL);
    } else {
      for (int64_t q = t.left; q < t.right; q++) tap(q, t.column);
    }
  }
  const vf low = ends.low, high = ends.high;
#pragma GCC unroll 16
  for (int p = 0; p < P; p++) store(y + p * VL, min(high, max(low, acc[p])));
}

template <int STRIDE, int KW, int... I>
Pixels pixels_for(int64_t count, std::integer_sequence<int, I...>) {
  static constexpr Pixels functions[] = {sum_taps<I + 1, STRIDE, KW>...};
  return functions[count - 1];
}

}  // namespace

Groups::Groups(const ConvShape& s, int64_t outputs) : step(s.stride_w * VL) {
  if (outputs <= 0) return;
  const bool dense = s.dilation_w == 1, known = s.stride_w <= 2;
  count = known ? ceil_div(outputs, PIXELS) : outputs;
  size = outputs / count;
  larger = outputs - size * count;
  const auto pick = [&](int64_t pixels) -> Pixels {
    constexpr std::make_integer_sequence<int, PIXELS> all;
    if (pixels > PIXELS) return nullptr;
    if (s.stride_w == 2) {
      return dense && s.kw == 3   ? pixels_for<2, 3>(pixels, all)
             : dense && s.kw == 5 ? pixels_for<2, 5>(pixels, all)
                                  : pixels_for<2, 0>(pixels, all);
    }
    return dense && s.kw == 3   ? pixels_for<1, 3>(pixels, all)
           : dense && s.kw == 5 ? pixels_for<1, 5>(pixels, all)
                                : pixels_for<1, 0>(pixels, all);
  };
  usual = pick(size);
  one_more = pick(size + 1);
}

int64_t depthwise_packed_bytes(const ConvShape& s) {
  return round_up(s.c, VL) * s.kh * s.kw * sizeof(float);
}

void depthwise_pack(const ConvShape& s, const float* weights, float* packed, const Parallel&) {
  const int64_t taps = s.kh * s.kw;
  for (int64_t c = 0; c < s.c; c += VL) {
    block_pixels((int)min_of<int64_t>(VL, s.c - c), taps, taps, weights + c * taps,
                 packed + c * taps);
  }
}

int64_t depthwise_forward_scratch(const ConvShape& s, int threads) {
  const Plan plan = plan_for(s, threads);
  return lane_count(threads, s.n * plan.c_blocks * plan.strips) * plan.lane_bytes;
}

// Those taps, `dilation` apart from `start` on, that lie in [0, size).
FORCE_INLINE void clip_taps(int64_t taps, int64_t dilation, int64_t start, int64_t size,
                            int64_t& begin, int64_t& end) {
  begin = 0;
  end = taps;
  while (begin < end && start + begin * dilation < 0) begin++;
  while (begin < end && start + (end - 1) * dilation >= size) end--;
}

// Output row `row`, from a plane at x of which input row 0 is the first, even if it is not there.
// The outputs `inside` see the whole width of the window; `groups` are theirs.
static void convolve_row(const ConvShape& s, const ConvSizes& z, const Range& inside,
                         const Groups& groups, int64_t row, const float* x, const float* w,
                         const Ends& ends, const float* add, float* y) {
  int64_t top, bottom;
  const int64_t start = row * s.stride_h - s.pad_t;
  clip_taps(s.kh, s.dilation_h, start, s.h, top, bottom);
  Taps t = {bottom - top, 0, s.kw, s.kw, s.dilation_h * s.w * VL, s.dilation_w * VL};
  x += ((start + top * s.dilation_h) * s.w - s.pad_l) * VL;
  w += top * s.kw * VL;
  const auto at_edge = [&](int64_t begin, int64_t end) {
    for (int64_t column = begin; column < end; column++) {
      const int64_t left = column * s.stride_w;
      clip_taps(s.kw, s.dilation_w, left - s.pad_l, s.w, t.left, t.right);
      sum_taps<1, 1, 0>(t, x + left * VL, w, ends, add ? add + column * VL : nullptr,
                        y + column * VL);
    }
  };
  at_edge(0, inside.begin);
  t.left = 0;
  t.right = s.kw;
  groups.sum(t, x + inside.begin * s.stride_w * VL, w, ends,
             add ? add + inside.begin * VL : nullptr, y + inside.begin * VL);
  at_edge(inside.end, z.ow);
}

void depthwise_forward(const ConvForward& f, const float* x, const float* packed, float* y,
                       void* scratch, const Parallel& parallel) {
  const ConvShape& s = f.shape;
  const Plan plan = plan_for(s, parallel.threads);
  const ConvSizes& z = plan.sizes;
  const Range inside(0, z.ow, s.stride_w, -s.pad_l, s.w - s.dilation_w * (s.kw - 1));
  const Groups groups(s, inside.end - inside.begin);
  const bool x_blocked = f.x_layout == Layout::kBlocked, y_blocked = f.y_layout == Layout::kBlocked;
  for_blocks(parallel, s.n * plan.c_blocks * plan.strips, [&](int64_t block, int lane) {
    const int64_t c = block % plan.c_blocks * VL, rest = block / plan.c_blocks;
    const int64_t strip = rest % plan.strips, image = rest / plan.strips;
    const int64_t plane = image * plan.c_blocks + c / VL;
    const int64_t first = strip * plan.rows, last = min_of(first + plan.rows, z.oh);
    const int channels = (int)min_of<int64_t>(VL, s.c - c);
    Slices slices((char*)scratch + lane * plan.lane_bytes);
    float* loaded = slices.take(min_of(s.h, InputRows(s, 0, plan.rows).rows) * s.w * VL);
    float* strip_out = slices.take(plan.rows * z.ow * VL);

    const float* in = x + plane * s.h * s.w * VL;
    if (!x_blocked) {
      const InputRows rows(s, first, last - first);
      const int64_t begin = min_of(s.h, max_of<int64_t>(0, rows.top));
      const int64_t end = max_of(begin, min_of(s.h, rows.top + rows.rows));
      block_pixels(channels, s.h * s.w, (end - begin) * s.w,
                   x + ((image * s.c + c) * s.h + begin) * s.w, loaded);
      in = loaded - begin * s.w * VL;
    }
    const int64_t place = (plane * z.oh + first) * z.ow * VL, pixels = (last - first) * z.ow;
    const int64_t corner = (image * s.k + c) * z.pixels + first * z.ow;  // in plain layout
    float* out = y_blocked ? y + place : strip_out;
    const float* add = f.add && y_blocked ? f.add + place : nullptr;
    if (f.add && !y_blocked) {
      block_pixels(channels, z.pixels, pixels, f.add + corner, strip_out);
      add = strip_out;
    }
    const Ends ends = {!f.bias          ? vf{}
                       : channels == VL ? load(f.bias + c)
                                        : load_partial(f.bias + c, channels),
                       splat(f.bounds.low), splat(f.bounds.high)};
    for (int64_t row = first; row < last; row++) {
      const int64_t at = (row - first) * z.ow * VL;
      convolve_row(s, z, inside, groups, row, in, packed + c * z.taps, ends,
                   add ? add + at : nullptr, out + at);
    }
    if (!y_blocked) transpose(pixels, channels, strip_out, VL, y + corner, z.pixels);
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
