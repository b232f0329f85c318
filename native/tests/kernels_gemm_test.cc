#include <algorithm>
#include <cmath>

#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

struct Case {
  Gemm g;
  Floats a, b, c, bias;
  std::vector<double> want, bound;
};

// Row distances are larger than needed, and what lies between rows must stay.
Case make_case(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, float alpha, float beta,
               bool bias, bool relu, unsigned seed) {
  Random random(seed);
  Case t;
  Gemm& g = t.g;
  g = {trans_a, trans_b, m, n, k, 0, 0, 0, alpha, beta, nullptr, relu ? Bounds{0, 3} : Bounds()};
  g.lda = (trans_a ? m : k) + random.integer(0, 3);
  g.ldb = (trans_b ? k : n) + random.integer(0, 3);
  g.ldc = n + random.integer(0, 3);
  t.a = random.floats((trans_a ? k : m) * g.lda);
  t.b = random.floats((trans_b ? n : k) * g.ldb);
  t.c = random.floats(m * g.ldc);
  t.bias = random.floats(n);
  if (beta == 0) std::fill(t.c.begin(), t.c.end(), std::nanf(""));
  t.want.assign(t.c.begin(), t.c.end());
  t.bound.assign(t.c.size(), 0);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++) {
      double sum = 0, magnitude = 0;
      for (int64_t l = 0; l < k; l++) {
        const double product = static_cast<double>(t.a[trans_a ? l * g.lda + i : i * g.lda + l]) *
                               t.b[trans_b ? j * g.ldb + l : l * g.ldb + j];
        sum += product;
        magnitude += std::abs(product);
      }
      double& c = t.want[i * g.ldc + j];
      magnitude = std::abs(alpha) * magnitude + 4;
      c = alpha * sum + (beta == 0 ? 0 : beta * c) + (bias ? t.bias[j] : 0);
      if (relu) c = std::clamp(c, 0.0, 3.0);
      t.bound[i * g.ldc + j] = sum_bound(k, magnitude);
    }
  }
  if (bias) g.bias = t.bias.data();
  return t;
}

// Padding between rows is NaN when beta is 0: compare only what belongs to C, the rest bit by bit.
int64_t wrong_values(const Case& t, const Floats& c) {
  int64_t wrong = 0;
  for (size_t i = 0; i < c.size(); i++) {
    if (static_cast<int64_t>(i) % t.g.ldc < t.g.n) {
      wrong += !(std::abs(c[i] - t.want[i]) <= t.bound[i]);
    } else {
      wrong += std::memcmp(&c[i], &t.c[i], sizeof(float)) != 0;
    }
  }
  return wrong;
}

void check(Case t) {
  const Gemm& g = t.g;
  INFO("m " << g.m << " n " << g.n << " k " << g.k << " trans " << g.trans_a << g.trans_b
            << " alpha " << g.alpha << " beta " << g.beta << " bias " << (g.bias != nullptr)
            << " relu " << g.bounds.low);
  for (const Table* kernels : tables()) {
    INFO(std::string(isa_name(kernels->isa)));
    Scratch packed(kernels->gemm_packed_bytes(g.n, g.k));
    kernels->gemm_pack(g, t.b.data(), packed.get(), threads(2));
    Floats first, first_packed;
    for (int count : {1, 2, 8}) {
      Scratch scratch(kernels->gemm_scratch_bytes(g, count));
      Floats c = t.c, c_packed = t.c;
      Gemm turned = g;
      turned.backwards = count == 2;
      kernels->gemm(turned, t.a.data(), t.b.data(), c.data(), scratch.get(), threads(count));
      kernels->gemm_packed(g, t.a.data(), packed.get(), c_packed.data(), scratch.get(),
                           threads(count));
      CHECK(wrong_values(t, c) == 0);
      CHECK(wrong_values(t, c_packed) == 0);
      if (count == 1) {
        first = c;
        first_packed = c_packed;
      }
      CHECK(same_bits(c, first));
      CHECK(same_bits(c_packed, first_packed));
    }
  }
}

TEST_CASE("gemm: sizes around the widths of vectors and tiles") {
  unsigned seed = 1;
  for (int64_t m : {1, 2, 3, 7, 15, 33}) {
    for (int64_t n : {1, 7, 15, 17, 33, 65}) {
      for (int64_t k : {1, 17, 40}) {
        for (int trans = 0; trans < 4; trans++) {
          check(make_case(m, n, k, trans & 1, trans & 2, 1, 0, false, false, seed++));
        }
      }
    }
  }
}

TEST_CASE("gemm: alpha, beta, bias, relu") {
  unsigned seed = 1000;
  for (int64_t m : {1, 20}) {
    for (float alpha : {0.0f, 1.0f, -1.5f}) {
      for (float beta : {0.0f, 1.0f, 0.5f}) {
        for (int flags = 0; flags < 4; flags++) {
          check(make_case(m, 37, 21, false, true, alpha, beta, flags & 1, flags & 2, seed++));
          check(make_case(m + 11, 1, 9, true, false, alpha, beta, flags & 1, flags & 2, seed++));
          check(make_case(m + 8, 70, 10, false, false, alpha, beta, flags & 1, flags & 2, seed++));
          check(make_case(m, 18, 530, false, false, alpha, beta, flags & 1, flags & 2, seed++));
        }
      }
    }
  }
}

TEST_CASE("gemm: several blocks and several pieces of the reduction") {
  unsigned seed = 2000;
  for (int trans = 0; trans < 4; trans++) {
    check(make_case(64, 500, 800, trans & 1, trans & 2, 1, 0, true, false, seed++));
    check(make_case(200, 150, 520, trans & 1, trans & 2, 2, 1, true, true, seed++));
    check(make_case(1, 700, 1100, trans & 1, trans & 2, 1, 1, true, true, seed++));
    check(make_case(700, 1, 1100, trans & 1, trans & 2, 1, 1, true, true, seed++));
  }
}

TEST_CASE("gemm: nothing to do") {
  check(make_case(0, 5, 3, false, false, 1, 0, false, false, 1));
  check(make_case(5, 0, 3, false, false, 1, 0, false, false, 2));
  check(make_case(5, 4, 0, false, false, 1, 0, true, true, 3));
  check(make_case(5, 4, 0, false, false, 1, 0.5f, true, false, 4));
}

TEST_CASE("gemm: a NaN is not lost, neither in sums nor in relu") {
  for (const Table* kernels : tables()) {
    for (int64_t m : {1, 9}) {
      Case t = make_case(m, 20, 10, false, false, 1, 0, false, true, 5);
      t.a[0] = std::nanf("");
      Floats c(t.c.size());
      Scratch scratch(kernels->gemm_scratch_bytes(t.g, 1));
      kernels->gemm(t.g, t.a.data(), t.b.data(), c.data(), scratch.get(), Parallel());
      CHECK(std::isnan(c[0]));
    }
  }
}

}  // namespace
}  // namespace caffe2::kernels::testing
