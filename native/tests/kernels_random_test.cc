#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

std::vector<int32_t> integers(const Table& t, const RandomState& r, int32_t low, int32_t high,
                              int64_t n, int count = 1) {
  std::vector<int32_t> y(n);
  t.uniform_int(r, low, high, n, y.data(), threads(count));
  return y;
}
Floats uniforms(const Table& t, const RandomState& r, float low, float high, int64_t n,
                int count = 1) {
  Floats y(n);
  t.uniform(r, low, high, n, y.data(), threads(count));
  return y;
}
Floats normals(const Table& t, const RandomState& r, float mean, float std, int64_t n,
               int count = 1) {
  Floats y(n);
  t.normal(r, mean, std, n, y.data(), threads(count));
  return y;
}

using Words = std::array<uint32_t, 4>;

// The definition, word for word.
Words philox(Words c, uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

TEST_CASE("Philox4x32-10: the known answers of its authors") {
  CHECK(philox({0, 0, 0, 0}, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random numbers come from the words of Philox in order") {
  // Counters that carry from their lowest word into the next.
  const uint64_t key = 0x299f31d0a4093822, stream = 0x0370734413198a2e, block = 0x3ffffffe0;
  const int64_t blocks = 100;
  for (const Table* t : tables()) {
    INFO(std::string(isa_name(t->isa)));
    // Over the full range, integers show words 0 and 2 as they are.
    const std::vector<int32_t> k =
        integers(*t, {key, stream, 2 * block}, INT32_MIN, INT32_MAX, 2 * blocks);
    const Floats u = uniforms(*t, {key, stream, 4 * block}, 0, 1, 4 * blocks);
    int wrong = 0;
    for (int64_t i = 0; i < blocks; i++) {
      const uint64_t low = block + i;
      const Words w = philox({static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
                              static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                             static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
      for (int j = 0; j < 4; j++) wrong += u[4 * i + j] != (w[j] >> 8) / 16777216.0f;
      for (int j = 0; j < 2; j++) {
        wrong += (static_cast<uint32_t>(k[2 * i + j]) ^ 0x80000000) != w[2 * j];
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("random numbers: the same on every instruction set, in pieces and on threads") {
  const RandomState r = {0x123456789abcdef0, 77, 5};
  const std::vector<const Table*> all = tables();
  const int64_t n = 30001;
  const Floats u = uniforms(*all[0], r, -1, 2, n), g = normals(*all[0], r, 1, 3, n);
  const std::vector<int32_t> k = integers(*all[0], r, -5, 9, n);
  for (const Table* t : all) {
    INFO(std::string(isa_name(t->isa)));
    CHECK(same_bits(uniforms(*t, r, -1, 2, n, 8), u));
    CHECK(same_bits(normals(*t, r, 1, 3, n, 8), g));
    CHECK(integers(*t, r, -5, 9, n, 8) == k);
    for (int64_t skip : {1, 2, 3, 255, 256, 9999}) {
      RandomState later = r;
      later.offset += skip;
      CHECK(same_bits(uniforms(*t, later, -1, 2, n - skip), Floats(u.begin() + skip, u.end())));
      CHECK(same_bits(normals(*t, later, 1, 3, n - skip), Floats(g.begin() + skip, g.end())));
      CHECK(integers(*t, later, -5, 9, n - skip) ==
            std::vector<int32_t>(k.begin() + skip, k.end()));
    }
    CHECK_FALSE(same_bits(uniforms(*t, {1, 0, 0}, 0, 1, 10), uniforms(*t, {2, 0, 0}, 0, 1, 10)));
    CHECK_FALSE(same_bits(uniforms(*t, {1, 0, 0}, 0, 1, 10), uniforms(*t, {1, 1, 0}, 0, 1, 10)));
  }
}

// FNV-1a over the bytes.
template <class T>
uint32_t digest(const std::vector<T>& values) {
  uint32_t h = 2166136261u;
  for (const T& v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof(bits));
    for (int i = 0; i < 32; i += 8) h = (h ^ (bits >> i & 0xff)) * 16777619u;
  }
  return h;
}

TEST_CASE("random numbers: the same on every processor") {
  const RandomState r = {42, 7, 0};
  for (const Table* t : tables()) {
    CHECK(digest(uniforms(*t, r, -1, 1, 100000)) == 769422706u);
    CHECK(digest(normals(*t, r, 0, 1, 100000)) == 3331126487u);
    CHECK(digest(integers(*t, r, 0, 99, 100000)) == 3296414324u);
  }
}

TEST_CASE("uniform numbers: range and moments") {
  const Table& t = *tables().back();
  const int64_t n = 1000000;
  Floats u = uniforms(t, {3, 0, 0}, 0, 1, n);
  double mean = 0, square = 0;
  for (float v : u) {
    mean += v / n;
    square += static_cast<double>(v) * v / n;
  }
  CHECK(mean == doctest::Approx(0.5).epsilon(0.003));
  CHECK(square == doctest::Approx(1.0 / 3).epsilon(0.003));
  CHECK(*std::min_element(u.begin(), u.end()) >= 0);
  CHECK(*std::max_element(u.begin(), u.end()) < 1);
  // Rounding must not reach the upper end.
  u = uniforms(t, {3, 0, 0}, 16777214, 16777216, n);
  CHECK(*std::max_element(u.begin(), u.end()) < 16777216);
  u = uniforms(t, {3, 0, 0}, -1e-30f, 0, n);
  CHECK(*std::max_element(u.begin(), u.end()) < 0);
  CHECK(uniforms(t, {3, 0, 0}, 2, 2, 5) == Floats(5, 2));
}

TEST_CASE("normal numbers: moments, shares, no correlation") {
  const Table& t = *tables().back();
  const int64_t n = 1000000;
  const Floats g = normals(t, {4, 0, 0}, 0, 1, n);
  double m[5] = {}, neighbours = 0;
  int64_t beyond = 0;
  for (int64_t i = 0; i < n; i++) {
    double power = 1;
    for (double& v : m) {
      v += power / n;
      power *= g[i];
    }
    neighbours += static_cast<double>(g[i]) * g[i ^ 1] / n;
    beyond += std::abs(g[i]) > 2;
  }
  CHECK(std::abs(m[1]) < 0.004);
  CHECK(m[2] == doctest::Approx(1).epsilon(0.005));
  CHECK(std::abs(m[3]) < 0.01);
  CHECK(m[4] == doctest::Approx(3).epsilon(0.01));
  CHECK(std::abs(neighbours) < 0.004);
  CHECK(static_cast<double>(beyond) / n == doctest::Approx(0.0455).epsilon(0.02));
  const Floats shifted = normals(t, {4, 0, 0}, 10, 0.5f, n);
  for (int64_t i = 0; i < 1000; i++) CHECK(std::abs(shifted[i] - (10 + 0.5 * g[i])) < 2e-6);
}

TEST_CASE("uniform integers: both ends included, evenly spread") {
  const Table& t = *tables().back();
  std::map<int32_t, int> counts;
  for (int32_t v : integers(t, {5, 0, 0}, -3, 6, 1000000)) counts[v]++;
  CHECK(counts.size() == 10);
  for (const auto& [value, count] : counts) {
    CHECK(value >= -3);
    CHECK(value <= 6);
    CHECK(count == doctest::Approx(100000).epsilon(0.015));
  }
  CHECK(integers(t, {5, 0, 0}, 7, 7, 3) == std::vector<int32_t>(3, 7));
}

TEST_CASE("instruction sets: names, the best one works") {
  for (Isa isa : kAllIsas) {
    Isa found = isa == Isa::kNeon ? Isa::kGeneric : Isa::kNeon;
    CHECK(isa_from_name(isa_name(isa), &found));
    CHECK(found == isa);
    CHECK(supported(isa) == (table(isa) != nullptr));
    if (supported(isa)) {
      CHECK(table(isa)->isa == isa);
      CHECK(table(isa)->vector_width >= 4);
    }
  }
  Isa isa = Isa::kAvx2;
  CHECK_FALSE(isa_from_name("mmx", &isa));
  CHECK(isa == Isa::kAvx2);
  CHECK(supported(best_isa()));
}

}  // namespace
}  // namespace caffe2::kernels::testing
