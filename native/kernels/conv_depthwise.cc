// Depthwise convolution: one filter per channel. On blocked activations every pixel of a block of
// channels is one vector, and so is every tap of their filters.
#include "kernels/conv_direct.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// A block of work is a strip of output rows of one block of channels of one image. Threads share
// what a pointwise convolution before or after shares, that is rows of large images, channels of
// small ones: what one core has written it reads again.
struct Plan {
  ConvSizes sizes;
  int64_t c_blocks, rows, strips;
  std::size_t lane_bytes;
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

// The taps that lie inside the image, and where their inputs and filters are.
struct Taps {
  const float* x;  // input of tap (0, 0); may lie outside
  const float* w;
  int64_t top, bottom, left, right;  // taps [top, bottom) x [left, right)
  int64_t kw, row, column;           // floats between rows and columns of taps in x
};

constexpr int PIXELS = VL == 16 ? 8 : VL == 8 ? 4 : 6;  // outputs held in registers

// P output pixels that all see the same taps; KW: the window's width when all of it is seen, or 0.
template <int P, int STRIDE, int KW>
FORCE_INLINE void sum_taps(const Taps& t, vf bias, const float* add, const Bounds& bounds,
                           float* y) {
  vf acc[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; p++) acc[p] = add ? bias + load(add + p * VL) : bias;
  for (int64_t r = t.top; r < t.bottom; r++) {
    const float *x = t.x + r * t.row, *w = t.w + r * t.kw * VL;
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
#pragma GCC unroll 16
  for (int p = 0; p < P; p++) store(y + p * VL, cut(acc[p], bounds));
}

// `count` output pixels, `stride` input pixels apart, that see the whole width of the window.
template <int STRIDE, int KW>
FORCE_INLINE void sum_row(Taps t, int64_t count, vf bias, const float* add, const Bounds& bounds,
                          float* y) {
  const auto next = [&](int64_t pixels) {
    t.x += pixels * STRIDE * VL;
    y += pixels * VL;
    if (add) add += pixels * VL;
  };
  for (; count >= PIXELS; count -= PIXELS) {
    sum_taps<PIXELS, STRIDE, KW>(t, bias, add, bounds, y);
    next(PIXELS);
  }
  if (count >= PIXELS / 2) {
    sum_taps<PIXELS / 2, STRIDE, KW>(t, bias, add, bounds, y);
    next(PIXELS / 2);
    count -= PIXELS / 2;
  }
  for (; count > 0; count--) {
    sum_taps<1, STRIDE, KW>(t, bias, add, bounds, y);
    next(1);
  }
}

using Row = void (*)(Taps, int64_t, vf, const float*, const Bounds&, float*);

Row row_for(const ConvShape& s) {
  const bool dense = s.dilation_w == 1;
  if (s.stride_w == 1) {
    return dense && s.kw == 3 ? sum_row<1, 3> : dense && s.kw == 5 ? sum_row<1, 5> : sum_row<1, 0>;
  }
  if (s.stride_w != 2) return nullptr;
  return dense && s.kw == 3 ? sum_row<2, 3> : dense && s.kw == 5 ? sum_row<2, 5> : sum_row<2, 0>;
}

}  // namespace

std::size_t depthwise_packed_bytes(const ConvShape& s) {
  return (std::size_t)(round_up(s.c, VL) * s.kh * s.kw) * sizeof(float);
}

void depthwise_pack(const ConvShape& s, const float* weights, float* packed, const Parallel&) {
  const int64_t taps = s.kh * s.kw;
  for (int64_t c = 0; c < s.c; c += VL) {
    block_pixels((int)min_of<int64_t>(VL, s.c - c), taps, taps, weights + c * taps,
                 packed + c * taps);
  }
}

std::size_t depthwise_forward_scratch(const ConvShape& s, int threads) {
  const Plan plan = plan_for(s, threads);
  return (std::size_t)lane_count(threads, s.n * plan.c_blocks * plan.strips) * plan.lane_bytes;
}

// Output row `row`, from a plane at x of which input row 0 is the first, even if it is not there.
static void convolve_row(const ConvShape& s, const ConvSizes& z, Row inner, int64_t row,
                         const float* x, const float* w, vf bias, const float* add,
                         const Bounds& bounds, float* y) {
  const int64_t top = row * s.stride_h - s.pad_t;
  const Range rows(0, s.kh, s.dilation_h, top, s.h);
  Taps t = {};
  t.w = w;
  t.kw = s.kw;
  t.top = rows.begin;
  t.bottom = rows.end;
  t.row = s.dilation_h * s.w * VL;
  t.column = s.dilation_w * VL;
  // Outputs [first, last) see the whole width of the window.
  const int64_t reach = s.dilation_w * (s.kw - 1);
  const Range inside(0, z.ow, s.stride_w, -s.pad_l, s.w - reach);
  const int64_t first = inner ? min_of(inside.begin, z.ow) : z.ow;
  const int64_t last = inner ? max_of(first, inside.end) : z.ow;
  const auto corner = [&](int64_t column) {
    return x + (top * s.w + column * s.stride_w - s.pad_l) * VL;
  };
  for (int64_t column = 0; column < z.ow; column++) {
    const float* from = add ? add + column * VL : nullptr;
    t.x = corner(column);
    if (column == first && last > first) {
      t.left = 0;
      t.right = s.kw;
      inner(t, last - first, bias, from, bounds, y + column * VL);
      column = last - 1;
      continue;
    }
    const Range columns(0, s.kw, s.dilation_w, column * s.stride_w - s.pad_l, s.w);
    t.left = columns.begin;
    t.right = columns.end;
    sum_taps<1, 1, 0>(t, bias, from, bounds, y + column * VL);
  }
}

void depthwise_forward(const ConvForward& f, const float* x, const float* packed, float* y,
                       void* scratch, const Parallel& parallel) {
  const ConvShape& s = f.shape;
  const Plan plan = plan_for(s, parallel.threads);
  const ConvSizes& z = plan.sizes;
  const Row inner = row_for(s);
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
    const vf bias = !f.bias          ? vf{}
                    : channels == VL ? load(f.bias + c)
                                     : load_partial(f.bias + c, channels);
    for (int64_t row = first; row < last; row++) {
      const int64_t at = (row - first) * z.ow * VL;
      convolve_row(s, z, inner, row, in, packed + c * z.taps, bias, add ? add + at : nullptr,
                   f.bounds, out + at);
    }
    if (!y_blocked) transpose(pixels, channels, strip_out, VL, y + corner, z.pixels);
  });
}

