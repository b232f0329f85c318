#include "kernels/functions.h"
#include "kernels/map.h"
#include "kernels/math.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// Calls body(i) for every row; a block holds enough rows to be worth a thread.
template <class Body>
static void for_rows(const Parallel& parallel, int64_t m, int64_t n, const Body& body) {
  const int64_t step = max_of<int64_t>(1, ELEMENTS / 4 / max_of<int64_t>(1, n));
  for_ranges(parallel, m, step, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) body(i);
  });
}

static float row_max(int64_t n, const float* x) {
  const vf least = splat(-__builtin_inff());
  vf best = least;
  int64_t j = 0;
  for (; j + VL <= n; j += VL) best = max(best, load(x + j));
  if (j < n) {
    const int rest = (int)(n - j);
    best = max(best, select(lane_numbers() < rest, load_partial(x + j, rest), least));
  }
  return reduce_max(best);
}

// y = exp(x - shift); returns the sum of y. A null y is not written.
static float exp_row(int64_t n, const float* x, float shift, float* y) {
  vf total = {};
  for (int64_t j = 0; j < n; j += VL) {
    const int left = (int)min_of<int64_t>(VL, n - j);
    vf v = exp((left == VL ? load(x + j) : load_partial(x + j, left)) - shift);
    if (left < VL) v = select(lane_numbers() < left, v, vf{});
    total += v;
    if (y == nullptr) continue;
    if (left == VL) {
      store(y + j, v);
    } else {
      store_partial(y + j, v, left);
    }
  }
  return reduce_sum(total);
}

static void scale_row(int64_t n, float factor, float* y) {
  map_range(0, n, y, [factor](vf v) { return factor * v; }, (const float*)y);
}

static float log_of(float x) { return log(splat(x))[0]; }

void softmax(int64_t m, int64_t n, const float* x, float* y, const Parallel& parallel) {
  for_rows(parallel, m, n, [&](int64_t i) {
    scale_row(n, 1 / exp_row(n, x + i * n, row_max(n, x + i * n), y + i * n), y + i * n);
  });
}

void log_softmax(int64_t m, int64_t n, const float* x, float* y, const Parallel& parallel) {
  for_rows(parallel, m, n, [&](int64_t i) {
    const float largest = row_max(n, x + i * n);
    const float log_sum = log_of(exp_row(n, x + i * n, largest, nullptr));
    map_range(0, n, y + i * n, [=](vf v) { return v - largest - log_sum; }, x + i * n);
  });
}

void softmax_gradient(int64_t m, int64_t n, const float* y, const float* dy, float* dx,
                      const Parallel& parallel) {
  for_rows(parallel, m, n, [&](int64_t i) {
    const float *yi = y + i * n, *dyi = dy + i * n;
    vf products = {};
    for (int64_t j = 0; j < n; j += VL) {
      const int left = (int)min_of<int64_t>(VL, n - j);
      products += left == VL ? load(yi + j) * load(dyi + j)
                             : load_partial(yi + j, left) * load_partial(dyi + j, left);
    }
    const float dot = reduce_sum(products);
    map_range(0, n, dx + i * n, [dot](vf u, vf d) { return u * (d - dot); }, yi, dyi);
  });
}

void label_cross_entropy(int64_t m, int64_t n, float floor, const float* x, const int32_t* labels,
                         float* y, const Parallel& parallel) {
  for_ranges(parallel, m, ELEMENTS / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) y[i] = x[i * n + labels[i]];
    map_range(begin, end, y, [floor](vf v) { return -log(max(splat(floor), v)); }, (const float*)y);
  });
}

void label_cross_entropy_gradient(int64_t m, int64_t n, float floor, const float* x,
                                  const int32_t* labels, const float* dy, float* dx,
                                  const Parallel& parallel) {
  for_rows(parallel, m, n, [&](int64_t i) {
    const float p = x[i * n + labels[i]];
    map_range(0, n, dx + i * n, [] { return vf{}; });
    dx[i * n + labels[i]] = -dy[i] / (p < floor ? floor : p);
  });
}

void softmax_loss(int64_t m, int64_t n, const float* x, const int32_t* labels, const float* weights,
                  float* p, float* loss, const Parallel& parallel) {
  for_rows(parallel, m, n, [&](int64_t i) {
    const float largest = row_max(n, x + i * n), wanted = x[i * n + labels[i]];
    const float total = exp_row(n, x + i * n, largest, p + i * n);
    scale_row(n, 1 / total, p + i * n);
    loss[i] = (weights ? weights[i] : 1) * (log_of(total) + (largest - wanted));
  });
}

void softmax_loss_gradient(int64_t m, int64_t n, const float* p, const int32_t* labels,
                           const float* weights, float scale, float* dx, const Parallel& parallel) {
  for_rows(parallel, m, n, [&](int64_t i) {
    const float factor = scale * (weights ? weights[i] : 1), wanted = p[i * n + labels[i]];
    map_range(0, n, dx + i * n, [factor](vf v) { return factor * v; }, p + i * n);
    dx[i * n + labels[i]] = factor * (wanted - 1);
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
