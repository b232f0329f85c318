// Convolution as a matrix product, for every shape:
//   y[group_k, pixels] = weights[group_k, reduction] * columns[reduction, pixels]
// per image and group. Vectors run along pixels, so no channel count wastes lanes, and input and
// output stay plain NCHW. The columns are gathered straight into the panels that tiles read.
#include "kernels/im2col.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

constexpr int64_t PIXELS = 128;  // pixels whose panels are gathered at a time

namespace {

struct Plan {
  ConvSizes sizes;
  int64_t chunk, chunks;  // pixels of one block of work; blocks per image
  int64_t lane_bytes;
};

FORCE_INLINE Plan plan_for(const ConvShape& s) {
  Plan p = {ConvSizes(s), 0, 0, 0};
  const int64_t wanted = ceil_div(8, s.n);
  p.chunk = min_of<int64_t>(1024, round_up(ceil_div(p.sizes.pixels, wanted), PANEL));
  p.chunks = ceil_div(p.sizes.pixels, p.chunk);
  Slices lane(nullptr);
  lane.take(padded_size(s, s.c, min_of(p.chunk, p.sizes.pixels)));
  lane.take<ptrdiff_t>(p.sizes.reduction);
  lane.take(PIXELS * min_of(DEPTH, p.sizes.reduction));
  p.lane_bytes = lane.bytes();
  return p;
}

}  // namespace

int64_t im2col_packed_bytes(const ConvShape& s) {
  const ConvSizes sizes(s);
  return s.group * packed_rows_size(sizes.group_k, sizes.reduction) * sizeof(float);
}

void im2col_pack(const ConvShape& s, const float* weights, float* packed,
                 const Parallel& parallel) {
  const ConvSizes sizes(s);
  const int64_t pieces = ceil_div(sizes.reduction, DEPTH);
  for_blocks(parallel, s.group * pieces, [&](int64_t block, int) {
    const int64_t g = block / pieces, k0 = block % pieces * DEPTH;
    pack_rows(false, sizes.group_k, min_of(DEPTH, sizes.reduction - k0), 1,
              weights + g * sizes.group_k * sizes.reduction + k0, sizes.reduction,
              packed + g * packed_rows_size(sizes.group_k, sizes.reduction) +
                  packed_rows_size(sizes.group_k, k0));
  });
}

int64_t im2col_forward_scratch(const ConvShape& s, int threads) {
  const Plan plan = plan_for(s);
  return lane_count(threads, s.n * plan.chunks) * plan.lane_bytes;
}

void im2col_forward(const ConvForward& f, const float* x, const float* packed, float* y,
                    void* scratch, const Parallel& parallel) {
  const ConvShape& s = f.shape;
  const Plan plan = plan_for(s);
  const ConvSizes& sizes = plan.sizes;
  for_blocks(parallel, s.n * plan.chunks, [&](int64_t block, int lane) {
    const int64_t image = block / plan.chunks, begin = block % plan.chunks * plan.chunk;
    const int64_t end = min_of(begin + plan.chunk, sizes.pixels);
    Slices slices((char*)scratch + lane * plan.lane_bytes);
    float* padded = slices.take(padded_size(s, s.c, min_of(plan.chunk, sizes.pixels)));
    ptrdiff_t* offsets = slices.take<ptrdiff_t>(sizes.reduction);
    float* panels = slices.take(PIXELS * min_of(DEPTH, sizes.reduction));
    Window window = make_window(s, s.c, x + image * s.c * s.h * s.w, begin, end, padded);
    term_offsets(s, window.plane, window.width, 0, sizes.reduction, offsets);

    Product p = {};
    p.m = sizes.group_k;
    p.panels = panels;
    p.ldc = sizes.pixels;
    for (int64_t g = 0; g < s.group; g++, window.x += sizes.group_c * window.plane) {
      const float* rows = packed + g * packed_rows_size(sizes.group_k, sizes.reduction);
      for (int64_t pixel = begin; pixel < end; pixel += PIXELS) {
        p.n = min_of(PIXELS, end - pixel);
        const int64_t corner = (image * s.k + g * sizes.group_k) * sizes.pixels + pixel;
        p.c = y + corner;
        if (f.add && f.add != y) {
          for (int64_t k = 0; k < sizes.group_k; k++) {
            copy(f.add + corner + k * sizes.pixels, p.n, p.c + k * sizes.pixels);
          }
        }
        for (int64_t k0 = 0; k0 < sizes.reduction; k0 += DEPTH) {
          p.k = min_of(DEPTH, sizes.reduction - k0);
          p.rows = rows + packed_rows_size(sizes.group_k, k0);
          p.accumulate = k0 > 0 || f.add;
          p.bias_row = k0 == 0 && f.bias ? f.bias + g * sizes.group_k : nullptr;
          p.bounds = k0 + p.k == sizes.reduction ? f.bounds : Bounds();
          for (int64_t j = 0; j < p.n; j += PANEL) {
            const int64_t columns = min_of<int64_t>(PANEL, p.n - j), row = round_up(columns, VL);
            gather(s, window, offsets + k0, p.k, pixel + j, columns, panels + j * p.k, row, row);
          }
          product(p);
        }
      }
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
