// Kernels on integers of 8 bits, q for (q - zero_point) * scale, channels last. The rules are those
// of kernels.h, and all results are the same bit for bit on every instruction set.
#pragma once

#include "kernels/kernels.h"

namespace caffe2::kernels {

// What becomes of a sum of products: it is multiplied in fixed point (Jacob et al., 2018, 2.2),
//   (sum * multiplier + 2^(low_bits - 1)) >> low_bits,
// and divided by 2^shift, halves away from zero; or, where `even`, it is multiplied by `factor` as
// a float, and halves become even. zero_point is added, and what lies outside [low, 255] cut off.
struct Requantization {
  float factor = 1;
  bool even = false;
  int32_t multiplier = 0;
  int low_bits = 31, shift = 0;  // [1, 31], [0, 31]
  int32_t zero_point = 0, low = 0;
};

// x and y are [n][h][w][c] and [n][oh][ow][k], filters [k][kh][kw][c / group]; what lies outside of
// x is 0. Fully connected layers are a window of 1 x 1 over as many pixels as there are rows.
struct Int8Conv {
  ConvShape shape;
  int32_t x_zero = 0, w_zero = 0;
  const int32_t* bias = nullptr;  // k values, or null
  Requantization to;
};

// y = sum of multipliers[i] * inputs[i] + offset, divided by 2^shift, halves away from zero.
struct Int8Sum {
  int count = 0;
  const int32_t* multipliers = nullptr;  // [0, 2^30]
  int64_t offset = 0;
  int shift = 0;  // [0, 62]
  int32_t zero_point = 0, low = 0;
};

// Windows over planes = n images of `channels` values per place.
struct Int8Pool {
  PoolShape shape;
  int64_t channels = 1;
  // Averages: the sum of x - x_zero over the window times multiplier / 2^shift, halves away from
  // zero. Maxima begin with `low`.
  int32_t x_zero = 0;
  int64_t multiplier = 0;  // [0, 2^25]
  int shift = 0;           // [0, 62]
  int32_t zero_point = 0, low = 0;
};

struct Int8Table {
  // Packed filters belong to (shape, w_zero); n, h, w and pads may change.
  int64_t (*conv_packed_bytes)(const ConvShape& s);
  void (*conv_pack)(const ConvShape& s, int32_t w_zero, const uint8_t* weights, void* packed,
                    const Parallel& parallel);
  int64_t (*conv_scratch_bytes)(const ConvShape& s, int threads);
  void (*conv)(const Int8Conv& conv, const uint8_t* x, const void* packed, uint8_t* y,
               void* scratch, const Parallel& parallel);
  void (*requantize)(const Requantization& to, int64_t n, const int32_t* sums, uint8_t* y,
                     const Parallel& parallel);

  void (*average_pool)(const Int8Pool& p, const uint8_t* x, uint8_t* y, const Parallel& parallel);
  void (*max_pool)(const Int8Pool& p, const uint8_t* x, uint8_t* y, const Parallel& parallel);

  void (*sum)(const Int8Sum& s, int64_t n, const uint8_t* const* inputs, uint8_t* y,
              const Parallel& parallel);
  // y = the nearest integer to x * inverse_scale + offset, halves to even, + zero_point. A NaN
  // becomes 0. An odd zero point given as `offset` turns halves the other way.
  void (*quantize)(float inverse_scale, float offset, int32_t zero_point, int64_t n, const float* x,
                   uint8_t* y, const Parallel& parallel);
  void (*dequantize)(float scale, int32_t zero_point, int64_t n, const uint8_t* x, float* y,
                     const Parallel& parallel);
};

// The kernels of `isa`, or null when it is not supported. `dot`: with its instructions for dot
// products of bytes, where the processor has them.
const Int8Table* int8_table(Isa isa, bool dot = true);

}  // namespace caffe2::kernels
