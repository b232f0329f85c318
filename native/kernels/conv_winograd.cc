// Winograd convolution of r x r windows: input tiles of a x a pixels, a = m + r - 1, become a * a
// frequencies; for each, a matrix product joins channels; what comes out becomes m x m outputs.
//
//   v[frequency][c / VL][tile][VL] = transformed input
//   u[frequency][k pair][c][2 or 1][VL] = transformed filters, packed
//   products[frequency][k / VL][tile][VL] = u * v
#include "kernels/conv_direct.h"
#include "kernels/winograd.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// Tiles are worked on in batches: some tile rows of all images, counted through. With small filters
// each batch is a block of work, small enough for v and products to stay in the cache. Large
// filters are read once for many tiles: batches follow each other, and frequencies and channels
// inside are the blocks.
struct Plan {
  const ConvShape& s;
  ConvSizes sizes;
  int m, a;
  int64_t c_blocks, k_vectors;
  int64_t tile_rows, tile_columns;  // of an image
  int64_t rows, batches;            // tile rows per batch
  bool by_frequency;
  int64_t tiles;                 // of a batch
  int64_t v_step, product_step;  // floats between frequencies
  int64_t strip_size;            // floats of a converted strip
  int64_t batch_bytes, lane_bytes;

  FORCE_INLINE int64_t frequencies() const { return a * a; }
  FORCE_INLINE const float* filters(const float* u, int64_t frequency, int64_t vector) const {
    return u + (frequency * k_vectors + vector) * VL * s.c;
  }
  FORCE_INLINE int vectors_in_pair(int64_t vector) const {
    return (int)min_of<int64_t>(TILE_VECTORS, k_vectors - vector);
  }
};

// An odd number of cache lines: frequencies must not fall onto the same places of a cache.
FORCE_INLINE int64_t spread(int64_t floats) {
  constexpr int64_t LINE = kAlignment / sizeof(float);
  return (ceil_div(floats, LINE) | 1) * LINE;
}

FORCE_INLINE Plan plan_for(const ConvShape& s, int m, int threads) {
  Plan p = {s,
            ConvSizes(s),
            m,
            m + (int)s.kh - 1,
            ceil_div(s.c, VL),
            ceil_div(s.k, VL),
            0,
            0,
            0,
            0,
            false,
            0,
            0,
            0,
            0,
            0,
            0};
  const ConvSizes& z = p.sizes;
  p.tile_rows = ceil_div(z.oh, m);
  p.tile_columns = ceil_div(z.ow, m);
  const int64_t all = s.n * p.tile_rows;
  const int64_t floats_per_row = p.frequencies() * p.tile_columns * (p.c_blocks + p.k_vectors) * VL;
  const int64_t filters = p.frequencies() * s.c * p.k_vectors * VL;
  p.by_frequency =
      filters > 512 * 1024 || (filters > 128 * 1024 && all * floats_per_row < 400 * 1024);
  const int64_t room = p.by_frequency ? 4 * 1024 * 1024 : 176 * 1024;
  p.rows = min_of(all, max_of<int64_t>(1, room / floats_per_row));
  p.batches = ceil_div(all, p.rows);
  if (!p.by_frequency) p.batches = max_of(p.batches, min_of<int64_t>(all, threads));
  p.rows = ceil_div(all, p.batches);
  p.batches = ceil_div(all, p.rows);
  p.tiles = p.rows * p.tile_columns;
  p.v_step = spread(p.c_blocks * p.tiles * VL);
  p.product_step = spread(p.k_vectors * p.tiles * VL);
  // Plain input of a batch's part of one image, or its plain output: one block of channels.
  const int64_t rows = min_of(p.rows, p.tile_rows);
  p.strip_size = max_of(min_of(s.h, rows * m + s.kh - 1) * s.w, rows * m * z.ow) * VL;
  Slices batch(nullptr), lane(nullptr);
  batch.take(p.frequencies() * p.v_step);
  batch.take(p.frequencies() * p.product_step);
  p.batch_bytes = batch.bytes();
  lane.take(p.strip_size);
  p.lane_bytes = lane.bytes();
  return p;
}

// A batch's tile rows of one image.
struct Segment {
  int64_t image, first, last, tile;  // tile: number in the batch of the first one
};

// Calls body(segment) for the images of tile rows [first, last).
template <class Body>
FORCE_INLINE void for_segments(const Plan& p, int64_t first, int64_t last, const Body& body) {
  for (int64_t row = first; row < last;) {
    const int64_t image = row / p.tile_rows, start = row - image * p.tile_rows;
    const int64_t end = min_of(p.tile_rows, start + last - row);
    body(Segment{image, start, end, (row - first) * p.tile_columns});
    row += end - start;
  }
}

