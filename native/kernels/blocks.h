// Work in blocks, and scratch memory in slices.
#pragma once

#include "kernels/simd.h"

// Tells the vectorizer that element i of the output is no other element of an operand: without it,
// loops that run in place would go one element at a time.
#if defined(__clang__)
#define ELEMENTS_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define ELEMENTS_APART _Pragma("GCC ivdep")
#endif

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// How many threads can be at work on `blocks` blocks, that is how many slices of scratch they need.
FORCE_INLINE int lane_count(int threads, int64_t blocks) {
  return (int)max_of<int64_t>(1, min_of<int64_t>(threads, blocks));
}

// Calls body(block, lane) for every block. No two calls with the same lane run at the same time, so
// that body may use the lane's slice of scratch. Each lane begins with a share of its own, so that
// operators that follow each other find their data in the caches of their core, and goes on with
// what others left; which lane gets which block must not influence results. `backwards`: each share
// from its end.
template <class Body>
void for_blocks(const Parallel& parallel, int64_t blocks, const Body& body,
                bool backwards = false) {
  const int lanes = lane_count(parallel.threads, blocks);
  if (lanes == 1 || parallel.run == nullptr) {
    for (int64_t b = 0; b < blocks; b++) body(backwards ? blocks - 1 - b : b, 0);
    return;
  }
  struct alignas(kAlignment) Share {
    ptrdiff_t next, begin, end;
  };
  struct Context {
    const Body* body;
    bool backwards;
    int count;
    Share shares[16];
  } context;
  context.body = &body;
  context.backwards = backwards;
  context.count = (int)min_of<int64_t>(lanes, 16);
  for (int i = 0; i < context.count; i++) {
    const auto begin = (ptrdiff_t)(i * blocks / context.count);
    context.shares[i] = {begin, begin, (ptrdiff_t)((i + 1) * blocks / context.count)};
  }
  parallel.run(
      parallel.pool, lanes,
      [](void* pointer, int lane) {
        Context& c = *(Context*)pointer;
        for (int i = 0; i < c.count; i++) {
          Share& share = c.shares[(lane + i) % c.count];
          for (;;) {
            const ptrdiff_t b = __atomic_fetch_add(&share.next, 1, __ATOMIC_RELAXED);
            if (b >= share.end) break;
            (*c.body)(c.backwards ? share.begin + share.end - 1 - b : b, lane);
          }
        }
      },
      &context);
}

// Calls body(begin, end) for consecutive ranges of `step` elements of [0, n).
template <class Body>
void for_ranges(const Parallel& parallel, int64_t n, int64_t step, const Body& body,
                bool backwards = false) {
  for_blocks(
      parallel, ceil_div(n, step),
      [&](int64_t b, int) { body(b * step, min_of(n, (b + 1) * step)); }, backwards);
}

// Elements per block of a cheap loop over memory: less is not worth another thread.
constexpr int64_t ELEMENTS = 32768;

// Those o in [first, last) whose place o * stride + offset lies in [0, size); where there are none,
// an empty range in [first, last]. Sizes below 0 are as good as 0.
struct Range {
  int64_t begin, end;
  FORCE_INLINE Range(int64_t first, int64_t last, int64_t stride, int64_t offset, int64_t size) {
    begin = min_of(last, max_of(first, offset >= 0 ? 0 : ceil_div(-offset, stride)));
    end = offset >= size ? begin : max_of(begin, min_of(last, (size - 1 - offset) / stride + 1));
  }
};

// Lays out scratch: every slice starts on a cache line. With a null base it only counts.
class Slices {
 public:
  FORCE_INLINE explicit Slices(void* base) : base_((uintptr_t)base) {}
  template <class T = float>
  FORCE_INLINE T* take(int64_t count) {
    T* slice = (T*)(base_ + (uintptr_t)bytes_);
    bytes_ += round_up(count * (int64_t)sizeof(T), kAlignment);
    return slice;
  }
  FORCE_INLINE int64_t bytes() const { return bytes_; }

 private:
  uintptr_t base_;
  int64_t bytes_ = 0;
};

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
