// Softmax, losses, sums, positions.
#include <cmath>
#include <limits>

#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

const float kNan = std::nanf("");
const int64_t kWidths[] = {1, 2, 7, 10, 15, 16, 17, 33, 1000};

struct Rows {
  int64_t m, n;
  Floats x, dy, weights;
  std::vector<int32_t> labels;
  std::vector<double> softmax, log_softmax;
  Rows(int64_t rows, int64_t columns, unsigned seed) : m(rows), n(columns) {
    Random random(seed);
    x = random.floats(m * n, -30, 30);
    dy = random.floats(m * n);
    weights = random.floats(m, 0, 2);
    for (int64_t i = 0; i < m; i++) {
      labels.push_back(static_cast<int32_t>(random.integer(0, n - 1)));
      double sum = 0;
      for (int64_t j = 0; j < n; j++) sum += std::exp(static_cast<double>(x[i * n + j]));
      for (int64_t j = 0; j < n; j++) {
        softmax.push_back(std::exp(static_cast<double>(x[i * n + j])) / sum);
        log_softmax.push_back(x[i * n + j] - std::log(sum));
      }
    }
  }
};

// Terms of up to 60 in magnitude, rounded a few times.
const double kLogBound = 2e-5, kBound = 4e-6;

TEST_CASE("softmax and its gradient") {
  for (int64_t m : {0, 1, 40}) {
    for (int64_t n : kWidths) {
      INFO("m " << m << " n " << n);
      const Rows r(m, n, 1);
      const std::vector<double> bound(m * n, kBound), log_bound(m * n, kLogBound);
      for (const Table* kernels : tables()) {
        INFO(std::string(isa_name(kernels->isa)));
        Floats y(m * n, kNan), in_place = r.x, dx(m * n, kNan);
        kernels->softmax(m, n, r.x.data(), y.data(), threads(2));
        CHECK(count_wrong(y, r.softmax, bound) == 0);
        kernels->softmax(m, n, in_place.data(), in_place.data(), Parallel());
        CHECK(same_bits(in_place, y));
        std::vector<double> want(m * n);
        for (int64_t i = 0; i < m; i++) {
          double dot = 0;
          for (int64_t j = 0; j < n; j++)
            dot += static_cast<double>(y[i * n + j]) * r.dy[i * n + j];
          for (int64_t j = 0; j < n; j++) want[i * n + j] = y[i * n + j] * (r.dy[i * n + j] - dot);
        }
        kernels->softmax_gradient(m, n, y.data(), r.dy.data(), dx.data(), threads(2));
        CHECK(count_wrong(dx, want, bound) == 0);
        kernels->log_softmax(m, n, r.x.data(), y.data(), threads(2));
        CHECK(count_wrong(y, r.log_softmax, log_bound) == 0);
      }
    }
  }
}

TEST_CASE("softmax: large and infinite inputs") {
  const float inf = std::numeric_limits<float>::infinity();
  const Floats x = {1000, 0, -1000, 1e30f, 1e30f, -inf};
  for (const Table* kernels : tables()) {
    Floats y(6);
    kernels->softmax(2, 3, x.data(), y.data(), Parallel());
    CHECK(y == Floats{1, 0, 0, 0.5f, 0.5f, 0});
    const Floats low(20, -1000);
    Floats even(20);
    kernels->softmax(1, 20, low.data(), even.data(), Parallel());
    CHECK(even == Floats(20, 0.05f));
  }
}

TEST_CASE("cross entropy") {
  for (int64_t n : kWidths) {
    const int64_t m = 33;
    const Rows r(m, n, 2);
    Floats p(r.softmax.begin(), r.softmax.end());
    p[r.labels[0]] = 0;  // its logarithm is cut off
    const Floats dy = Random(3).floats(m);
    std::vector<double> want(m), want_dx(m * n), bound(m, kLogBound), dx_bound(m * n);
    for (int64_t i = 0; i < m; i++) {
      const double chosen = std::max(1e-20, static_cast<double>(p[i * n + r.labels[i]]));
      want[i] = -std::log(chosen);
      want_dx[i * n + r.labels[i]] = -dy[i] / chosen;
      dx_bound[i * n + r.labels[i]] = 3e-7 / chosen;
    }
    for (const Table* kernels : tables()) {
      Floats y(m, kNan), dx(m * n, kNan);
      kernels->label_cross_entropy(m, n, 1e-20f, p.data(), r.labels.data(), y.data(), threads(2));
      CHECK(count_wrong(y, want, bound) == 0);
      kernels->label_cross_entropy_gradient(m, n, 1e-20f, p.data(), r.labels.data(), dy.data(),
                                            dx.data(), threads(2));
      CHECK(count_wrong(dx, want_dx, dx_bound) == 0);
    }
  }
}

