// What the convolution algorithms share.
#pragma once

#include "kernels/gemm.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// Sizes that follow from a shape.
struct ConvSizes {
  int64_t oh, ow, pixels;    // output
  int64_t group_c, group_k;  // channels per group
  int64_t taps;              // kh * kw
  int64_t reduction;         // group_c * taps: terms of one output value
  int64_t reach_h, reach_w;  // the dilated window
  bool padded;
  FORCE_INLINE explicit ConvSizes(const ConvShape& s)
      : oh(s.oh()),
        ow(s.ow()),
        pixels(oh * ow),
        group_c(s.c / s.group),
        group_k(s.k / s.group),
        taps(s.kh * s.kw),
        reduction(group_c * taps),
        reach_h(s.dilation_h * (s.kh - 1) + 1),
        reach_w(s.dilation_w * (s.kw - 1) + 1),
        padded(s.pad_t || s.pad_l || s.pad_b || s.pad_r) {}
};

// The part of a padded image that output rows [first, first + count) look at.
struct InputRows {
  int64_t top;  // first row, in rows of the unpadded image (may be negative)
  int64_t rows;
  int64_t width;  // of the padded image
  FORCE_INLINE InputRows(const ConvShape& s, int64_t first, int64_t count)
      : top(first * s.stride_h - s.pad_t),
        rows((count - 1) * s.stride_h + s.dilation_h * (s.kh - 1) + 1),
        width(s.w + s.pad_l + s.pad_r) {}
};

// How many slices of the batch are summed one by one before they are added up: `others` counts the
// independent blocks that exist anyway. Fixed by the shape, so that results are.
FORCE_INLINE int64_t batch_slices(int64_t n, int64_t others) {
  return min_of<int64_t>(n, max_of<int64_t>(1, 8 / others));
}

// [channels][h][w] -> [channels][rows][width] with the border filled in.
void pad_image(const ConvShape& s, const InputRows& in, int64_t channels, const float* x,
               float* padded);

// The convolution of dy with the filters turned by 180 degrees and the channels exchanged whose
// result is dx; for stride 1 and pads below the dilated window.
ConvShape turned(const ConvShape& s);

// total = sum of `count` arrays of `size` values, in order; in place on the first.
void add_slices(int64_t count, int64_t size, const float* slices, float* total,
                const Parallel& parallel);

// conv_direct.cc, conv_direct_gradient.cc
int64_t direct_packed_bytes(const ConvShape& s);
void direct_pack(const ConvShape& s, const float* weights, float* packed, const Parallel& parallel);
int64_t direct_forward_scratch(const ConvShape& s, int threads);
void direct_forward(const ConvForward& f, const float* x, const float* packed, float* y,
                    void* scratch, const Parallel& parallel);
int64_t direct_backward_data_scratch(const ConvShape& s, int threads);
void direct_backward_data(const ConvShape& s, const float* dy, const float* weights, float* dx,
                          void* scratch, const Parallel& parallel);
int64_t direct_backward_weights_scratch(const ConvShape& s, int threads);
void direct_backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw,
                             void* scratch, const Parallel& parallel);

// conv_im2col.cc, conv_im2col_gradient.cc
int64_t im2col_packed_bytes(const ConvShape& s);
void im2col_pack(const ConvShape& s, const float* weights, float* packed, const Parallel& parallel);
int64_t im2col_forward_scratch(const ConvShape& s, int threads);
void im2col_forward(const ConvForward& f, const float* x, const float* packed, float* y,
                    void* scratch, const Parallel& parallel);
int64_t im2col_backward_data_scratch(const ConvShape& s, int threads);
void im2col_backward_data(const ConvShape& s, const float* dy, const float* weights, float* dx,
                          void* scratch, const Parallel& parallel);
int64_t im2col_backward_weights_scratch(const ConvShape& s, int threads);
void im2col_backward_weights(const ConvShape& s, const float* x, const float* dy, float* dw,
                             void* scratch, const Parallel& parallel);

// conv_depthwise.cc
int64_t depthwise_packed_bytes(const ConvShape& s);
void depthwise_pack(const ConvShape& s, const float* weights, float* packed,
                    const Parallel& parallel);
int64_t depthwise_forward_scratch(const ConvShape& s, int threads);
void depthwise_forward(const ConvForward& f, const float* x, const float* packed, float* y,
                       void* scratch, const Parallel& parallel);

// conv_winograd.cc: F(m x m, 3 x 3), and F(2 x 2, 5 x 5)
FORCE_INLINE int winograd_size(ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kWinograd2 ? 2 : 4;
}
int64_t winograd_packed_bytes(const ConvShape& s, int m);
// `turned`: weights are those of the convolution whose data gradient this one is.
void winograd_pack(const ConvShape& s, int m, bool turned, const float* weights, float* packed,
                   const Parallel& parallel);
int64_t winograd_forward_scratch(const ConvShape& s, int m, int threads);
void winograd_forward(const ConvForward& f, int m, const float* x, const float* packed, float* y,
                      void* scratch, const Parallel& parallel);
int64_t winograd_backward_data_scratch(const ConvShape& s, int m, int threads);
void winograd_backward_data(const ConvShape& s, int m, const float* dy, const float* weights,
                            float* dx, void* scratch, const Parallel& parallel);

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
