// Pieces of the matrix product that convolutions use as well.
#pragma once

#include "kernels/blocks.h"
#include "kernels/tile.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

constexpr int PANEL = TILE_VECTORS * VL;  // columns of a packed panel
constexpr int64_t DEPTH = 512;            // longest reduction between two visits to memory

// dst[i] = src[i * stride], i < n, reading and writing nothing else.
void copy_strided(const float* src, int64_t stride, int64_t n, float* dst);
FORCE_INLINE void copy(const float* src, int64_t n, float* dst) {
  for (; n >= VL; n -= VL, src += VL, dst += VL) store(dst, load(src));
  if (n > 0) store_partial(dst, load_partial(src, (int)n), (int)n);
}

// dst[j][i] = src[i][j] for i < rows, j < columns.
void transpose(int64_t rows, int64_t columns, const float* src, int64_t src_row, float* dst,
               int64_t dst_row);

// Rows of alpha * op(A)[m, k], k <= DEPTH, in the order tiles read them. Nothing is transposed:
//   A[m, k]: per tile [k / VL][TILE_ROWS][VL], one run per VL columns
//   A[k, m]: per tile [k][TILE_ROWS], a single run
FORCE_INLINE int64_t packed_rows_size(int64_t m, int64_t k) {
  return RowTiles(m).tiles * TILE_ROWS * round_up(k, VL);
}
void pack_rows(bool trans, int64_t m, int64_t k, float alpha, const float* a, int64_t lda,
               float* packed);

// Columns of op(B)[k, n] as panels [n / PANEL][k][PANEL]; the last one is one or two vectors wide,
// padded with zeros.
FORCE_INLINE int64_t packed_panels_size(int64_t n, int64_t k) { return round_up(n, VL) * k; }
void pack_panels(bool trans, int64_t n, int64_t k, const float* b, int64_t ldb, float* packed);

// C[m, n] (+)= rows * panels, k <= DEPTH.
struct Product {
  int64_t m, n, k;
  bool rows_trans;      // how pack_rows was called
  const float* rows;    // from pack_rows
  const float* panels;  // from pack_panels, or a plain matrix:
  int64_t ldb = 0;      // its row distance (whole vectors only: n a multiple of VL), or 0
  float* c;
  int64_t ldc;
  bool accumulate = false;             // add to C
  const float* bias_column = nullptr;  // of the biases at most one
  const float* bias_row = nullptr;
  Bounds bounds;
};
void product(const Product& p);

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
