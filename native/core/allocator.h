// All memory of tensors and scratch goes through one Allocator per engine: it counts, can have a
// limit, and can be made to fail at a chosen call so that tests see every failure path. What the
// strings of a string tensor hold beyond their own size is not counted.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace caffe2 {

class Allocator {
 public:
  static constexpr size_t kAlignment = 64;

  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // 64-byte aligned, size rounded up to a multiple of 64. Raises Error(kOutOfMemory).
  void* allocate(size_t bytes);
  void release(void* pointer, size_t bytes) noexcept;

  size_t used() const { return used_; }
  size_t peak() const { return peak_; }
  int64_t calls() const { return calls_; }

  // Three quarters of the memory of the machine or container.
  static size_t default_limit();
  // 0: the default; SIZE_MAX: none, which is what an allocator begins with.
  void set_limit(size_t bytes) { limit_ = bytes != 0 ? bytes : default_limit(); }
  size_t limit() const { return limit_; }
  // Called, once, before a request fails over the limit: gives back what nobody needs.
  void set_reclaim(std::function<void()> reclaim) { reclaim_ = std::move(reclaim); }

  // The n-th call from now fails (1: the next one); 0 switches it off.
  void fail_at_call(int64_t n) { fail_at_ = n > 0 ? calls_ + n : 0; }

 private:
  bool over_limit() const { return used_ > limit_; }

  std::function<void()> reclaim_;
  std::atomic<size_t> used_{0}, peak_{0}, limit_{SIZE_MAX};
  std::atomic<int64_t> calls_{0}, fail_at_{0};
};

}  // namespace caffe2
