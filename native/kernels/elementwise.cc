#include "kernels/functions.h"
#include "kernels/map.h"
#include "kernels/math.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

void relu(int64_t n, const float* x, float* y, const Parallel& parallel) {
  map(parallel, n, y, [](vf v) { return max(vf{}, v); }, x);
}

void relu_gradient(int64_t n, const float* y, const float* dy, float* dx,
                   const Parallel& parallel) {
  map(parallel, n, dx, [](vf out, vf d) { return select(out > vf{}, d, vf{}); }, y, dy);
}

void exp(int64_t n, const float* x, float* y, const Parallel& parallel) {
  map(parallel, n, y, [](vf v) { return exp(v); }, x);
}

void log(int64_t n, const float* x, float* y, const Parallel& parallel) {
  map(parallel, n, y, [](vf v) { return log(v); }, x);
}

void tanh(int64_t n, const float* x, float* y, const Parallel& parallel) {
  map(parallel, n, y, [](vf v) { return tanh(v); }, x);
}

void sigmoid(int64_t n, const float* x, float* y, const Parallel& parallel) {
  map(parallel, n, y, [](vf v) { return sigmoid(v); }, x);
}

void tanh_gradient(int64_t n, const float* y, const float* dy, float* dx,
                   const Parallel& parallel) {
  map(parallel, n, dx, [](vf out, vf d) { return d * (1.f - out * out); }, y, dy);
}

void sigmoid_gradient(int64_t n, const float* y, const float* dy, float* dx,
                      const Parallel& parallel) {
  map(parallel, n, dx, [](vf out, vf d) { return d * out * (1.f - out); }, y, dy);
}

void fill(int64_t n, float value, float* y, const Parallel& parallel) {
  map(parallel, n, y, [value] { return splat(value); });
}

void scale(int64_t n, float alpha, const float* x, float* y, const Parallel& parallel) {
  map(parallel, n, y, [alpha](vf v) { return alpha * v; }, x);
}

void axpby(int64_t n, float alpha, const float* x, float beta, float* y, const Parallel& parallel) {
  map(parallel, n, y, [=](vf u, vf v) { return alpha * u + beta * v; }, x, (const float*)y);
}

void weighted_sum(int64_t n, int count, const float* const* inputs, const float* weights, float* y,
                  const Parallel& parallel) {
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += VL) {
      const int left = (int)min_of<int64_t>(VL, end - i);
      vf sum = {};
      for (int j = 0; j < count; j++) {
        const vf v = left == VL ? load(inputs[j] + i) : load_partial(inputs[j] + i, left);
        const vf term = weights ? weights[j] * v : v;
        sum = j == 0 ? term : sum + term;
      }
      if (left == VL) {
        store(y + i, sum);
      } else {
        store_partial(y + i, sum, left);
      }
    }
  });
}

void add_row(int64_t m, int64_t n, const float* x, const float* b, float* y,
             const Parallel& parallel) {
  const int64_t step = max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, n));
  for_ranges(parallel, m, step, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      map_range(0, n, y + i * n, [](vf u, vf v) { return u + v; }, x + i * n, b);
    }
  });
}

void momentum_sgd(int64_t n, float lr, float momentum, bool nesterov, const float* gradient,
                  float* buffer, float* step, float* parameter, const Parallel& parallel) {
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += VL) {
      const int left = (int)min_of<int64_t>(VL, end - i);
      const auto read = [&](const float* p) {
        return left == VL ? load(p + i) : load_partial(p + i, left);
      };
      const auto write = [&](float* p, vf v) {
        if (left == VL) {
          store(p + i, v);
        } else {
          store_partial(p + i, v, left);
        }
      };
      const vf old = read(buffer), next = momentum * old + lr * read(gradient);
      const vf change = nesterov ? (1 + momentum) * next - momentum * old : next;
      if (parameter) write(parameter, read(parameter) - change);
      write(buffer, next);
      write(step, change);
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
