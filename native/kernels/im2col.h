// The matrix behind a convolution: one row per term of the sum (channel, window row, window
// column), one column per output pixel. It is gathered in small pieces, never as a whole.
#pragma once

#include "kernels/conv.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// Input rows of one image that a range of output pixels looks at.
struct Window {
  const float* x;          // first channel, first row of interest
  ptrdiff_t plane, width;  // distances between channels and between rows
  int64_t first_row;       // output row that x belongs to
};

// The window on output pixels [begin, end) of `channels` channels at x. With padding, the rows are
// copied to `padded`, which needs padded_size() floats.
Window make_window(const ConvShape& s, int64_t channels, const float* x, int64_t begin, int64_t end,
                   float* padded);
int64_t padded_size(const ConvShape& s, int64_t channels, int64_t pixels);

// offsets[i] = distance from an output pixel's corner to term i of its sum.
void term_offsets(const ConvShape& s, ptrdiff_t plane, ptrdiff_t width, int64_t first,
                  int64_t count, ptrdiff_t* offsets);

// out[i][j] = the value that pixel begin + j finds at offsets[i], for i < terms, j < count.
// Rows of out are `row` floats apart; their first `room` >= count floats may be overwritten.
void gather(const ConvShape& s, const Window& window, const ptrdiff_t* offsets, int64_t terms,
            int64_t begin, int64_t count, float* out, int64_t row, int64_t room);

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