// The tile whose corner is at (y, x), which may lie outside of the image.
template <int M, int R>
FORCE_INLINE void transform_input(const ConvShape& s, const float* plane, int64_t y, int64_t x,
                                  float* v, int64_t step) {
  constexpr int A = Winograd<M, R>::A;
  vf d[A][A];
  if (y >= 0 && x >= 0 && y + A <= s.h && x + A <= s.w) {
    const float* from = plane + (y * s.w + x) * VL;
#pragma GCC unroll 6
    for (int i = 0; i < A; i++) {
#pragma GCC unroll 6
      for (int j = 0; j < A; j++) d[i][j] = load(from + (i * s.w + j) * VL);
    }
  } else {
    const Range rows(0, A, 1, y, s.h), columns(0, A, 1, x, s.w);
    __builtin_memset(d, 0, sizeof(d));
    for (int64_t i = rows.begin; i < rows.end; i++) {
      for (int64_t j = columns.begin; j < columns.end; j++) {
        d[i][j] = load(plane + ((y + i) * s.w + x + j) * VL);
      }
    }
  }
#pragma GCC unroll 6
  for (int j = 0; j < A; j++) {
    vf column[A], out[A];
#pragma GCC unroll 6
    for (int i = 0; i < A; i++) column[i] = d[i][j];
    Winograd<M, R>::input(column, out);
#pragma GCC unroll 6
    for (int i = 0; i < A; i++) d[i][j] = out[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < A; i++) {
    vf out[A];
    Winograd<M, R>::input(d[i], out);
#pragma GCC unroll 6
    for (int j = 0; j < A; j++) store(v + (i * A + j) * step, out[j]);
  }
}

// rows x columns outputs (at most M x M) of one tile, at y and, where there is something to add, at
// add; rows of both are `row` floats apart.
template <int M, int R>
FORCE_INLINE void transform_output(const float* products, int64_t step, int64_t rows,
                                   int64_t columns, vf bias, const Bounds& bounds, const float* add,
                                   float* y, int64_t row) {
  constexpr int A = Winograd<M, R>::A;
  vf t[M][A];
#pragma GCC unroll 6
  for (int j = 0; j < A; j++) {
    vf column[A], out[M];
#pragma GCC unroll 6
    for (int i = 0; i < A; i++) column[i] = load(products + (i * A + j) * step);
    Winograd<M, R>::output(column, out);
#pragma GCC unroll 4
    for (int i = 0; i < M; i++) t[i][j] = out[i];
  }
  for (int i = 0; i < rows; i++) {
    vf out[M];
    Winograd<M, R>::output(t[i], out);
#pragma GCC unroll 4
    for (int j = 0; j < M; j++) {
      if (j >= columns) break;
      vf value = out[j] + bias;
      if (add) value += load(add + i * row + j * VL);
      store(y + i * row + j * VL, cut(value, bounds));
    }
  }
}

// Transforms channel block c of tile rows [first, last).
template <int M, int R>
void input_step(const Plan& p, Layout layout, const float* x, int64_t c, int64_t first,
                int64_t last, float* v, float* strip) {
  const ConvShape& s = p.s;
  for_segments(p, first, last, [&](const Segment& segment) {
    const float* plane = x + (segment.image * p.c_blocks + c) * s.h * s.w * VL;
    if (layout == Layout::kPlain) {
      const int64_t top = segment.first * M - s.pad_t;
      const int64_t begin = min_of(s.h, max_of<int64_t>(0, top));
      const int64_t end = max_of(begin, min_of(s.h, segment.last * M + s.kh - 1 - s.pad_t));
      block_pixels((int)min_of<int64_t>(VL, s.c - c * VL), s.h * s.w, (end - begin) * s.w,
                   x + ((segment.image * s.c + c * VL) * s.h + begin) * s.w, strip);
      plane = strip - begin * s.w * VL;
    }
    float* to = v + (c * p.tiles + segment.tile) * VL;
    for (int64_t i = segment.first; i < segment.last; i++) {
      for (int64_t j = 0; j < p.tile_columns; j++, to += VL) {
        transform_input<M, R>(s, plane, i * M - s.pad_t, j * M - s.pad_l, to, p.v_step);
      }
    }
  });
}

// The matrix product of one frequency over `tiles` tiles.
void product_step(const Plan& p, const Run* runs, const float* u, int64_t frequency, int64_t tiles,
                  const float* v, float* products) {
  TileShape shape;
  shape.runs = runs;
  shape.run_count = p.c_blocks;
  shape.out_row = VL;
  shape.out_vector = p.tiles * VL;
  const RowTiles rows(tiles);
  const int64_t filter = VL * p.s.c;
  const Ahead ahead(p.frequencies() * p.k_vectors * filter, TILE_VECTORS * filter, rows.tiles,
                    shape);
  for (int64_t vector = 0; vector < p.k_vectors; vector += TILE_VECTORS) {
    const int vectors = p.vectors_in_pair(vector);
    shape.w_step = vectors * VL;
    const float* filters = p.filters(u, frequency, vector);
    for (int64_t t = 0; t < rows.tiles; t++) {
      const int64_t begin = rows.begin(t);
      TilePointers at = {v + frequency * p.v_step + begin * VL, filters,
                         products + frequency * p.product_step + (vector * p.tiles + begin) * VL};
      at.ahead = ahead.at(filters + vectors * filter, t);
      tile_for(Spacing::kVector, rows.height(t), vectors)(shape, at);
    }
  }
}

// Outputs of channel block k of tile rows [first, last).
template <int M, int R>
void output_step(const Plan& p, const ConvForward& f, vf bias, int64_t k, int64_t first,
                 int64_t last, const float* products, float* y, float* strip) {
  const ConvShape& s = p.s;
  const ConvSizes& z = p.sizes;
  const bool blocked = f.y_layout == Layout::kBlocked;
  for_segments(p, first, last, [&](const Segment& segment) {
    const int64_t top = segment.first * M, rows = min_of(z.oh, segment.last * M) - top;
    const int64_t place = ((segment.image * p.k_vectors + k) * z.oh + top) * z.ow * VL;
    const int64_t corner = (segment.image * s.k + k * VL) * z.pixels + top * z.ow;
    const int channels = (int)min_of<int64_t>(VL, s.k - k * VL);
    float* out = blocked ? y + place : strip;
    const float* add = f.add && blocked ? f.add + place : nullptr;
    if (f.add && !blocked) {
      block_pixels(channels, z.pixels, rows * z.ow, f.add + corner, strip);
      add = strip;
    }
    const float* from = products + (k * p.tiles + segment.tile) * VL;
    for (int64_t i = 0; i < rows; i += M) {
      for (int64_t j = 0; j < z.ow; j += M, from += VL) {
        const int64_t pixel = (i * z.ow + j) * VL;
        transform_output<M, R>(from, p.product_step, min_of<int64_t>(M, rows - i),
                               min_of<int64_t>(M, z.ow - j), bias, f.bounds,
                               add ? add + pixel : nullptr, out + pixel, z.ow * VL);
      }
    }
    if (!blocked) transpose(rows * z.ow, channels, strip, VL, y + corner, z.pixels);
  });
}

template <int M, int R>
void forward(const ConvForward& f, const float* x, const float* u, float* y, void* scratch,
             const Parallel& parallel) {
  const Plan p = plan_for(f.shape, M, parallel.threads);
  const Parallel alone;
  const Parallel &outside = p.by_frequency ? alone : parallel,
                 &inside = p.by_frequency ? parallel : alone;
  Slices shared(scratch);
  Run* runs = shared.take<Run>(p.c_blocks);
  for (int64_t c = 0; c < p.c_blocks; c++) {
    runs[c] = {(ptrdiff_t)(c * p.tiles * VL), (ptrdiff_t)min_of<int64_t>(VL, p.s.c - c * VL)};
  }
  char* batches = (char*)scratch + shared.bytes();
  char* lanes =
      batches + (p.by_frequency ? 1 : lane_count(parallel.threads, p.batches)) * p.batch_bytes;
  const int64_t all = p.s.n * p.tile_rows;
  for_blocks(outside, p.batches, [&](int64_t batch, int outer) {
    const int64_t first = batch * all / p.batches, last = (batch + 1) * all / p.batches;
    Slices slices(batches + outer * p.batch_bytes);
    float* v = slices.take(p.frequencies() * p.v_step);
    float* products = slices.take(p.frequencies() * p.product_step);
    const auto strip = [&](int inner) { return (float*)(lanes + (outer + inner) * p.lane_bytes); };
    for_blocks(inside, p.c_blocks, [&](int64_t c, int inner) {
      input_step<M, R>(p, f.x_layout, x, c, first, last, v, strip(inner));
    });
    for_blocks(inside, p.frequencies(), [&](int64_t frequency, int) {
      product_step(p, runs, u, frequency, (last - first) * p.tile_columns, v, products);
    });
    for_blocks(inside, p.k_vectors, [&](int64_t k, int inner) {
      const int lanes_used = (int)min_of<int64_t>(VL, p.s.k - k * VL);
      const vf bias = !f.bias            ? vf{}
                      : lanes_used == VL ? load(f.bias + k * VL)
                                         : load_partial(f.bias + k * VL, lanes_used);
      output_step<M, R>(p, f, bias, k, first, last, products, y, strip(inner));
    });
  });
}

// One filter per lane, transformed and stored `step` floats apart.
template <int M, int R>
FORCE_INLINE void transform_filter(const vf (&taps)[R * R], float* u, int64_t step) {
  constexpr int A = Winograd<M, R>::A;
  vf t[A][R];
#pragma GCC unroll 5
  for (int j = 0; j < R; j++) {
    vf column[R], out[A];
#pragma GCC unroll 5
    for (int i = 0; i < R; i++) column[i] = taps[i * R + j];
    Winograd<M, R>::filter(column, out);
#pragma GCC unroll 6
    for (int i = 0; i < A; i++) t[i][j] = out[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < A; i++) {
    vf out[A];
    Winograd<M, R>::filter(t[i], out);
#pragma GCC unroll 6
    for (int j = 0; j < A; j++) store(u + (i * A + j) * step, out[j]);
  }
}

template <int M, int R>
void pack(const ConvShape& s, bool turned, const float* weights, float* packed,
          const Parallel& parallel) {
  constexpr int TAPS = R * R;
  const int64_t k_vectors = ceil_div(s.k, VL), step = k_vectors * VL * s.c;
  for_blocks(parallel, k_vectors, [&](int64_t k, int) {
    const int64_t first = k / TILE_VECTORS * TILE_VECTORS;
    const int64_t row = min_of<int64_t>(TILE_VECTORS, k_vectors - first) * VL;
    const int lanes = (int)min_of<int64_t>(VL, s.k - k * VL);
    float* out = packed + first * VL * s.c + (k - first) * VL;
    const int64_t distance = turned ? TAPS : s.c * TAPS;  // between filters
    for (int64_t c = 0; c < s.c; c++) {
      alignas(kAlignment) float blocked[TAPS * VL];
      block_pixels(lanes, distance, TAPS,
                   weights + (turned ? c * s.k + k * VL : k * VL * s.c + c) * TAPS, blocked);
      vf taps[TAPS];
      for (int i = 0; i < TAPS; i++) {
        taps[i] = load(blocked + (turned ? TAPS - 1 - i : i) * VL);
      }
      transform_filter<M, R>(taps, out + c * row, step);
    }
  });
}

}  // namespace

int64_t winograd_packed_bytes(const ConvShape& s, int m) {
  const int64_t a = m + s.kh - 1;
  return a * a * round_up(s.k, VL) * s.c * sizeof(float);
}

void winograd_pack(const ConvShape& s, int m, bool turned, const float* weights, float* packed,
                   const Parallel& parallel) {
  const auto f = s.kh == 5 ? pack<2, 5> : m == 2 ? pack<2, 3> : pack<4, 3>;
  f(s, turned, weights, packed, parallel);
}

int64_t winograd_forward_scratch(const ConvShape& s, int m, int threads) {
  const Plan p = plan_for(s, m, threads);
  Slices shared(nullptr);
  shared.take<Run>(p.c_blocks);
  const int64_t batches = p.by_frequency ? 1 : lane_count(threads, p.batches);
  return shared.bytes() + batches * p.batch_bytes + threads * p.lane_bytes;
}

void winograd_forward(const ConvForward& f, int m, const float* x, const float* packed, float* y,
                      void* scratch, const Parallel& parallel) {
  const auto run = f.shape.kh == 5 ? forward<2, 5> : m == 2 ? forward<2, 3> : forward<4, 3>;
  run(f, x, packed, y, scratch, parallel);
}

int64_t winograd_backward_data_scratch(const ConvShape& s, int m, int threads) {
  const ConvShape t = turned(s);
  return round_up(winograd_packed_bytes(t, m), kAlignment) +
         winograd_forward_scratch(t, m, threads);
}

void winograd_backward_data(const ConvShape& s, int m, const float* dy, const float* weights,
                            float* dx, void* scratch, const Parallel& parallel) {
  ConvForward f;
  f.shape = turned(s);
  float* packed = (float*)scratch;
  winograd_pack(f.shape, m, true, weights, packed, parallel);
  winograd_forward(f, m, dy, packed, dx,
                   (char*)scratch + round_up(winograd_packed_bytes(f.shape, m), kAlignment),
                   parallel);
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