TEST_CASE("softmax with loss and its gradient") {
  for (int64_t m : {1, 64, 300}) {
    for (int64_t n : kWidths) {
      const Rows r(m, n, 4);
      for (bool weighted : {false, true}) {
        std::vector<double> want(m), want_dx(m * n);
        for (int64_t i = 0; i < m; i++) {
          const double w = weighted ? r.weights[i] : 1;
          want[i] = -w * r.log_softmax[i * n + r.labels[i]];
          for (int64_t j = 0; j < n; j++) {
            want_dx[i * n + j] = 0.25 * w * (r.softmax[i * n + j] - (j == r.labels[i]));
          }
        }
        const float* weights = weighted ? r.weights.data() : nullptr;
        const std::vector<double> bound(m * n, kBound), loss_bound(m, 2 * kLogBound);
        for (const Table* kernels : tables()) {
          Floats p(m * n, kNan), loss(m, kNan), first;
          for (int count : {1, 2, 8}) {
            kernels->softmax_loss(m, n, r.x.data(), r.labels.data(), weights, p.data(), loss.data(),
                                  threads(count));
            CHECK(count_wrong(p, r.softmax, bound) == 0);
            CHECK(count_wrong(loss, want, loss_bound) == 0);
            if (count == 1) first = loss;
            CHECK(same_bits(loss, first));
          }
          Floats dx(m * n, kNan);
          kernels->softmax_loss_gradient(m, n, p.data(), r.labels.data(), weights, 0.25f, dx.data(),
                                         threads(2));
          CHECK(count_wrong(dx, want_dx, bound) == 0);
          kernels->softmax_loss_gradient(m, n, p.data(), r.labels.data(), weights, 0.25f, p.data(),
                                         threads(2));
          CHECK(same_bits(p, dx));
        }
      }
    }
  }
}

TEST_CASE("softmax with loss stays finite where the probability vanishes") {
  const Floats x = {1000, 0, -1000};
  const int32_t label = 2;
  for (const Table* kernels : tables()) {
    Floats p(3), loss(1);
    kernels->softmax_loss(1, 3, x.data(), &label, nullptr, p.data(), loss.data(), Parallel());
    CHECK(loss[0] == 2000);
  }
}

TEST_CASE("sums are accurate and do not depend on threads") {
  for (int64_t n : {0, 1, 7, 15, 17, 33, 1000, 3000000}) {
    const Floats x = Random(5).floats(n, 0.9f, 1.1f);
    double want = 0;
    for (float v : x) want += v;
    for (const Table* kernels : tables()) {
      const double one = kernels->sum(n, x.data(), threads(1));
      CHECK(one == doctest::Approx(want).epsilon(1e-7));
      CHECK(kernels->sum(n, x.data(), threads(2)) == one);
      CHECK(kernels->sum(n, x.data(), threads(8)) == one);
    }
  }
}

