#include <cmath>
#include <limits>

#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

// Calls body(input index) for every input element of the window of output (plane, y, x).
template <class Body>
void for_window(const PoolShape& s, int64_t plane, int64_t y, int64_t x, const Body& body) {
  for (int64_t r = 0; r < s.kh; r++) {
    for (int64_t q = 0; q < s.kw; q++) {
      const int64_t iy = y * s.stride_h - s.pad_t + r * s.dilation_h;
      const int64_t ix = x * s.stride_w - s.pad_l + q * s.dilation_w;
      if (iy >= 0 && iy < s.h && ix >= 0 && ix < s.w) body((plane * s.h + iy) * s.w + ix);
    }
  }
}

template <class Body>
void for_outputs(const PoolShape& s, const Body& body) {
  for (int64_t i = 0; i < s.planes * s.oh * s.ow; i++) {
    body(i, i / (s.oh * s.ow), i / s.ow % s.oh, i % s.ow);
  }
}

PoolShape square(int64_t planes, int64_t h, int64_t w, int64_t window, int64_t stride,
                 int64_t pad) {
  PoolShape s;
  s.planes = planes;
  s.h = h;
  s.w = w;
  s.kh = s.kw = window;
  s.stride_h = s.stride_w = stride;
  s.pad_t = s.pad_l = s.pad_b = s.pad_r = pad;
  s.oh = (h + 2 * pad - window) / stride + 1;
  s.ow = (w + 2 * pad - window) / stride + 1;
  return s;
}

// Pools with `pool` in blocked layout, the planes taken for the channels of one image.
template <class Pool>
Floats through_blocks(const Table& kernels, PoolShape s, const Floats& x, int count,
                      const Pool& pool) {
  const int64_t c = s.planes, in = s.h * s.w, out = s.oh * s.ow;
  Scratch blocked(kernels.blocked_bytes(1, c, in)), result(kernels.blocked_bytes(1, c, out));
  kernels.to_blocked(1, c, in, x.data(), blocked.get(), Parallel());
  s.layout = Layout::kBlocked;
  s.planes = (c + kernels.vector_width - 1) / kernels.vector_width;
  pool(s, blocked.get(), result.get(), threads(count));
  Floats y(c * out, std::nanf(""));
  kernels.from_blocked(1, c, out, result.get(), y.data(), Parallel());
  return y;
}

void check(const PoolShape& s, unsigned seed, bool ties) {
  INFO("planes " << s.planes << " h " << s.h << " w " << s.w << " out " << s.oh << " " << s.ow
                 << " window " << s.kh << " " << s.kw << " stride " << s.stride_h << " "
                 << s.stride_w << " pad " << s.pad_t << " " << s.pad_l << " dilation "
                 << s.dilation_h << " " << s.dilation_w);
  Random random(seed);
  const int64_t inputs = s.planes * s.h * s.w, outputs = s.planes * s.oh * s.ow;
  Floats x = random.floats(inputs);
  if (ties) {
    for (float& v : x) v = std::round(v * 2);
  }
  const Floats dy = random.floats(outputs);

  Floats largest(outputs, -std::numeric_limits<float>::infinity());
  std::vector<double> max_dx(inputs), max_bound(inputs), average[2], average_dx[2];
  for_outputs(s, [&](int64_t o, int64_t plane, int64_t row, int64_t column) {
    for_window(s, plane, row, column, [&](int64_t i) { largest[o] = std::max(largest[o], x[i]); });
    for_window(s, plane, row, column, [&](int64_t i) {
      if (x[i] == largest[o]) {
        max_dx[i] += dy[o];
        max_bound[i] += 1e-6;
      }
    });
  });
  for (int include = 0; include < 2; include++) {
    average[include].resize(outputs);
    average_dx[include].resize(inputs);
    for_outputs(s, [&](int64_t o, int64_t plane, int64_t row, int64_t column) {
      double sum = 0, count = 0;
      for_window(s, plane, row, column, [&](int64_t i) {
        sum += x[i];
        count += 1;
      });
      if (include) count = s.kh * s.kw;
      average[include][o] = sum / count;
      for_window(s, plane, row, column,
                 [&](int64_t i) { average_dx[include][i] += dy[o] / count; });
    });
  }
  const std::vector<double> y_bound(outputs, 2e-6), dx_bound(inputs, 2e-6 * s.kh * s.kw);

  for (const Table* kernels : tables()) {
    INFO(std::string(isa_name(kernels->isa)));
    for (int count : {1, 3}) {
      Floats y(outputs, std::nanf("")), dx(inputs, std::nanf(""));
      kernels->max_pool(s, x.data(), y.data(), threads(count));
      CHECK(y == largest);
      CHECK(through_blocks(*kernels, s, x, count, kernels->max_pool) == largest);
      kernels->max_pool_gradient(s, x.data(), y.data(), dy.data(), dx.data(), threads(count));
      CHECK(count_wrong(dx, max_dx, max_bound) == 0);
      for (int include = 0; include < 2; include++) {
        kernels->average_pool(s, include, x.data(), y.data(), threads(count));
        CHECK(count_wrong(y, average[include], y_bound) == 0);
        const auto pool = [&](const PoolShape& shape, const float* in, float* out,
                              const Parallel& parallel) {
          kernels->average_pool(shape, include, in, out, parallel);
        };
        CHECK(count_wrong(through_blocks(*kernels, s, x, count, pool), average[include], y_bound) ==
              0);
        std::fill(dx.begin(), dx.end(), std::nanf(""));
        kernels->average_pool_gradient(s, include, dy.data(), dx.data(), threads(count));
        CHECK(count_wrong(dx, average_dx[include], dx_bound) == 0);
      }
    }
  }
}

