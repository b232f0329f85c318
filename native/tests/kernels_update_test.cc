// Rules of optimizers on every instruction set, and the dot product.
#include <cmath>

#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

// 70001 is more than two blocks of work.
const int64_t kSizes[] = {0, 1, 7, 15, 17, 33, 70001};

struct State {
  Floats w, m, v, g;
};

State drawn(int64_t n) {
  Random random(7);
  return {random.floats(n), random.floats(n), random.floats(n, 0.5f, 1), random.floats(n)};
}

Update adam(State& s, float* step) {
  return {UpdateRule::kAdam,
          {-0.1f, 0.75f, 0.875f, 0.125f, 0.5f},
          {s.w.data(), s.m.data(), s.v.data(), s.g.data()},
          {s.w.data(), s.m.data(), s.v.data(), step}};
}

TEST_CASE("dot products are accurate and do not depend on threads") {
  for (const int64_t n : {0, 1, 7, 15, 17, 33, 1000, 3000000}) {
    const Floats x = Random(5).floats(n, 0.9f, 1.1f), y = Random(6).floats(n, 0.9f, 1.1f);
    double want = 0;
    for (size_t i = 0; i < x.size(); i++) want += static_cast<double>(x[i]) * y[i];
    for (const Table* kernels : tables()) {
      const double one = kernels->dot(n, x.data(), y.data(), threads(1));
      CHECK(one == doctest::Approx(want).epsilon(1e-6));
      CHECK(kernels->dot(n, x.data(), y.data(), threads(2)) == one);
      CHECK(kernels->dot(n, x.data(), y.data(), threads(8)) == one);
    }
  }
}

TEST_CASE("Adam in place, with its step and without") {
  for (const int64_t n : kSizes) {
    for (const Table* kernels : tables()) {
      const State before = drawn(n);
      State s = before, other = before;
      Floats step(static_cast<size_t>(n));
      kernels->update(adam(s, step.data()), n, threads(1));
      kernels->update(adam(other, nullptr), n, threads(8));
      CHECK(same_bits(s.w, other.w));
      for (size_t i = 0; i < s.w.size(); i++) {
        const double g = before.g[i], m = 0.75 * before.m[i] + 0.25 * g;
        const double v = 0.875 * before.v[i] + 0.125 * g * g;
        const double right = 0.5 * m / (std::sqrt(v) + 0.125);
        const bool near = std::abs(s.m[i] - m) < 1e-6 && std::abs(s.v[i] - v) < 1e-6 &&
                          std::abs(step[i] - right) < 1e-6 &&
                          std::abs(s.w[i] - (before.w[i] - 0.1 * right)) < 1e-6;
        if (!near) {
          CHECK(near);
          break;
        }
      }
    }
  }
}

}  // namespace
}  // namespace caffe2::kernels::testing
