// Rows of a depthwise convolution: every pixel of a block of channels is one vector, and so is
// every tap of their filters.
#pragma once

#include "kernels/conv.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// The taps that outputs see: `rows` rows of them, [left, right) of each.
struct Taps {
  int64_t rows, left, right;
  int64_t kw, row, column;  // filters of a row; floats between rows and columns of taps in x
};

// What is done to sums.
struct Ends {
  vf bias, low, high;
};

using Pixels = void (*)(const Taps&, const float*, const float*, const Ends&, const float*, float*);

// How `count` pixels that see the whole width of the window are computed: in groups that fit into
// registers, all of nearly the same size, the first `larger` of them with one more.
struct Groups {
  int64_t count = 0, size = 0, larger = 0;
  int64_t step = 0;  // floats between the inputs of neighbouring outputs
  Pixels one_more = nullptr, usual = nullptr;

  Groups(const ConvShape& s, int64_t outputs);

  FORCE_INLINE void sum(const Taps& t, const float* x, const float* w, const Ends& ends,
                        const float* add, float* y) const {
    for (int64_t i = 0; i < count; i++) {
      const bool more = i < larger;
      (more ? one_more : usual)(t, x, w, ends, add, y);
      x += (size + more) * step;
      y += (size + more) * VL;
      if (add) add += (size + more) * VL;
    }
  }
};

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
