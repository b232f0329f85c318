// Matrix product: both operands are packed piece by piece, register tiles do the rest.
#include "kernels/gemm.h"

#include "kernels/functions.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// ---- product of two packed pieces --------------------------------------------

// A tile whose columns end inside a vector: it works on a full-width copy of its outputs.
static void tile_at_edge(Tile run, TileShape shape, TilePointers at, int height, int columns) {
  alignas(kAlignment) float out[TILE_ROWS * PANEL], bias[PANEL];
  float* c = at.out;
  const ptrdiff_t ldc = shape.out_row;
  if (at.add) {
    for (int p = 0; p < height; p++) copy(c + p * ldc, columns, out + p * PANEL);
    at.add = out;
  }
  if (at.bias_vector) {
    copy(at.bias_vector, columns, bias);
    at.bias_vector = bias;
  }
  at.out = out;
  shape.out_row = PANEL;
  run(shape, at);
  for (int p = 0; p < height; p++) copy(out + p * PANEL, columns, c + p * ldc);
}

void product(const Product& p) {
  Run runs[DEPTH / VL];
  TileShape shape;
  shape.runs = runs;
  if (p.rows_trans) {
    runs[0] = {0, (ptrdiff_t)p.k};
    shape.run_count = 1;
    shape.a_step = TILE_ROWS;
  } else {
    for (int64_t j = 0; j < p.k; j += VL) {
      runs[shape.run_count++] = {(ptrdiff_t)j * TILE_ROWS, min_of<ptrdiff_t>(VL, p.k - j)};
    }
  }
  shape.out_row = p.ldc;
  shape.bounds = p.bounds;
  const RowTiles tiles(p.m);
  const int64_t tile_size = TILE_ROWS * (p.rows_trans ? p.k : round_up(p.k, VL));

  for (int64_t j = 0; j < p.n; j += PANEL) {
    const int columns = (int)min_of<int64_t>(PANEL, p.n - j), vectors = (int)ceil_div(columns, VL);
    shape.w_step = p.ldb ? p.ldb : vectors * VL;
    for (int64_t t = 0; t < tiles.tiles; t++) {
      const int height = tiles.height(t);
      const int64_t i = tiles.begin(t);
      float* c = p.c + i * p.ldc + j;
      const TilePointers at = {p.rows + t * tile_size,
                               p.panels + j * (p.ldb ? 1 : p.k),
                               c,
                               p.bias_column ? p.bias_column + j : nullptr,
                               p.bias_row ? p.bias_row + i : nullptr,
                               p.accumulate ? c : nullptr};
      const Tile run = tile_for(p.rows_trans ? Spacing::kOne : Spacing::kVector, height, vectors);
      if (columns == vectors * VL) {
        run(shape, at);
      } else {
        tile_at_edge(run, shape, at, height, columns);
      }
    }
  }
}

// ---- matrix times vector -----------------------------------------------------

// What to do with a finished sum.
struct Finish {
  float alpha, beta;
  const float* bias;
  int64_t bias_stride;
  Bounds bounds;
  FORCE_INLINE void operator()(float sum, int64_t i, float* y) const {
    float v = alpha * sum;
    if (beta != 0) v += beta * *y;
    if (bias) v += bias[i * bias_stride];
    *y = cut(v, bounds);
  }
  // The same for n neighbouring sums that are in y, with beta = 0.
  FORCE_INLINE void in_place(int64_t n, int64_t first, float* y) const {
    for (int64_t j = 0; j < n; j += VL) {
      const int width = (int)min_of<int64_t>(VL, n - j);
      vf v = width == VL ? load(y + j) : load_partial(y + j, width);
      v *= splat(alpha);
      if (bias && bias_stride == 0) v += splat(*bias);
      if (bias && bias_stride == 1) {
        v += width == VL ? load(bias + first + j) : load_partial(bias + first + j, width);
      }
      v = cut(v, bounds);
      if (width == VL) {
        store(y + j, v);
      } else {
        store_partial(y + j, v, width);
      }
    }
  }
};

