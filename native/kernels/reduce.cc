#include "kernels/reduce.h"

#include "kernels/functions.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// What a reduction adds up or compares, on the vectors of its input.
template <Reduction R>
struct Reducer {
  static constexpr bool kSums = R != Reduction::kMax && R != Reduction::kMin;

  static FORCE_INLINE vf start() {
    constexpr float infinity = __builtin_inff();
    return R == Reduction::kMax ? splat(-infinity) : R == Reduction::kMin ? splat(infinity) : vf{};
  }
  static FORCE_INLINE vf join(vf acc, vf v) {
    if constexpr (R == Reduction::kMax) {
      return max_nan(acc, v);
    } else if constexpr (R == Reduction::kMin) {
      return select((v < acc) | (v != v), v, acc);
    } else {
      return acc + v;
    }
  }
  static FORCE_INLINE vf add(vf acc, vf v) {
    if constexpr (R == Reduction::kSumAbs) v = as_float(as_int(v) & 0x7fffffff);
    if constexpr (R == Reduction::kSumSquares) v = v * v;
    return join(acc, v);
  }
  // The first n < VL values; the other lanes change nothing.
  static FORCE_INLINE vf load_first(const float* x, int n) {
    const vf v = load_partial(x, n);
    return kSums ? v : select(lane_numbers() < n, v, start());
  }
  static FORCE_INLINE double across(vf acc) {
    if constexpr (kSums) {
      return reduce_sum(acc);
    } else {
      float best = acc[0];
      for (int i = 1; i < VL; i++) best = join(best, acc[i]);
      return best;
    }
  }
  template <class T>
  static FORCE_INLINE T join(T acc, T v) {
    if constexpr (kSums) {
      return acc + v;
    } else {
      return (R == Reduction::kMax ? v > acc : v < acc) || v != v ? v : acc;
    }
  }
  // Of no values: sums are 0, maxima the lowest number, minima the largest one.
  static FORCE_INLINE float of_none() {
    return kSums ? 0 : R == Reduction::kMax ? -__FLT_MAX__ : __FLT_MAX__;
  }
};

// Short stretches in float, added up in double.
template <Reduction R>
double reduce_row(int64_t n, const float* x) {
  using Reduce = Reducer<R>;
  constexpr int64_t STRETCH = 64 * VL;  // so that a lane adds 16 numbers before it is read
  double total = Reduce::start()[0];
  for (int64_t begin = 0; begin < n; begin += STRETCH) {
    const int64_t end = min_of(n, begin + STRETCH);
    vf acc[4] = {Reduce::start(), Reduce::start(), Reduce::start(), Reduce::start()};
    int64_t i = begin;
    for (; i + 4 * VL <= end; i += 4 * VL) {
      for (int q = 0; q < 4; q++) acc[q] = Reduce::add(acc[q], load(x + i + q * VL));
    }
    for (; i < end; i += VL) {
      const int left = (int)min_of<int64_t>(VL, end - i);
      acc[0] = Reduce::add(acc[0], left == VL ? load(x + i) : Reduce::load_first(x + i, left));
    }
    const vf all = Reduce::join(Reduce::join(acc[0], acc[1]), Reduce::join(acc[2], acc[3]));
    total = Reduce::join(total, Reduce::across(all));
  }
  return total;
}

// A long row, in parts that may be reduced side by side.
template <Reduction R>
double reduce_long_row(int64_t n, const float* x, const Parallel& parallel) {
  constexpr int64_t PARTS = 64;
  double parts[PARTS];
  const int64_t step = max_of(ELEMENTS, ceil_div(n, PARTS));
  for_ranges(parallel, n, step, [&](int64_t begin, int64_t end) {
    parts[begin / step] = reduce_row<R>(end - begin, x + begin);
  });
  double total = Reducer<R>::start()[0];
  for (int64_t i = 0; i < ceil_div(n, step); i++) total = Reducer<R>::join(total, parts[i]);
  return total;
}

