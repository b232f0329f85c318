// Gradients of a direct convolution.
//   by data:    a forward convolution of dy with the filters turned by 180 degrees and the channels
//               exchanged
//   by weights: dw[k][c][tap] = sum over pixels of dy[k][pixel] * x[c][pixel + tap]: tiles of input
//               channels (or, with a plain input, of window columns) x output channels
#include "kernels/conv_direct.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// ---- by data -----------------------------------------------------------------

static void pack_turned(const DirectLayout& layout, const float* weights, float* packed,
                        const Parallel& parallel) {
  const ConvSizes& z = layout.sizes;  // of the turned shape: group_c counts the filters
  for_blocks(parallel, layout.s.group * layout.k_vectors, [&](int64_t b, int) {
    const int64_t group = b / layout.k_vectors, vector = b % layout.k_vectors;
    const int64_t first = vector / TILE_VECTORS * TILE_VECTORS;
    const int64_t row = layout.vectors_in_pair(first) * VL;
    float* out = layout.pair(packed, group, first) + (vector - first) * VL;
    const int lanes = (int)min_of<int64_t>(VL, z.group_k - vector * VL);
    for (int64_t k = 0; k < z.group_c; k++) {
      const float* filter = weights + ((group * z.group_c + k) * z.group_k + vector * VL) * z.taps;
      for (int64_t tap = 0; tap < z.taps; tap += VL) {
        const int width = (int)min_of<int64_t>(VL, z.taps - tap);
        vf block[VL];
        if (z.taps == 1) {
          block[0] = lanes == VL ? load(filter) : load_partial(filter, lanes);
        } else {
          load_block(filter + tap, z.taps, lanes, width, block);
          transpose(block);
        }
        for (int l = 0; l < width; l++) {
          const int64_t term = k * z.taps + z.taps - 1 - (tap + l);
          store(out + layout.step_of(term) * row, block[l]);
        }
      }
    }
  });
}

int64_t direct_backward_data_scratch(const ConvShape& s, int threads) {
  const ConvShape t = turned(s);
  return round_up(direct_packed_bytes(t), kAlignment) + direct_forward_scratch(t, threads);
}

void direct_backward_data(const ConvShape& s, const float* dy, const float* weights, float* dx,
                          void* scratch, const Parallel& parallel) {
  const ConvShape t = turned(s);
  float* packed = (float*)scratch;
  pack_turned(DirectLayout(t), weights, packed, parallel);
  ConvForward f;
  f.shape = t;
  direct_forward(f, dy, packed, dx, (char*)scratch + round_up(direct_packed_bytes(t), kAlignment),
                 parallel);
}

// ---- by weights --------------------------------------------------------------

namespace {

struct Plan {
  DirectLayout layout;
  int64_t vectors, parts;  // vectors of output channels per block of work
  int64_t slices;          // of the batch
  int64_t rows;            // output rows brought into form at a time
  int64_t piece;           // output rows summed at a time: they stay in the first cache
  int64_t input_size, output_size;
  int64_t shared_bytes, lane_bytes;
};

FORCE_INLINE Plan plan_for(const ConvShape& s) {
  Plan p = {DirectLayout(s), 0, 0, 0, s.oh(), 0, 0, 0, 0, 0};
  const ConvSizes& z = p.layout.sizes;
  p.vectors = min_of<int64_t>(p.layout.k_vectors, 2 * TILE_VECTORS);
  p.parts = ceil_div(p.layout.k_vectors, p.vectors);
  p.slices = batch_slices(s.n, p.parts);
  const auto input = [&] {
    const InputRows in(s, 0, p.rows);
    return p.layout.c_blocks * in.rows * in.width * p.layout.unit;
  };
  while (p.rows > 8 && input() > 256 * 1024) p.rows = ceil_div(p.rows, 2);
  p.piece = min_of(p.rows, max_of<int64_t>(1, 6144 / (z.ow * (TILE_VECTORS + 1) * VL)));
  p.input_size = input();
  p.output_size = p.vectors * p.rows * z.ow * VL;
  Slices shared(nullptr), lane(nullptr);
  shared.take(p.slices * p.layout.k_vectors * VL * z.reduction);
  p.shared_bytes = shared.bytes();
  lane.take(p.input_size);
  lane.take(p.output_size);
  lane.take<Run>(p.piece);
  p.lane_bytes = lane.bytes();
  return p;
}

}  // namespace

int64_t direct_backward_weights_scratch(const ConvShape& s, int threads) {
  const Plan plan = plan_for(s);
  return plan.shared_bytes + lane_count(threads, plan.slices * plan.parts) * plan.lane_bytes;
}

