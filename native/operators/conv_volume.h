// Convolution over frames, height and width: columns gathered frame by frame, times a matrix.
#pragma once
#include <cstdint>

#include "kernels/kernels.h"

namespace caffe2 {

// Axes: frames, height, width. Arrays are [n][channels][frames][height][width].
struct VolumeShape {
  int64_t n, c, k, group;
  int64_t in[3], kernel[3], stride[3], dilation[3], pad[3], out[3];

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_frame() const { return out[1] * out[2]; }
  int64_t out_size() const { return out[0] * out_frame(); }
  int64_t column_rows() const { return c * taps(); }
};

// What a convolution works with: `columns` has column_rows() * out_frame() floats, `gemm` what
// volume_gemm_bytes() says.
struct VolumeScratch {
  float* columns;
  void* gemm;
};

int64_t volume_gemm_bytes(const kernels::Table& table, const VolumeShape& s, int threads);

void volume_forward(const kernels::Table& table, const VolumeShape& s, const float* x,
                    const float* weights, const float* bias, float* y, const VolumeScratch& scratch,
                    const kernels::Parallel& parallel);
void volume_backward_weights(const kernels::Table& table, const VolumeShape& s, const float* x,
                             const float* dy, float* dw, const VolumeScratch& scratch,
                             const kernels::Parallel& parallel);
void volume_backward_data(const kernels::Table& table, const VolumeShape& s, const float* dy,
                          const float* weights, float* dx, const VolumeScratch& scratch,
                          const kernels::Parallel& parallel);

}  // namespace caffe2