TEST_CASE("pooling: known layers") {
  check(square(40, 24, 24, 2, 2, 0), 1, false);
  check(square(40, 8, 8, 2, 2, 0), 2, true);
  check(square(3, 9, 71, 2, 2, 0), 3, true);  // odd sizes, long rows
  check(square(3, 56, 57, 3, 2, 1), 4, true);
  check(square(3, 20, 300, 3, 1, 1), 5, true);  // rows longer than the gradient's buffer
  check(square(5, 7, 7, 7, 1, 0), 6, false);
  check(square(5, 7, 7, 7, 7, 3), 7, true);
}

TEST_CASE("pooling: random windows, output rounded up or down") {
  Random random(11);
  for (int i = 0; i < 300; i++) {
    PoolShape s;
    s.planes = random.integer(1, 5);
    s.kh = random.integer(1, 4);
    s.kw = random.integer(1, 4);
    s.stride_h = random.integer(1, 3);
    s.stride_w = random.integer(1, 3);
    s.dilation_h = random.integer(1, 2);
    s.dilation_w = random.integer(1, 2);
    s.pad_t = random.integer(0, s.kh - 1);
    s.pad_b = random.integer(0, s.kh - 1);
    s.pad_l = random.integer(0, s.kw - 1);
    s.pad_r = random.integer(0, s.kw - 1);
    const int64_t reach_h = s.dilation_h * (s.kh - 1) + 1, reach_w = s.dilation_w * (s.kw - 1) + 1;
    s.h = reach_h + random.integer(0, 9);
    s.w = reach_w + random.integer(0, 40);
    const int64_t up_h = random.integer(0, s.stride_h - 1),
                  up_w = random.integer(0, s.stride_w - 1);
    s.oh = (s.h + s.pad_t + s.pad_b - reach_h + up_h) / s.stride_h + 1;
    s.ow = (s.w + s.pad_l + s.pad_r - reach_w + up_w) / s.stride_w + 1;
    // Every window has to touch the input.
    bool empty = false;
    for_outputs(s, [&](int64_t, int64_t plane, int64_t row, int64_t column) {
      int64_t touched = 0;
      for_window(s, plane, row, column, [&](int64_t) { touched++; });
      empty |= touched == 0;
    });
    if (!empty) check(s, 100 + i, random.coin());
  }
}

TEST_CASE("max pooling: infinities and NaNs") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Floats x = {-inf, -inf, nan, 1, -inf, -inf, 2, 3, 1, 2, inf, 5, nan, 3, 4, 5};
  for (const Table* kernels : tables()) {
    for (const PoolShape& s : {square(1, 4, 4, 2, 2, 0), square(1, 4, 4, 2, 1, 0)}) {
      Floats y(s.oh * s.ow);
      kernels->max_pool(s, x.data(), y.data(), Parallel());
      CHECK(y[0] == -inf);
      CHECK(std::isnan(y[s.ow - 1]));
      CHECK(std::isnan(y[(s.oh - 1) * s.ow]));
      CHECK(y[s.oh * s.ow - 1] == inf);
    }
  }
}

}  // namespace
}  // namespace caffe2::kernels::testing
