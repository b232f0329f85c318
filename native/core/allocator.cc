#include "core/allocator.h"

#include <algorithm>
#include <cstdlib>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "core/error.h"
#include "core/machine.h"

namespace caffe2 {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t rounded(size_t bytes) {
  const size_t mask = Allocator::kAlignment - 1;
  return bytes == 0 ? Allocator::kAlignment : (bytes + mask) & ~mask;
}

// Large blocks lie on huge pages where the system has them: weights are read through in order, and
// with small pages a good part of the time goes into finding the next one.
void* allocate_memory(size_t bytes) {
#if defined(__linux__)
  if (bytes >= kHugePage) {
    void* pointer = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) & ~(kHugePage - 1));
    // Advice for whole pages only, so that a block takes no more memory than it asked for.
    if (pointer) madvise(pointer, bytes & ~(kHugePage - 1), MADV_HUGEPAGE);
    return pointer;
  }
#endif
  return std::aligned_alloc(Allocator::kAlignment, bytes);
}

}  // namespace

size_t Allocator::default_limit() {
  static const uint64_t bytes = machine_memory() / 4 * 3;
  return static_cast<size_t>(std::min<uint64_t>(bytes, SIZE_MAX));
}

void* Allocator::allocate(size_t bytes) {
  const int64_t call = ++calls_;
  if (bytes > SIZE_MAX - 2 * kHugePage)  // rounded up it would be less
    fail(Code::kOutOfMemory, "a request for ", bytes, " bytes is too large");
  const size_t n = rounded(bytes);
  if (call == fail_at_) {
    fail(Code::kOutOfMemory, "allocating ", bytes, " bytes failed (a failure asked for at call ",
         call, ")");
  }
  size_t now = used_.fetch_add(n) + n;
  if (over_limit() && reclaim_) {
    reclaim_();
    now = used_;
  }
  if (over_limit()) {
    used_ -= n;
    fail(Code::kOutOfMemory, "allocating ", bytes, " bytes would pass the memory limit of ", limit_,
         " bytes (", now - n, " in use)",
         limit_ == default_limit() ? "; unless set, it is three quarters of the memory there is"
                                   : "");
  }
  void* pointer = allocate_memory(n);
  if (pointer == nullptr) {
    used_ -= n;
    fail(Code::kOutOfMemory, "the system has no ", bytes, " bytes left");
  }
  size_t peak = peak_;
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
  return pointer;
}

void Allocator::release(void* pointer, size_t bytes) noexcept {
  if (pointer == nullptr) return;
  used_ -= rounded(bytes);
  std::free(pointer);
}

}  // namespace caffe2
