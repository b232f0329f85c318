// Gradients of a convolution as matrix products, for every shape.
//   by data:    columns = weights^T * dy, then every column value is added to the input element it
//               came from
//   by weights: dw = sum over images of dy * columns^T
#include "kernels/im2col.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// ---- by data -----------------------------------------------------------------

namespace {

struct DataPlan {
  ConvSizes sizes;
  bool direct;               // 1x1, stride 1: the columns are the gradient
  int64_t channels, blocks;  // input channels of a block of work; such blocks per group
  int64_t rows;              // output rows whose columns are made at a time
  int64_t packed_block;      // floats of a block's packed weights
  int64_t shared_bytes, lane_bytes;

  FORCE_INLINE int64_t channels_of(int64_t block) const {
    return min_of(channels, sizes.group_c - block * channels);
  }
};

FORCE_INLINE DataPlan data_plan(const ConvShape& s) {
  DataPlan p = {ConvSizes(s), false, 0, 0, 0, 0, 0, 0};
  const ConvSizes& z = p.sizes;
  p.direct = z.taps == 1 && s.stride_h == 1 && s.stride_w == 1 && !z.padded;
  p.channels = min_of(z.group_c, max_of<int64_t>(1, 12 * TILE_ROWS / z.taps));
  p.blocks = ceil_div(z.group_c, p.channels);
  p.rows = min_of(z.oh, max_of<int64_t>(1, 256 / z.ow));
  p.packed_block = packed_rows_size(p.channels * z.taps, z.group_k);
  Slices shared(nullptr), lane(nullptr);
  shared.take(s.group * p.blocks * p.packed_block);
  p.shared_bytes = shared.bytes();
  lane.take(round_up(p.rows * z.ow, VL) * min_of(DEPTH, z.group_k));
  if (!p.direct) lane.take(p.channels * z.taps * p.rows * z.ow);
  p.lane_bytes = lane.bytes();
  return p;
}

}  // namespace

template <int WIDTH>
static FORCE_INLINE void add_vector(const float* src, float* dst) {
  typedef float vector __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias));
  *(vector*)dst += *(const vector*)src;
}

// dst[i * stride] += src[i], i < n. Short ends are added in smaller vectors: a masked store would
// stall the next load that comes near it.
static void add_strided(const float* src, int64_t n, float* dst, int64_t stride) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i + VL <= n; i += VL) add_vector<VL>(src + i, dst + i);
    if (VL > 8 && i + 8 <= n) {
      add_vector<8>(src + i, dst + i);
      i += 8;
    }
    if (VL > 4 && i + 4 <= n) {
      add_vector<4>(src + i, dst + i);
      i += 4;
    }
  }
  for (; i < n; i++) dst[i * stride] += src[i];
}

// Adds columns[channels * taps][rows * ow] of output rows [first, first + rows) to dx. Goes through
// the channels innermost: a place written just before can't be read back quickly at another offset.
static void add_columns(const ConvShape& s, const ConvSizes& z, int64_t channels, int64_t first,
                        int64_t rows, const float* columns, float* dx) {
  for (int64_t tap = 0; tap < z.taps; tap++) {
    const int64_t row_offset = tap / s.kw * s.dilation_h - s.pad_t;
    const int64_t offset = tap % s.kw * s.dilation_w - s.pad_l;
    const Range ys(first, first + rows, s.stride_h, row_offset, s.h);
    const Range xs(0, z.ow, s.stride_w, offset, s.w);
    if (xs.begin >= xs.end) continue;
    for (int64_t c = 0; c < channels; c++) {
      const float* from = columns + (c * z.taps + tap) * rows * z.ow;
      float* to = dx + c * s.h * s.w + offset;
      for (int64_t y = ys.begin; y < ys.end; y++) {
        add_strided(from + (y - first) * z.ow + xs.begin, xs.end - xs.begin,
                    to + (y * s.stride_h + row_offset) * s.w + xs.begin * s.stride_w, s.stride_w);
      }
    }
  }
}

int64_t im2col_backward_data_scratch(const ConvShape& s, int threads) {
  const DataPlan plan = data_plan(s);
  const int64_t blocks = s.n * s.group * plan.blocks;
  return plan.shared_bytes + lane_count(threads, blocks) * plan.lane_bytes;
}

