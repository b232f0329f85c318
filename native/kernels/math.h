// Elementary functions on vectors. Errors are measured against float64 in units of the last place.
#pragma once

#include "kernels/simd.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

constexpr float LN2_HIGH = 0.693359375f;  // few bits: its products with small integers are exact
constexpr float LN2_LOW = -2.12194440e-4f;

// e^x, at most 1.5 units off (results below 2^-126: half of their last place more). Overflows to
// infinity above 88.72, vanishes below -103.97; a NaN stays.
FORCE_INLINE vf exp(vf x) {
  x = min(splat(89.f), x);
  x = max(splat(-104.5f), x);
  // x = n * ln 2 + r with |r| <= ln 2 / 2; adding 1.5 * 2^23 leaves n in the lowest bits.
  const vf magic = splat(12582912.f), shifted = x * 1.44269504f + magic, n = shifted - magic;
  const vi exponent = as_int(shifted) - as_int(magic);
  const vf r = x - n * LN2_HIGH - n * LN2_LOW;
  vf p = splat(0.00138145965f);
  p = p * r + 0.00836871751f;
  p = p * r + 0.041668389f;
  p = p * r + 0.166665211f;
  p = p * r + 0.49999994f;
  p = p * (r * r) + r + 1.f;
  // In two steps, since 2^n alone may be out of range.
  const vi half = exponent >> 1, rest = exponent - half;
  return p * as_float((half + 127) << 23) * as_float((rest + 127) << 23);
}

// Natural logarithm, at most 1.5 units off. log(0) = -infinity, of negative numbers a NaN.
FORCE_INLINE vf log(vf x) {
  const vi tiny = x < splat(1.17549435e-38f);
  const vf scaled = select(tiny, x * 8388608.f, x);  // no subnormal numbers from here on
  // scaled = 2^e * m with m in [sqrt 1/2, sqrt 2).
  const vi bits = as_int(scaled) & 0x7fffffff, e = (bits - 0x3f3504f3) >> 23;
  const vf exponent = to_float(e) - select(tiny, splat(23.f), vf{});
  const vf t = as_float(bits - (e << 23)) - 1.f;
  vf q = splat(0.0674660802f);
  q = q * t - 0.116756529f;
  q = q * t + 0.118881784f;
  q = q * t - 0.1240559f;
  q = q * t + 0.142195508f;
  q = q * t - 0.166679963f;
  q = q * t + 0.200021192f;
  q = q * t - 0.250000089f;
  q = q * t + 0.333333135f;
  const vf square = t * t;
  vf y = q * (square * t) + exponent * LN2_LOW;
  y = y - 0.5f * square + t + exponent * LN2_HIGH;
  const float infinity = __builtin_inff();
  y = select(x == infinity, x, y);
  y = select(x == 0.f, splat(-infinity), y);
  return select((x < 0.f) | (x != x), splat(__builtin_nanf("")), y);
}

// Hyperbolic tangent, at most 2 units off.
FORCE_INLINE vf tanh(vf x) {
  const vi sign = as_int(x) & (int32_t)0x80000000;
  const vf a = as_float(as_int(x) ^ sign), z = x * x;
  vf p = splat(-0.00571703259f);
  p = p * z + 0.0206505749f;
  p = p * z - 0.0537434928f;
  p = p * z + 0.133314908f;
  p = p * z - 0.333332837f;
  const vf small = x + x * z * p;
  const vf large = 1.f - 2.f / (exp(a + a) + 1.f);
  return select(a < splat(0.625f), small, as_float(as_int(large) | sign));
}

// 1 / (1 + e^-x), at most 3 units off down to x = -87; 0 from -88.72 on.
FORCE_INLINE vf sigmoid(vf x) { return 1.f / (1.f + exp(-x)); }

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