// ---- after a pointwise convolution -------------------------------------------

namespace {

// A block of work is a strip of output rows of a pair of channel vectors of one image: what the
// pointwise convolution gives of the rows that the strip looks at fits into the nearer caches, and
// few of them are computed for two strips.
struct PairPlan {
  DirectLayout expand;
  ConvSizes sizes;  // of the depthwise convolution
  int64_t c_blocks, pairs, rows, strips;
  int64_t held_rows;  // most input rows of a strip
  std::size_t shared_bytes, lane_bytes;
};

FORCE_INLINE PairPlan pair_plan_for(const ExpandDepthwise& f) {
  constexpr int64_t HELD = 96 * 1024;  // floats
  const ConvShape& s = f.depthwise;
  PairPlan p = {DirectLayout(f.expand), ConvSizes(s), ceil_div(f.expand.c, VL), 0, 0, 0, 0, 0, 0};
  p.pairs = ceil_div(p.expand.k_vectors, TILE_VECTORS);
  const int64_t fit = HELD / (s.w * VL * TILE_VECTORS) - p.sizes.reach_h;
  p.rows = max_of<int64_t>(1, fit / s.stride_h + 1);
  p.strips = ceil_div(p.sizes.oh, p.rows);
  p.rows = ceil_div(p.sizes.oh, p.strips);
  p.held_rows = min_of(s.h, InputRows(s, 0, p.rows).rows);
  Slices shared(nullptr), lane(nullptr);
  shared.take<Run>(p.c_blocks);
  shared.take(2 * p.expand.k_vectors * VL);  // biases
  p.shared_bytes = shared.bytes();
  lane.take(p.held_rows * s.w * VL * TILE_VECTORS);
  p.lane_bytes = lane.bytes();
  return p;
}

}  // namespace