// y[j] = row j of B[n, k] times x: eight rows at a time.
static void rows_times_vector(int64_t n, int64_t k, const float* b, int64_t ldb, const float* x,
                              const Finish& finish, int64_t first, float* y, int64_t y_stride) {
  constexpr int ROWS = 8;
  const bool simple = finish.beta == 0 && y_stride == 1;
  for (int64_t j = 0; j < n; j += ROWS) {
    const int rows = (int)min_of<int64_t>(ROWS, n - j);
    const float* row[ROWS];
    for (int i = 0; i < ROWS; i++) row[i] = b + (j + min_of(i, rows - 1)) * ldb;
    vf acc[ROWS] = {};
    int64_t l = 0;
    for (; l + VL <= k; l += VL) {
      const vf xv = load(x + l);
#pragma GCC unroll 8
      for (int i = 0; i < ROWS; i++) acc[i] += load(row[i] + l) * xv;
    }
    if (l < k) {
      const int left = (int)(k - l);
      const vf xv = load_partial(x + l, left);
#pragma GCC unroll 8
      for (int i = 0; i < ROWS; i++) acc[i] += load_partial(row[i] + l, left) * xv;
    }
    alignas(kAlignment) float sums[2 * VL];
    store(sums, reduce_sums(acc[0], acc[1], acc[2], acc[3]));
    store(sums + VL, reduce_sums(acc[4], acc[5], acc[6], acc[7]));
    if (simple) {
      for (int i = 0; i < rows; i++) y[j + i] = sums[i * VL / 4];
    } else {
      for (int i = 0; i < rows; i++) {
        finish(sums[i * VL / 4], first + j + i, y + (j + i) * y_stride);
      }
    }
  }
  if (simple) finish.in_place(n, first, y);
}

constexpr int STRIP = 8 * VL;  // columns summed in registers

// y[j] = x times column j of B[k, n], n <= STRIP.
static void vector_times_columns(int64_t n, int64_t k, const float* b, int64_t ldb, const float* x,
                                 const Finish& finish, int64_t first, float* y, int64_t y_stride) {
  alignas(kAlignment) float sums[STRIP] = {};
  if (n == STRIP) {
    vf acc[8] = {};
    for (int64_t l = 0; l < k; l++) {
      const vf xv = splat(x[l]);
#pragma GCC unroll 8
      for (int q = 0; q < 8; q++) acc[q] += load(b + l * ldb + q * VL) * xv;
    }
    for (int q = 0; q < 8; q++) store(sums + q * VL, acc[q]);
  } else {
    for (int64_t j = 0; j < n; j += VL) {
      const int width = (int)min_of<int64_t>(VL, n - j);
      vf acc = {};
      for (int64_t l = 0; l < k; l++) {
        const float* from = b + l * ldb + j;
        acc += (width == VL ? load(from) : load_partial(from, width)) * splat(x[l]);
      }
      store(sums + j, acc);
    }
  }
  for (int64_t j = 0; j < n; j++) finish(sums[j], first + j, y + j * y_stride);
}

// y[n] = x[k] * B, where B is stored [n, k] (by_rows) or [k, n].
static void vector_product(bool by_rows, int64_t n, int64_t k, const float* b, int64_t ldb,
                           const float* x, const Finish& finish, float* y, int64_t y_stride,
                           bool backwards, const Parallel& parallel) {
  const int64_t rows = max_of<int64_t>(8, round_up(ELEMENTS / max_of<int64_t>(k, 1), 8));
  const auto multiply = [&](int64_t begin, int64_t end) {
    if (by_rows) {
      rows_times_vector(end - begin, k, b + begin * ldb, ldb, x, finish, begin,
                        y + begin * y_stride, y_stride);
    } else {
      vector_times_columns(end - begin, k, b + begin, ldb, x, finish, begin, y + begin * y_stride,
                           y_stride);
    }
  };
  for_ranges(parallel, n, by_rows ? rows : STRIP, multiply, backwards);
}

// ---- the general product -----------------------------------------------------