template <Reduction R>
void reduce_rows(int64_t m, int64_t n, const float* x, float* y, const Parallel& parallel) {
  if (n > 2 * ELEMENTS) {
    for (int64_t i = 0; i < m; i++) y[i] = (float)reduce_long_row<R>(n, x + i * n, parallel);
    return;
  }
  const int64_t step = max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, n));
  for_ranges(parallel, m, step, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) y[i] = (float)reduce_row<R>(n, x + i * n);
  });
}

// n <= 4 * VL columns, the rows of x being `row` floats apart.
template <Reduction R>
void reduce_strip(int64_t m, int64_t n, const float* x, int64_t row, float* y) {
  using Reduce = Reducer<R>;
  constexpr int64_t STRETCH = 32;
  const int vectors = (int)ceil_div(n, VL);
  double total[4 * VL];
  for (double& t : total) t = Reduce::start()[0];
  for (int64_t begin = 0; begin < m; begin += STRETCH) {
    const int64_t end = min_of(m, begin + STRETCH);
    vf acc[4] = {Reduce::start(), Reduce::start(), Reduce::start(), Reduce::start()};
    if (n == 4 * VL) {
      for (int64_t i = begin; i < end; i++) {
        for (int q = 0; q < 4; q++) acc[q] = Reduce::add(acc[q], load(x + i * row + q * VL));
      }
    } else {
      for (int q = 0; q < vectors; q++) {
        const int width = (int)min_of<int64_t>(VL, n - q * VL);
        for (int64_t i = begin; i < end; i++) {
          const float* from = x + i * row + q * VL;
          acc[q] = Reduce::add(acc[q], width == VL ? load(from) : load_partial(from, width));
        }
      }
    }
    for (int j = 0; j < n; j++) total[j] = Reduce::join(total[j], (double)acc[j / VL][j % VL]);
  }
  for (int j = 0; j < n; j++) y[j] = (float)total[j];
}

template <Reduction R>
void reduce_columns(int64_t outer, int64_t m, int64_t n, const float* x, float* y,
                    const Parallel& parallel) {
  constexpr int64_t STRIP = 4 * VL;
  const int64_t strips = ceil_div(n, STRIP);
  const int64_t step = max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, m * min_of(n, STRIP)));
  for_ranges(parallel, outer * strips, step, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t o = i / strips, j = i % strips * STRIP;
      reduce_strip<R>(m, min_of(STRIP, n - j), x + o * m * n + j, n, y + o * n + j);
    }
  });
}

template <Reduction R>
void reduce_as(int64_t outer, int64_t n, int64_t inner, const float* x, float* y,
               const Parallel& parallel) {
  if (n == 0) {
    for (int64_t i = 0; i < outer * inner; i++) y[i] = Reducer<R>::of_none();
  } else if (inner == 1) {
    reduce_rows<R>(outer, n, x, y, parallel);
  } else {
    reduce_columns<R>(outer, n, inner, x, y, parallel);
  }
}

}  // namespace

double sum_block(int64_t n, const float* x) { return reduce_row<Reduction::kSum>(n, x); }

double sum(int64_t n, const float* x, const Parallel& parallel) {
  return reduce_long_row<Reduction::kSum>(n, x, parallel);
}

void reduce(Reduction r, int64_t outer, int64_t n, int64_t inner, const float* x, float* y,
            const Parallel& parallel) {
  switch (r) {
    case Reduction::kSum:
      return reduce_as<Reduction::kSum>(outer, n, inner, x, y, parallel);
    case Reduction::kSumAbs:
      return reduce_as<Reduction::kSumAbs>(outer, n, inner, x, y, parallel);
    case Reduction::kSumSquares:
      return reduce_as<Reduction::kSumSquares>(outer, n, inner, x, y, parallel);
    case Reduction::kMax:
      return reduce_as<Reduction::kMax>(outer, n, inner, x, y, parallel);
    case Reduction::kMin:
      return reduce_as<Reduction::kMin>(outer, n, inner, x, y, parallel);
  }
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
