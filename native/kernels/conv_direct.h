// Direct convolution works on blocked activations [c / VL][h][w][VL]; vectors run along output
// channels. Nothing is gathered: a register tile finds the inputs of a pixel through runs of
// neighbouring floats. First layers with fewer than VL channels keep their input plain.
#pragma once

#include "kernels/conv.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// How the terms of a sum, (channel, window row, window column), are found in the input and ordered
// in packed filters.
struct DirectLayout {
  const ConvShape& s;
  ConvSizes sizes;
  bool plain;         // input [c][h][w]
  int64_t unit;       // floats per input pixel: 1 or VL
  int64_t c_blocks;   // planes per group
  int64_t k_vectors;  // vectors of output channels per group
  FORCE_INLINE explicit DirectLayout(const ConvShape& shape)
      : s(shape),
        sizes(shape),
        plain(shape.c < VL && shape.group == 1),
        unit(plain ? 1 : VL),
        c_blocks(plain ? shape.c : ceil_div(sizes.group_c, VL)),
        k_vectors(ceil_div(sizes.group_k, VL)) {}

  // Where term i stands among the packed rows of a filter.
  FORCE_INLINE int64_t step_of(int64_t i) const {
    if (plain) return i;
    const int64_t c = i / sizes.taps, tap = i % sizes.taps, block = c / VL;
    return block * VL * sizes.taps + tap * channels_in(block) + c % VL;
  }
  FORCE_INLINE int64_t channels_in(int64_t block) const {
    return min_of<int64_t>(VL, sizes.group_c - block * VL);
  }

  FORCE_INLINE int64_t run_count() const { return c_blocks * s.kh * (plain ? 1 : s.kw); }

  // Filters are packed in pairs of vectors, [reduction][2 or 1][VL] each.
  FORCE_INLINE float* pair(float* packed, int64_t group, int64_t vector) const {
    return packed + (group * k_vectors + vector) * VL * sizes.reduction;
  }
  FORCE_INLINE int vectors_in_pair(int64_t vector) const {
    return (int)min_of<int64_t>(TILE_VECTORS, k_vectors - vector);
  }
};

// Blocks up to VL channels, `distance` floats apart, of `pixels` pixels; missing channels are zero.
void block_pixels(int channels, int64_t distance, int64_t pixels, const float* x, float* blocked);

// Input rows of all channels with their border, in the form that layout.plain asks for.
// Planes of the result are in.rows * in.width pixels apart.
void load_rows(const DirectLayout& layout, const InputRows& in, bool x_is_blocked, const float* x,
               float* rows);

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