std::size_t expand_depthwise_scratch_bytes(const ExpandDepthwise& f, int threads) {
  const PairPlan p = pair_plan_for(f);
  const int64_t blocks = f.depthwise.n * p.strips * p.pairs;
  return p.shared_bytes + (std::size_t)lane_count(threads, blocks) * p.lane_bytes;
}

// `pixels` pixels of a pair of vectors of a pointwise convolution.
static void expand_pixels(const TileShape& shape, TilePointers at, int64_t pixels, int vectors) {
  const RowTiles tiles(pixels);
  const float* x = at.a;
  float* out = at.out;
  for (int64_t t = 0; t < tiles.tiles; t++) {
    at.a = x + tiles.begin(t) * VL;
    at.out = out + tiles.begin(t) * VL;
    tile_for(Spacing::kVector, tiles.height(t), vectors)(shape, at);
  }
}

void expand_depthwise(const ExpandDepthwise& f, const float* x, const float* expand_packed,
                      const float* packed, float* y, void* scratch, const Parallel& parallel) {
  const ConvShape& s = f.depthwise;
  const PairPlan plan = pair_plan_for(f);
  const ConvSizes& z = plan.sizes;
  const DirectLayout& expand = plan.expand;
  const Row inner = row_for(s);
  const int64_t channels = expand.k_vectors * VL, plane = s.h * s.w * VL;
  Slices shared(scratch);
  Run* runs = shared.take<Run>(plan.c_blocks);
  float* biases = shared.take(2 * channels);
  for (int64_t c = 0; c < plan.c_blocks; c++) {
    runs[c] = {(ptrdiff_t)(c * plane), (ptrdiff_t)min_of<int64_t>(VL, f.expand.c - c * VL)};
  }
  __builtin_memset(biases, 0, 2 * channels * sizeof(float));
  if (f.expand_bias) copy(f.expand_bias, s.c, biases);
  if (f.bias) copy(f.bias, s.c, biases + channels);

  for_blocks(parallel, s.n * plan.strips * plan.pairs, [&](int64_t block, int lane) {
    const int64_t vector = block % plan.pairs * TILE_VECTORS, rest = block / plan.pairs;
    const int64_t image = rest / plan.strips, first = rest % plan.strips * plan.rows;
    const int64_t last = min_of(first + plan.rows, z.oh);
    const int vectors = expand.vectors_in_pair(vector);
    const InputRows in(s, first, last - first);
    const int64_t begin = min_of(s.h, max_of<int64_t>(0, in.top));
    const int64_t end = max_of(begin, min_of(s.h, in.top + in.rows));
    float* held = (float*)((char*)scratch + plan.shared_bytes + lane * plan.lane_bytes);

    TileShape shape;
    shape.runs = runs;
    shape.run_count = plan.c_blocks;
    shape.w_step = vectors * VL;
    shape.out_row = VL;
    shape.out_vector = (end - begin) * s.w * VL;
    shape.bounds = f.between;
    TilePointers at = {x + image * plan.c_blocks * plane + begin * s.w * VL,
                       expand.pair((float*)expand_packed, 0, vector), held};
    at.bias_vector = biases + vector * VL;
    expand_pixels(shape, at, (end - begin) * s.w, vectors);

    for (int64_t v = 0; v < vectors; v++) {
      const int64_t c = (vector + v) * VL;
      const float* from = held + v * shape.out_vector - begin * s.w * VL;
      float* to = y + ((image * expand.k_vectors + vector + v) * z.oh + first) * z.ow * VL;
      for (int64_t row = first; row < last; row++, to += z.ow * VL) {
        convolve_row(s, z, inner, row, from, packed + c * z.taps, load(biases + channels + c),
                     nullptr, f.bounds, to);
      }
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