namespace {

// How a product is cut up; depends on the shape alone.
struct Plan {
  bool row_vector, column_vector;  // m (small) or n = 1
  bool swap;        // compute the transpose of C: cheaper when B would need transposing
  bool in_place_b;  // tiles read B where it is
  int64_t m, n, k;  // of the product as computed
  int64_t block_m, block_n, blocks;
  int64_t lane_bytes;
};

FORCE_INLINE Plan plan_for(const Gemm& g, bool packed) {
  Plan p = {};
  p.row_vector = !packed && (g.m == 1 || (g.m <= 3 && g.trans_b));
  p.column_vector = !packed && !p.row_vector && g.n == 1;
  if (p.row_vector || p.column_vector) return p;
  // Transposing B touches n * k values; the other way round it is A and C.
  p.swap = !packed && g.trans_b && (g.trans_a ? 0 : g.m * g.k) + g.m * g.n < g.n * g.k;
  p.m = p.swap ? g.n : g.m;
  p.n = p.swap ? g.m : g.n;
  p.k = g.k;
  p.in_place_b = !packed && !p.swap && !g.trans_b && g.m <= 2 * TILE_ROWS;
  p.block_m = min_of<int64_t>(p.m, 12 * TILE_ROWS);
  p.block_n = min_of<int64_t>(p.n, 128);
  // Enough blocks for a few threads, unless they would get too small to be worth it. Cutting m
  // packs B again, cutting n packs A again: the longer side of a block costs least.
  const auto count = [&] { return ceil_div(p.m, p.block_m) * ceil_div(p.n, p.block_n); };
  const int64_t wanted = min_of<int64_t>(8, p.m * p.n * p.k / 4000000);
  while (count() < wanted) {
    if (p.block_n >= p.block_m && p.block_n > 2 * PANEL) {
      p.block_n = round_up(p.block_n / 2, PANEL);
    } else if (p.block_m > 4 * TILE_ROWS) {
      p.block_m = round_up(p.block_m / 2, TILE_ROWS);
    } else {
      break;
    }
  }
  p.blocks = count();
  Slices s(nullptr);
  const int64_t depth = min_of(p.k, DEPTH);
  s.take(packed_rows_size(p.block_m, depth));
  if (!packed) s.take(packed_panels_size(p.block_n, depth));
  if (p.swap) s.take(p.block_m * p.block_n);
  p.lane_bytes = s.bytes();
  return p;
}

}  // namespace

// C = cut(beta * C + bias): what is left when there is nothing to multiply, and the start of
// products whose tiles can only add to C.
static void scale_rows(const Gemm& g, const Bounds& bounds, float* c) {
  for (int64_t i = 0; i < g.m; i++) {
    float* row = c + i * g.ldc;
    for (int64_t j = 0; j < g.n; j++) {
      const float v = (g.beta == 0 ? 0 : g.beta * row[j]) + (g.bias ? g.bias[j] : 0);
      row[j] = cut(v, bounds);
    }
  }
}

// The values of C that one block of the plan computes.
static void multiply_block(const Gemm& g, const Plan& plan, const float* a, const float* b,
                           const float* packed, float* c, int64_t block, void* scratch) {
  const int64_t m_blocks = ceil_div(plan.m, plan.block_m);
  const int64_t i0 = block % m_blocks * plan.block_m, j0 = block / m_blocks * plan.block_n;
  const int64_t m = min_of(plan.block_m, plan.m - i0), n = min_of(plan.block_n, plan.n - j0);
  const int64_t depth = min_of(plan.k, DEPTH);
  Slices slices(scratch);
  float* rows = slices.take(packed_rows_size(plan.block_m, depth));
  float* panels = packed ? nullptr : slices.take(packed_panels_size(plan.block_n, depth));
  float* turned = plan.swap ? slices.take(plan.block_m * plan.block_n) : nullptr;

  // As seen by the product: rows come from B and columns from A when swapped.
  const float *left = plan.swap ? b : a, *right = plan.swap ? a : b;
  const int64_t ld_left = plan.swap ? g.ldb : g.lda, ld_right = plan.swap ? g.lda : g.ldb;
  const bool left_trans = plan.swap ? !g.trans_b : g.trans_a;
  const bool right_trans = plan.swap ? !g.trans_a : g.trans_b;

  Product p = {};
  p.m = m;
  p.n = n;
  p.rows_trans = left_trans;
  p.rows = rows;
  p.c = plan.swap ? turned : c + i0 * g.ldc + j0;
  p.ldc = plan.swap ? n : g.ldc;
  const float** bias = plan.swap ? &p.bias_row : &p.bias_column;
  if (g.bias) *bias = g.bias + (plan.swap ? i0 : j0);
  if (plan.swap && g.beta != 0) transpose(n, m, c + j0 * g.ldc + i0, g.ldc, turned, n);

  for (int64_t k0 = 0; k0 < plan.k; k0 += DEPTH) {
    p.k = min_of(DEPTH, plan.k - k0);
    p.accumulate = g.beta != 0 || k0 > 0;
    if (k0 + p.k == plan.k) p.bounds = g.bounds;
    if (k0 > 0) *bias = nullptr;
    pack_rows(left_trans, m, p.k, g.alpha,
              left + (left_trans ? k0 * ld_left + i0 : i0 * ld_left + k0), ld_left, rows);
    if (packed) {
      p.panels = packed + k0 * round_up(plan.n, VL) + j0 * p.k;
      product(p);
      continue;
    }
    const float* from = right + (right_trans ? j0 * ld_right + k0 : k0 * ld_right + j0);
    const int64_t in_place = plan.in_place_b ? n / PANEL * PANEL : 0;
    if (in_place > 0) {
      Product whole = p;
      whole.n = in_place;
      whole.panels = from;
      whole.ldb = ld_right;
      product(whole);
    }
    if (in_place < n) {
      Product rest = p;
      rest.n = n - in_place;
      rest.panels = panels;
      rest.c += in_place;
      if (rest.bias_column) rest.bias_column += in_place;
      pack_panels(right_trans, rest.n, p.k, from + in_place, ld_right, panels);
      product(rest);
    }
  }
  if (plan.swap) transpose(m, n, turned, n, c + j0 * g.ldc + i0, g.ldc);
}

