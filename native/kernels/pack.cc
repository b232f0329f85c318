// Packing: bringing matrices into the order in which register tiles read them.
#include "kernels/gemm.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

void copy_strided(const float* src, int64_t stride, int64_t n, float* dst) {
  if (stride == 1) return copy(src, n, dst);
  int64_t i = 0;
  if (stride == 2) {
    for (; i + VL <= n; i += VL) store(dst + i, load_even(src + 2 * i));
  }
  for (; i < n; i++) dst[i] = src[i * stride];
}

void transpose(int64_t rows, int64_t columns, const float* src, int64_t src_row, float* dst,
               int64_t dst_row) {
  for (int64_t i = 0; i < rows; i += VL) {
    const int height = (int)min_of<int64_t>(VL, rows - i);
    for (int64_t j = 0; j < columns; j += VL) {
      const int width = (int)min_of<int64_t>(VL, columns - j);
      vf block[VL];
      load_block(src + i * src_row + j, src_row, height, width, block);
      transpose(block);
      float* out = dst + j * dst_row + i;
      if (height == VL) {
        for (int l = 0; l < width; l++) store(out + l * dst_row, block[l]);
      } else {
        for (int l = 0; l < width; l++) store_partial(out + l * dst_row, block[l], height);
      }
    }
  }
}

static void pack_stored_rows(int64_t m, int64_t k, float alpha, const float* a, int64_t lda,
                             float* packed) {
  const RowTiles tiles(m);
  for (int64_t t = 0; t < tiles.tiles; t++) {
    const float* rows = a + tiles.begin(t) * lda;
    const int height = tiles.height(t);
    for (int64_t j = 0; j < k; j += VL, packed += TILE_ROWS * VL) {
      const int width = (int)min_of<int64_t>(VL, k - j);
      for (int p = 0; p < height; p++) {
        const float* from = rows + p * lda + j;
        store(packed + p * VL, alpha * (width == VL ? load(from) : load_partial(from, width)));
      }
    }
  }
}

static void pack_stored_columns(int64_t m, int64_t k, float alpha, const float* a, int64_t lda,
                                float* packed) {
  const RowTiles tiles(m);
  for (int64_t j = 0; j < k; j++) {
    for (int64_t t = 0; t < tiles.tiles; t++) {
      const float* from = a + j * lda + tiles.begin(t);
      float* out = packed + (t * k + j) * TILE_ROWS;
      const int height = tiles.height(t);
      int p = 0;
      for (; p + VL <= height; p += VL) store(out + p, alpha * load(from + p));
      if (p < height)
        store_partial(out + p, alpha * load_partial(from + p, height - p), height - p);
    }
  }
}

void pack_rows(bool trans, int64_t m, int64_t k, float alpha, const float* a, int64_t lda,
               float* packed) {
  if (trans) {
    pack_stored_columns(m, k, alpha, a, lda, packed);
  } else {
    pack_stored_rows(m, k, alpha, a, lda, packed);
  }
}

static void pack_panels_transposed(int64_t n, int64_t k, const float* b, int64_t ldb,
                                   float* packed) {
  for (int64_t j = 0; j < n; j += VL) {
    const int64_t panel = j / PANEL * PANEL, row = round_up(min_of<int64_t>(PANEL, n - panel), VL);
    const int width = (int)min_of<int64_t>(VL, n - j);
    float* out = packed + panel * k + j - panel;
    for (int64_t i = 0; i < k; i += VL) {
      const int height = (int)min_of<int64_t>(VL, k - i);
      vf block[VL];
      load_block(b + j * ldb + i, ldb, width, height, block);
      transpose(block);
      for (int l = 0; l < height; l++) store(out + (i + l) * row, block[l]);
    }
  }
}

void pack_panels(bool trans, int64_t n, int64_t k, const float* b, int64_t ldb, float* packed) {
  if (trans) return pack_panels_transposed(n, k, b, ldb, packed);
  const int64_t whole = n / PANEL * PANEL, rest = n - whole;
  for (int64_t i = 0; i < k; i++) {
    const float* from = b + i * ldb;
    for (int64_t j = 0; j < whole; j += PANEL) {
      float* out = packed + j * k + i * PANEL;
      for (int q = 0; q < PANEL; q += VL) store(out + q, load(from + j + q));
    }
    float* out = packed + whole * k + i * round_up(rest, VL);
    for (int64_t j = 0; j < rest; j += VL) {
      const int64_t left = rest - j;
      store(out + j,
            left >= VL ? load(from + whole + j) : load_partial(from + whole + j, (int)left));
    }
  }
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