void im2col_backward_data(const ConvShape& s, const float* dy, const float* weights, float* dx,
                          void* scratch, const Parallel& parallel) {
  const DataPlan plan = data_plan(s);
  const ConvSizes& z = plan.sizes;
  float* packed = (float*)scratch;
  for_blocks(parallel, s.group * plan.blocks, [&](int64_t block, int) {
    const int64_t g = block / plan.blocks, b = block % plan.blocks;
    const int64_t terms = plan.channels_of(b) * z.taps;
    const float* from = weights + g * z.group_k * z.reduction + b * plan.channels * z.taps;
    for (int64_t k0 = 0; k0 < z.group_k; k0 += DEPTH) {
      pack_rows(true, terms, min_of(DEPTH, z.group_k - k0), 1, from + k0 * z.reduction, z.reduction,
                packed + block * plan.packed_block + packed_rows_size(terms, k0));
    }
  });
  for_blocks(parallel, s.n * s.group * plan.blocks, [&](int64_t block, int lane) {
    const int64_t image = block / (s.group * plan.blocks), part = block % (s.group * plan.blocks);
    const int64_t g = part / plan.blocks, b = part % plan.blocks;
    const int64_t channels = plan.channels_of(b);
    Slices slices((char*)scratch + plan.shared_bytes + lane * plan.lane_bytes);
    float* panels = slices.take(round_up(plan.rows * z.ow, VL) * min_of(DEPTH, z.group_k));
    float* columns = plan.direct ? nullptr : slices.take(plan.channels * z.taps * plan.rows * z.ow);
    float* to = dx + (image * s.c + g * z.group_c + b * plan.channels) * s.h * s.w;
    if (!plan.direct) __builtin_memset(to, 0, channels * s.h * s.w * sizeof(float));

    Product p = {};
    p.m = channels * z.taps;
    p.rows_trans = true;
    p.panels = panels;
    for (int64_t first = 0; first < z.oh; first += plan.rows) {
      const int64_t rows = min_of(plan.rows, z.oh - first);
      p.n = rows * z.ow;
      p.c = plan.direct ? to + first * z.ow : columns;
      p.ldc = plan.direct ? z.pixels : p.n;
      const float* from = dy + (image * s.k + g * z.group_k) * z.pixels + first * z.ow;
      for (int64_t k0 = 0; k0 < z.group_k; k0 += DEPTH) {
        p.k = min_of(DEPTH, z.group_k - k0);
        p.rows = packed + part * plan.packed_block + packed_rows_size(p.m, k0);
        p.accumulate = k0 > 0;
        pack_panels(false, p.n, p.k, from + k0 * z.pixels, z.pixels, panels);
        product(p);
      }
      if (!plan.direct) add_columns(s, z, channels, first, rows, columns, to);
    }
  });
}

// ---- by weights --------------------------------------------------------------

namespace {

constexpr int64_t TERMS = 128;  // terms of the sum, that is columns of dw, in a block of work

struct WeightsPlan {
  ConvSizes sizes;
  int64_t slices;    // of the batch
  int64_t parts;     // blocks of terms per group
  int64_t images;    // small images are multiplied several at a time
  int64_t pixels;    // large ones in pieces
  int64_t channels;  // channels that TERMS terms can touch
  int64_t shared_bytes, lane_bytes;
};

FORCE_INLINE WeightsPlan weights_plan(const ConvShape& s) {
  WeightsPlan p = {ConvSizes(s), 0, 0, 0, 0, 0, 0, 0};
  const ConvSizes& z = p.sizes;
  p.parts = ceil_div(z.reduction, TERMS);
  p.slices = batch_slices(s.n, s.group * p.parts);
  p.images = min_of(ceil_div(s.n, p.slices), max_of<int64_t>(1, 256 / z.pixels));
  p.pixels = min_of(z.pixels, DEPTH);
  p.channels = min_of(z.group_c, TERMS / z.taps + 2);
  Slices shared(nullptr), lane(nullptr);
  if (p.slices > 1) shared.take(p.slices * s.k * z.reduction);
  p.shared_bytes = shared.bytes();
  const int64_t depth = p.images * p.pixels;
  lane.take(padded_size(s, p.channels, p.pixels));
  lane.take<ptrdiff_t>(TERMS);
  lane.take(TERMS * depth);                        // columns
  lane.take(TERMS * depth);                        // panels
  lane.take(packed_rows_size(z.group_k, depth));   // dy
  if (p.images > 1) lane.take(z.group_k * depth);  // dy of several images side by side
  p.lane_bytes = lane.bytes();
  return p;
}

}  // namespace