static void multiply(Gemm g, const float* a, const float* b, const float* packed, float* c,
                     void* scratch, const Parallel& parallel) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0 || g.alpha == 0) return scale_rows(g, g.bounds, c);
  const Plan plan = plan_for(g, packed != nullptr);
  if (plan.row_vector) {
    const Finish finish = {g.alpha, g.beta, g.bias, 1, g.bounds};
    for (int64_t i = 0; i < g.m; i++) {
      const float* x = a + i * g.lda;
      if (g.trans_a) {
        copy_strided(a + i, g.lda, g.k, (float*)scratch);
        x = (const float*)scratch;
      }
      const bool backwards = g.backwards != (i % 2 == 1);
      vector_product(g.trans_b, g.n, g.k, b, g.ldb, x, finish, c + i * g.ldc, 1, backwards,
                     parallel);
    }
    return;
  }
  if (plan.column_vector) {
    const Finish finish = {g.alpha, g.beta, g.bias, 0, g.bounds};
    const float* x = b;
    if (!g.trans_b && g.ldb != 1) {
      copy_strided(b, g.ldb, g.k, (float*)scratch);
      x = (const float*)scratch;
    }
    return vector_product(!g.trans_a, g.m, g.k, a, g.lda, x, finish, c, g.ldc, g.backwards,
                          parallel);
  }
  if (g.beta != 0 && g.beta != 1) {
    scale_rows(g, Bounds(), c);
    g.beta = 1;
    g.bias = nullptr;
  }
  for_blocks(parallel, plan.blocks, [&](int64_t block, int lane) {
    multiply_block(g, plan, a, b, packed, c, block, (char*)scratch + lane * plan.lane_bytes);
  });
}

// ---- what the table shows ----------------------------------------------------

static int64_t scratch_for(const Gemm& g, const Plan& p, int threads) {
  if (p.row_vector || p.column_vector) return g.k * sizeof(float);
  return lane_count(threads, p.blocks) * p.lane_bytes;
}

// Enough for gemm and gemm_packed.
int64_t gemm_scratch_bytes(const Gemm& g, int threads) {
  if (g.m <= 0 || g.n <= 0 || g.k <= 0) return 0;
  return max_of(scratch_for(g, plan_for(g, false), threads),
                scratch_for(g, plan_for(g, true), threads));
}

void gemm(const Gemm& g, const float* a, const float* b, float* c, void* scratch,
          const Parallel& parallel) {
  multiply(g, a, b, nullptr, c, scratch, parallel);
}

int64_t gemm_packed_bytes(int64_t n, int64_t k) { return packed_panels_size(n, k) * sizeof(float); }

void gemm_pack(const Gemm& g, const float* b, float* packed, const Parallel& parallel) {
  const int64_t row = round_up(g.n, VL);
  for_blocks(parallel, ceil_div(g.k, DEPTH), [&](int64_t i, int) {
    const int64_t k0 = i * DEPTH;
    pack_panels(g.trans_b, g.n, min_of(DEPTH, g.k - k0), b + (g.trans_b ? k0 : k0 * g.ldb), g.ldb,
                packed + k0 * row);
  });
}

void gemm_packed(const Gemm& g, const float* a, const float* packed, float* c, void* scratch,
                 const Parallel& parallel) {
  multiply(g, a, nullptr, packed, c, scratch, parallel);
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
