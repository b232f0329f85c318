#include "kernels/reduce.h"

#include "kernels/functions.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

double sum_block(int64_t n, const float* x) {
  constexpr int64_t STRETCH = 64 * VL;  // so that a lane adds 16 numbers before it is read
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += STRETCH) {
    const int64_t end = min_of(n, begin + STRETCH);
    vf acc[4] = {};
    int64_t i = begin;
    for (; i + 4 * VL <= end; i += 4 * VL) {
      for (int q = 0; q < 4; q++) acc[q] += load(x + i + q * VL);
    }
    for (; i < end; i += VL) {
      acc[0] += end - i >= VL ? load(x + i) : load_partial(x + i, (int)(end - i));
    }
    total += reduce_sum((acc[0] + acc[1]) + (acc[2] + acc[3]));
  }
  return total;
}

double sum(int64_t n, const float* x, const Parallel& parallel) {
  constexpr int64_t PARTS = 64;
  double parts[PARTS];
  const int64_t step = max_of(ELEMENTS, ceil_div(n, PARTS));
  for_ranges(parallel, n, step, [&](int64_t begin, int64_t end) {
    parts[begin / step] = sum_block(end - begin, x + begin);
  });
  double total = 0;
  for (int64_t i = 0; i < ceil_div(n, step); i++) total += parts[i];
  return total;
}

void row_sums(int64_t m, int64_t n, const float* x, float* y, const Parallel& parallel) {
  const int64_t step = max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, n));
  for_ranges(parallel, m, step, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) y[i] = (float)sum_block(n, x + i * n);
  });
}

// Sums of n <= 4 * VL columns, the rows of x being `row` floats apart.
static void column_strip(int64_t m, int64_t n, const float* x, int64_t row, float* y) {
  constexpr int64_t STRETCH = 32;
  const int vectors = (int)ceil_div(n, VL);
  double total[4 * VL] = {};
  for (int64_t begin = 0; begin < m; begin += STRETCH) {
    const int64_t end = min_of(m, begin + STRETCH);
    vf acc[4] = {};
    if (n == 4 * VL) {
      for (int64_t i = begin; i < end; i++) {
        for (int q = 0; q < 4; q++) acc[q] += load(x + i * row + q * VL);
      }
    } else {
      for (int q = 0; q < vectors; q++) {
        const int width = (int)min_of<int64_t>(VL, n - q * VL);
        for (int64_t i = begin; i < end; i++) {
          const float* from = x + i * row + q * VL;
          acc[q] += width == VL ? load(from) : load_partial(from, width);
        }
      }
    }
    for (int j = 0; j < n; j++) total[j] += acc[j / VL][j % VL];
  }
  for (int j = 0; j < n; j++) y[j] = (float)total[j];
}

void column_sums(int64_t m, int64_t n, const float* x, float* y, const Parallel& parallel) {
  for_ranges(parallel, n, 4 * VL, [&](int64_t begin, int64_t end) {
    column_strip(m, end - begin, x + begin, n, y + begin);
  });
}

void argmax(int64_t m, int64_t n, const float* x, int64_t* y, const Parallel& parallel) {
  const int64_t step = max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, n));
  for_ranges(parallel, m, step, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const float* row = x + i * n;
      int64_t best = 0;
      for (int64_t j = 1; j < n && row[best] == row[best]; j++) {
        if (row[j] > row[best] || row[j] != row[j]) best = j;
      }
      y[i] = best;
    }
  });
}

int64_t first_outside(int64_t n, const int32_t* x, int32_t low, int32_t high) {
  for (int64_t i = 0; i < n; i++) {
    if (x[i] < low || x[i] >= high) return i;
  }
  return -1;
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
