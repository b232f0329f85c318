// Loops of operators on the engine's threads.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.h"

namespace caffe2 {

// Elements per range of a cheap loop over memory: less is not worth another thread.
constexpr int64_t kElementsPerRange = 32768;

// Rows per range, for rows of n elements.
inline int64_t rows_per_range(int64_t n) {
  return std::max<int64_t>(1, kElementsPerRange / std::max<int64_t>(1, n));
}

// Calls f(begin, end) for consecutive ranges of at most `step` numbers of [0, n), in any order and
// side by side. f must not throw.
template <class F>
void for_ranges(const kernels::Parallel& parallel, int64_t n, int64_t step, const F& f) {
  struct Context {
    const F& f;
    int64_t n, step;
    void run(int64_t block) const { f(block * step, std::min(n, (block + 1) * step)); }
  } context{f, n, std::max(step, (n + 1023) / 1024)};
  const int64_t blocks = (n + context.step - 1) / context.step;
  if (parallel.run == nullptr || blocks < 2) {
    for (int64_t block = 0; block < blocks; block++) context.run(block);
    return;
  }
  parallel.run(
      parallel.pool, static_cast<int>(blocks),
      [](void* pointer, int block) { static_cast<const Context*>(pointer)->run(block); }, &context);
}

}  // namespace caffe2