TEST_CASE("sums of rows and columns") {
  for (int64_t m : {0, 1, 7, 33, 2000}) {
    for (int64_t n : {1, 7, 15, 17, 33, 64, 300}) {
      const Floats x = Random(6).floats(m * n, 0.9f, 1.1f);
      std::vector<double> rows(m), columns(n);
      // A float adds up at most 32 values before it is taken over into a double.
      const std::vector<double> rows_bound(m, sum_bound(32, 1.1 * n));
      const std::vector<double> columns_bound(n, sum_bound(32, 1.1 * m));
      for (int64_t i = 0; i < m * n; i++) {
        rows[i / n] += x[i];
        columns[i % n] += x[i];
      }
      for (const Table* kernels : tables()) {
        Floats r(m, kNan), c(n, kNan), c8(n, kNan);
        kernels->reduce(Reduction::kSum, m, n, 1, x.data(), r.data(), threads(2));
        kernels->reduce(Reduction::kSum, 1, m, n, x.data(), c.data(), threads(1));
        kernels->reduce(Reduction::kSum, 1, m, n, x.data(), c8.data(), threads(8));
        CHECK(count_wrong(r, rows, rows_bound) == 0);
        CHECK(count_wrong(c, columns, columns_bound) == 0);
        CHECK(same_bits(c, c8));
      }
    }
  }
}

TEST_CASE("reductions of the middle axis") {
  const float infinity = INFINITY, most = 3.402823466e38f;
  for (int64_t n : {0, 1, 7, 33, 70000}) {
    for (int64_t inner : {1, 3, 17, 65}) {
      const int64_t outer = n > 100 ? 2 : 5;
      const Floats x = Random(8).floats(outer * n * inner, -1, 1);
      const int64_t size = outer * inner;
      Floats most_of(size, n > 0 ? -infinity : -most), least_of(size, n > 0 ? infinity : most);
      std::vector<double> sizes(size), squares(size);
      const std::vector<double> bound(size, sum_bound(32, n));
      for (int64_t i = 0; i < outer * n * inner; i++) {
        const int64_t at = i / (n * inner) * inner + i % inner;
        most_of[at] = std::max(most_of[at], x[i]);
        least_of[at] = std::min(least_of[at], x[i]);
        sizes[at] += std::fabs(x[i]);
        squares[at] += static_cast<double>(x[i]) * x[i];
      }
      for (const Table* kernels : tables()) {
        const auto reduced = [&](Reduction r, int n_threads) {
          Floats y(size, kNan);
          kernels->reduce(r, outer, n, inner, x.data(), y.data(), threads(n_threads));
          return y;
        };
        CHECK(reduced(Reduction::kMax, 2) == most_of);
        CHECK(reduced(Reduction::kMin, 2) == least_of);
        CHECK(count_wrong(reduced(Reduction::kSumAbs, 2), sizes, bound) == 0);
        CHECK(count_wrong(reduced(Reduction::kSumSquares, 2), squares, bound) == 0);
        CHECK(same_bits(reduced(Reduction::kSumAbs, 1), reduced(Reduction::kSumAbs, 8)));
      }
    }
  }
  const Floats holes = {1, kNan, 2, 3, 4, 5};
  for (const Table* kernels : tables()) {
    for (Reduction r : {Reduction::kMax, Reduction::kMin, Reduction::kSum}) {
      Floats rows(2), columns(3);
      kernels->reduce(r, 2, 3, 1, holes.data(), rows.data(), threads(1));
      kernels->reduce(r, 1, 2, 3, holes.data(), columns.data(), threads(1));
      CHECK((std::isnan(rows[0]) && !std::isnan(rows[1])));
      CHECK((!std::isnan(columns[0]) && std::isnan(columns[1]) && !std::isnan(columns[2])));
    }
  }
}

TEST_CASE("argmax: the first one of several, a NaN before all; first_outside") {
  const Floats x = {1, 3, 3, 2, kNan, 9, 9, kNan, -1, -1, -1, -1};
  const std::vector<int32_t> labels = {0, 2, 4, -1, 7};
  for (const Table* kernels : tables()) {
    std::vector<int64_t> at(3);
    kernels->argmax(3, 4, x.data(), at.data(), threads(2));
    CHECK(at == std::vector<int64_t>{1, 0, 0});
    CHECK(kernels->first_outside(5, labels.data(), -1, 8) == -1);
    CHECK(kernels->first_outside(5, labels.data(), 0, 8) == 3);
    CHECK(kernels->first_outside(5, labels.data(), -1, 7) == 4);
    CHECK(kernels->first_outside(0, labels.data(), 0, 1) == -1);
  }
}

}  // namespace
}  // namespace caffe2::kernels::testing