int64_t im2col_backward_weights_scratch(const ConvShape& s, int threads) {
  const WeightsPlan plan = weights_plan(s);
  const int64_t blocks = plan.slices * s.group * plan.parts;
  return plan.shared_bytes + lane_count(threads, blocks) * plan.lane_bytes;
}

// dw[group_k][terms of one part] of one group, summed over images [first, last).
static void weights_block(const ConvShape& s, const WeightsPlan& plan, int64_t g, int64_t part,
                          int64_t first, int64_t last, const float* x, const float* dy, float* dw,
                          void* scratch) {
  const ConvSizes& z = plan.sizes;
  const int64_t depth = plan.images * plan.pixels;
  Slices slices(scratch);
  float* padded = slices.take(padded_size(s, plan.channels, plan.pixels));
  ptrdiff_t* offsets = slices.take<ptrdiff_t>(TERMS);
  float* columns = slices.take(TERMS * depth);
  float* panels = slices.take(TERMS * depth);
  float* rows = slices.take(packed_rows_size(z.group_k, depth));
  float* side_by_side = plan.images > 1 ? slices.take(z.group_k * depth) : nullptr;

  const int64_t term = part * TERMS, terms = min_of(TERMS, z.reduction - term);
  const int64_t channel = term / z.taps, channels = (term + terms - 1) / z.taps + 1 - channel;
  Product p = {};
  p.m = z.group_k;
  p.n = terms;
  p.rows = rows;
  p.panels = panels;
  p.c = dw + g * z.group_k * z.reduction + term;
  p.ldc = z.reduction;
  for (int64_t image = first; image < last; image += plan.images) {
    const int64_t images = min_of(plan.images, last - image);
    for (int64_t begin = 0; begin < z.pixels; begin += plan.pixels) {
      const int64_t pixels = min_of(plan.pixels, z.pixels - begin);
      p.k = images * pixels;
      const float* from = nullptr;
      for (int64_t i = 0; i < images; i++) {
        const float* map = x + ((image + i) * s.c + g * z.group_c + channel) * s.h * s.w;
        const Window window = make_window(s, channels, map, begin, begin + pixels, padded);
        term_offsets(s, window.plane, window.width, term - channel * z.taps, terms, offsets);
        gather(s, window, offsets, terms, begin, pixels, columns + i * pixels, p.k,
               p.k - i * pixels);
        from = dy + ((image + i) * s.k + g * z.group_k) * z.pixels + begin;
        if (images == 1) continue;
        for (int64_t k = 0; k < z.group_k; k++) {
          copy(from + k * z.pixels, pixels, side_by_side + k * p.k + i * pixels);
        }
      }
      pack_rows(false, p.m, p.k, 1, images == 1 ? from : side_by_side, images == 1 ? z.pixels : p.k,
                rows);
      pack_panels(true, terms, p.k, columns, p.k, panels);
      p.accumulate = image > first || begin > 0;
      product(p);
    }
  }
}

void im2col_backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw,
                             void* scratch, const Parallel& parallel) {
  const WeightsPlan plan = weights_plan(s);
  const int64_t size = s.k * plan.sizes.reduction;
  float* sums = plan.slices > 1 ? (float*)scratch : dw;
  for_blocks(parallel, plan.slices * s.group * plan.parts, [&](int64_t block, int lane) {
    const int64_t slice = block % plan.slices, rest = block / plan.slices;
    weights_block(s, plan, rest / plan.parts, rest % plan.parts, slice * s.n / plan.slices,
                  (slice + 1) * s.n / plan.slices, x, dy, sums + slice * size,
                  (char*)scratch + plan.shared_bytes + lane * plan.lane_bytes);
  });
  if (plan.slices > 1) add_slices(plan.slices, size, sums, dw, parallel);
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