// Adds `runs` (output rows) to the sums of one pair of vectors. x and dy point to the first row.
static void add_rows(const DirectLayout& layout, TileShape& shape, bool accumulate, const float* x,
                     int64_t plane, int64_t width, const float* dy, int vectors, float* sums) {
  const ConvShape& s = layout.s;
  const Spacing spacing = layout.plain && s.dilation_w != 1 ? Spacing::kAny : Spacing::kOne;
  shape.out_row = vectors * VL;
  for (int64_t c = 0; c < layout.c_blocks; c++) {
    for (int64_t r = 0; r < s.kh; r++) {
      const float* row = x + c * plane + r * s.dilation_h * width * layout.unit;
      const int64_t columns = layout.plain ? 1 : s.kw;
      const int64_t height = layout.plain ? s.kw : layout.channels_in(c);
      const RowTiles tiles(height);
      for (int64_t q = 0; q < columns; q++, sums += height * shape.out_row) {
        for (int64_t t = 0; t < tiles.tiles; t++) {
          const int64_t begin = tiles.begin(t);
          TilePointers at = {
              row + (layout.plain ? begin * s.dilation_w : q * s.dilation_w * VL + begin), dy,
              sums + begin * shape.out_row};
          if (accumulate) at.add = at.out;
          tile_for(spacing, tiles.height(t), vectors)(shape, at);
        }
      }
    }
  }
}

// Sums of vectors [first, last) over images [begin, end), ordered like packed filters.
static void sum_images(const Plan& plan, int64_t first, int64_t last, int64_t begin, int64_t end,
                       const float* x, const float* dy, float* sums, void* scratch) {
  const DirectLayout& layout = plan.layout;
  const ConvShape& s = layout.s;
  const ConvSizes& z = layout.sizes;
  Slices slices(scratch);
  float* loaded = slices.take(plan.input_size);
  float* blocked = slices.take(plan.output_size);
  Run* runs = slices.take<Run>(plan.piece);
  const InputRows strip(s, 0, plan.rows);
  const int64_t unit = layout.unit, width = strip.width, plane = strip.rows * width * unit;
  const int64_t line = s.stride_h * width * unit, dy_plane = plan.rows * z.ow * VL;
  for (int64_t i = 0; i < plan.piece; i++) runs[i] = {(ptrdiff_t)(i * line), (ptrdiff_t)z.ow};

  TileShape shape;
  shape.runs = runs;
  shape.a_pixel = s.dilation_w;
  shape.a_step = s.stride_w * unit;
  shape.w_step = VL;
  shape.w_vector = dy_plane;
  bool accumulate = false;
  for (int64_t image = begin; image < end; image++) {
    for (int64_t top = 0; top < z.oh; top += plan.rows) {
      const int64_t rows = min_of(plan.rows, z.oh - top);
      load_rows(layout, InputRows(s, top, plan.rows), false, x + image * s.c * s.h * s.w, loaded);
      for (int64_t v = first; v < last; v++) {
        block_pixels((int)min_of<int64_t>(VL, s.k - v * VL), z.pixels, rows * z.ow,
                     dy + (image * s.k + v * VL) * z.pixels + top * z.ow,
                     blocked + (v - first) * dy_plane);
      }
      for (int64_t piece = 0; piece < rows; piece += plan.piece) {
        shape.run_count = min_of(plan.piece, rows - piece);
        for (int64_t v = first; v < last; v += TILE_VECTORS) {
          add_rows(layout, shape, accumulate, loaded + piece * line, plane, width,
                   blocked + (v - first) * dy_plane + piece * z.ow * VL, layout.vectors_in_pair(v),
                   layout.pair(sums, 0, v));
        }
        accumulate = true;
      }
    }
  }
}

void direct_backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw,
                             void* scratch, const Parallel& parallel) {
  const Plan plan = plan_for(s);
  const DirectLayout& layout = plan.layout;
  const ConvSizes& z = layout.sizes;
  const int64_t size = layout.k_vectors * VL * z.reduction;
  float* sums = (float*)scratch;
  for_blocks(parallel, plan.slices * plan.parts, [&](int64_t block, int lane) {
    const int64_t slice = block % plan.slices, first = block / plan.slices * plan.vectors;
    sum_images(plan, first, min_of(first + plan.vectors, layout.k_vectors),
               slice * s.n / plan.slices, (slice + 1) * s.n / plan.slices, x, dy,
               sums + slice * size, (char*)scratch + plan.shared_bytes + lane * plan.lane_bytes);
  });
  // Slices are added up on the way back to the order of dw.
  for_blocks(parallel, layout.k_vectors, [&](int64_t vector, int) {
    const int64_t first = vector / TILE_VECTORS * TILE_VECTORS;
    const int64_t row = layout.vectors_in_pair(first) * VL;
    const float* from = layout.pair(sums, 0, first) + (vector - first) * VL;
    const int lanes = (int)min_of<int64_t>(VL, s.k - vector * VL);
    for (int64_t i = 0; i < z.reduction; i += VL) {
      const int width = (int)min_of<int64_t>(VL, z.reduction - i);
      vf block[VL] = {};
      for (int l = 0; l < width; l++) {
        const float* term = from + layout.step_of(i + l) * row;
        block[l] = load(term);
        for (int64_t slice = 1; slice < plan.slices; slice++) block[l] += load(term + slice * size);
      }
      transpose(block);
      for (int lane = 0; lane < lanes; lane++) {
        float* to = dw + (vector * VL + lane) * z.reduction + i;
        if (width == VL) {
          store(to, block[lane]);
        } else {
          store_partial(to, block[lane], width);
        }
      }
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
