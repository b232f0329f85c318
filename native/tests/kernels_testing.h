// Helpers of the kernel tests.
#pragma once

#include <doctest/doctest.h>

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
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

// A thread for each block: nothing runs in more disorder. They stay for the next call, as emulators
// keep memory of every thread that has ended.
class Crew {
 public:
  using Task = void (*)(void* context, int block);

  static void run(void*, int blocks, Task task, void* context) {
    static Crew& crew = *new Crew;  // at hand until the program ends
    crew.call(blocks, task, context);
  }

 private:
  struct Member {
    std::condition_variable start;
    bool called = false;
  };

  void call(int blocks, Task task, void* context) {
    std::unique_lock lock(mutex_);
    while (static_cast<int>(members_.size()) < blocks) {
      members_.emplace_back();
      std::thread(&Crew::work, this, static_cast<int>(members_.size()) - 1).detach();
    }
    task_ = task, context_ = context, left_ = blocks;
    for (int block = 0; block < blocks; block++) {
      members_[block].called = true;
      members_[block].start.notify_one();
    }
    done_.wait(lock, [this] { return left_ == 0; });
  }

  void work(int block) {
    std::unique_lock lock(mutex_);
    Member& member = members_[block];
    for (;;) {
      member.start.wait(lock, [&] { return member.called; });
      member.called = false;
      lock.unlock();
      task_(context_, block);
      lock.lock();
      if (--left_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable done_;
  std::deque<Member> members_;
  Task task_ = nullptr;
  void* context_ = nullptr;
  int left_ = 0;
};

inline Parallel threads(int count) {
  Parallel p;
  p.threads = count;
  p.run = Crew::run;
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
