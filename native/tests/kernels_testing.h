// Helpers of the kernel tests.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/kernels.h"

namespace caffe2::kernels::testing {

using Floats = std::vector<float>;

inline std::vector<const Table*> tables() {
  std::vector<const Table*> all;
  for (Isa isa : kAllIsas) {
    if (supported(isa)) all.push_back(table(isa));
  }
  return all;
}

// One thread per block, started afresh: slow, and as disorderly as it gets.
inline Parallel threads(int count) {
  Parallel p;
  p.threads = count;
  p.run = [](void*, int blocks, void (*task)(void*, int), void* context) {
    std::vector<std::thread> all;
    for (int b = 0; b < blocks; b++) all.emplace_back(task, context, b);
    for (std::thread& t : all) t.join();
  };
  return p;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool coin() { return integer(0, 1) == 1; }
  Floats floats(int64_t n, float low = -1, float high = 1) {
    std::uniform_real_distribution<float> next(low, high);
    Floats values(static_cast<size_t>(n));
    for (float& v : values) v = next(engine_);
    return values;
  }

 private:
  std::mt19937 engine_;
};

// Aligned memory full of NaNs, which must not be written behind its end.
class Scratch {
 public:
  explicit Scratch(size_t bytes) : bytes_(bytes) {
    const size_t size = (bytes + kGuard + kAlignment - 1) / kAlignment * kAlignment;
    data_ = static_cast<char*>(std::aligned_alloc(kAlignment, size));
    std::memset(data_, 0xff, bytes + kGuard);
  }
  ~Scratch() {
    int touched = 0;
    for (size_t i = 0; i < kGuard; i++) touched += data_[bytes_ + i] != '\xff';
    CHECK(touched == 0);
    std::free(data_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  float* get() { return reinterpret_cast<float*>(data_); }

 private:
  static constexpr size_t kGuard = 256;
  size_t bytes_;
  char* data_;
};

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// How many values differ from the expected ones by more than their bound.
inline int64_t count_wrong(const Floats& got, const std::vector<double>& want,
                           const std::vector<double>& bound) {
  int64_t wrong = got.size() != want.size();
  for (size_t i = 0; i < want.size() && i < got.size(); i++) {
    wrong += !(std::abs(got[i] - want[i]) <= bound[i]);
  }
  return wrong;
}

// Rounding error of a float sum of n products whose magnitudes add up to `magnitude`.
inline double sum_bound(int64_t n, double magnitude) { return (n + 2) * 6e-8 * magnitude + 1e-37; }

}  // namespace caffe2::kernels::testing
