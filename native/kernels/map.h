// Loops over arrays, a vector at a time; the last, partial vector never touches memory behind the
// end.
#pragma once

#include "kernels/blocks.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// y[i] = f(x[i], ...), for i < n. All inputs of a vector are read before it is written.
template <class F, class... Inputs>
FORCE_INLINE void map_range(int64_t begin, int64_t end, float* y, const F& f, Inputs... inputs) {
  int64_t i = begin;
  for (; i + VL <= end; i += VL) store(y + i, f(load(inputs + i)...));
  if (i < end) {
    const int rest = (int)(end - i);
    store_partial(y + i, f(load_partial(inputs + i, rest)...), rest);
  }
}

template <class F, class... Inputs>
FORCE_INLINE void map(const Parallel& parallel, int64_t n, float* y, const F& f, Inputs... inputs) {
  for_ranges(parallel, n, ELEMENTS,
             [&](int64_t begin, int64_t end) { map_range(begin, end, y, f, inputs...); });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
