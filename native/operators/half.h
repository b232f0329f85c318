// Numbers of 16 bits (IEEE 754 binary16), which tensors of type FLOAT16 hold as bits.
#pragma once
#include <cstdint>

namespace caffe2 {

// To the nearest, ties to even; what is too large becomes infinite.
inline uint16_t float_to_half(float value) {
  uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  uint32_t half;
  if (bits > 0x7f800000) {
    half = 0x7e00 | (bits >> 13 & 0x1ff);  // not a number
  } else if (bits >= 0x477ff000) {
    half = 0x7c00;
  } else if (bits < 0x38800000) {
    // Below 2^-14 a half counts in 2^-24, as a float does next to 0.5: the addition rounds.
    half = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, bits) + 0.5f) - 0x3f000000;
  } else {
    half = (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

inline float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  uint32_t bits;
  if (magnitude >= 0x7c00) {
    bits = 0x7f800000 | magnitude << 13;
  } else if (magnitude >= 0x400) {
    bits = (magnitude << 13) + 0x38000000;
  } else {
    bits = __builtin_bit_cast(uint32_t, static_cast<float>(magnitude) * 0x1p-24f);
  }
  return __builtin_bit_cast(float, sign | bits);
}

}  // namespace caffe2
