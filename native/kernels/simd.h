// The vector type everything is written in: one GCC/Clang vector of VL floats.
//
// The same sources are compiled once per instruction set, each time inside a namespace of its own
// (CAFFE2_KERNELS_ISA, given by the build). The widths follow from the compiler's target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/kernels.h"

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#define FORCE_INLINE CAFFE2_KERNELS_INLINE

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// VL: floats per vector. A register tile has TILE_ROWS x TILE_VECTORS accumulators; with the two
// vectors of the other operand and a broadcast value it just fits into the register file.
constexpr int TILE_VECTORS = 2;
#if defined(__AVX512F__)
constexpr int VL = 16, TILE_ROWS = 14;  // 32 registers
#elif defined(__AVX2__)
constexpr int VL = 8, TILE_ROWS = 6;  // 16 registers
#elif defined(__aarch64__)
constexpr int VL = 4, TILE_ROWS = 12;  // 32 registers
#else
constexpr int VL = 4, TILE_ROWS = 6;  // SSE, WebAssembly: 16 registers
#endif

typedef float vf __attribute__((vector_size(VL * 4)));
typedef int32_t vi __attribute__((vector_size(VL * 4)));
typedef float vf_unaligned __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef int32_t vi_unaligned __attribute__((vector_size(VL * 4), aligned(4), may_alias));

FORCE_INLINE vf load(const float* p) { return *(const vf_unaligned*)p; }
FORCE_INLINE void store(float* p, vf v) { *(vf_unaligned*)p = v; }
FORCE_INLINE vi load_int(const int32_t* p) { return *(const vi_unaligned*)p; }
FORCE_INLINE void store_int(int32_t* p, vi v) { *(vi_unaligned*)p = v; }
// x - 0 is x for every x (-0 too), and compiles to a broadcast alone.
FORCE_INLINE vf splat(float x) { return x - vf{}; }
FORCE_INLINE vi splat_int(int32_t x) { return x - vi{}; }
FORCE_INLINE vi as_int(vf v) { return (vi)v; }
FORCE_INLINE vf as_float(vi v) { return (vf)v; }
FORCE_INLINE vf to_float(vi v) { return __builtin_convertvector(v, vf); }
FORCE_INLINE vi to_int(vf v) { return __builtin_convertvector(v, vi); }  // toward zero
FORCE_INLINE vf select(vi mask, vf a, vf b) { return mask ? a : b; }

// When a or b is a NaN the result is b: put the value whose NaN must survive second.
#if defined(__wasm_simd128__)  // of what stands below Clang 14 makes f32x4.max, which drops -0
FORCE_INLINE vf max(vf a, vf b) { return (vf)wasm_f32x4_pmax((v128_t)b, (v128_t)a); }
FORCE_INLINE vf min(vf a, vf b) { return (vf)wasm_f32x4_pmin((v128_t)b, (v128_t)a); }
#else
FORCE_INLINE vf max(vf a, vf b) { return a > b ? a : b; }
FORCE_INLINE vf min(vf a, vf b) { return a < b ? a : b; }
#endif
FORCE_INLINE vf sqrt(vf v) {  // rounded right; of negative numbers a NaN
#if defined(__AVX512F__)
  return (vf)_mm512_maskz_sqrt_ps((__mmask16)-1, (__m512)v);
#elif defined(__AVX2__)
  return (vf)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE2__)
  return (vf)_mm_sqrt_ps((__m128)v);
#elif defined(__aarch64__)
  return (vf)vsqrtq_f32((float32x4_t)v);
#elif defined(__wasm_simd128__)
  return (vf)wasm_f32x4_sqrt((v128_t)v);
#else
  return vf{__builtin_sqrtf(v[0]), __builtin_sqrtf(v[1]), __builtin_sqrtf(v[2]),
            __builtin_sqrtf(v[3])};
#endif
}
// The larger one, a NaN when either is.
FORCE_INLINE vf max_nan(vf a, vf b) {
#if defined(__AVX512F__)
  const __mmask16 real = _mm512_cmp_ps_mask((__m512)b, (__m512)b, _CMP_ORD_Q);
  return (vf)_mm512_mask_max_ps((__m512)b, real, (__m512)b, (__m512)a);
#elif defined(__AVX2__)
  const __m256 nan = _mm256_cmp_ps((__m256)b, (__m256)b, _CMP_UNORD_Q);  // all bits: a NaN itself
  return (vf)_mm256_or_ps(_mm256_max_ps((__m256)b, (__m256)a), nan);
#else
  return select((b > a) | (b != b), b, a);
#endif
}

// The first n < VL floats (the other lanes are zero), touching no memory behind them.
FORCE_INLINE vf load_partial(const float* p, int n) {
#if defined(__AVX512F__)
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif defined(__AVX2__)
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return (vf)_mm256_maskload_ps(p, (__m256i)(splat_int(n) > lane));
#else
  return vf{n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0};
#endif
}
FORCE_INLINE void store_partial(float* p, vf v, int n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(__AVX2__)
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
  _mm256_maskstore_ps(p, (__m256i)(splat_int(n) > lane), (__m256)v);
#else
  if (n > 0) p[0] = v[0];
  if (n > 1) p[1] = v[1];
  if (n > 2) p[2] = v[2];
#endif
}

typedef std::make_integer_sequence<int, VL> Lanes;

template <int... I>
FORCE_INLINE vi number_lanes(std::integer_sequence<int, I...>) {
  return vi{I...};
}
// 0, 1, 2, ...
FORCE_INLINE vi lane_numbers() { return number_lanes(Lanes()); }

// Lane i becomes lane i ^ D.
template <int D, int... I>
FORCE_INLINE vf swap_lanes(vf v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ D)...);
}
template <int D = VL / 2>
FORCE_INLINE float reduce_sum(vf v) {
  v += swap_lanes<D>(v, Lanes());
  if constexpr (D > 1) {
    return reduce_sum<D / 2>(v);
  } else {
    return v[0];
  }
}
template <int D = VL / 2>
FORCE_INLINE float reduce_max(vf v) {
  v = max(v, swap_lanes<D>(v, Lanes()));
  if constexpr (D > 1) {
    return reduce_max<D / 2>(v);
  } else {
    return v[0];
  }
}

// Every second lane of the 2 * VL floats (a, b), starting with lane 0 or lane 1.
template <int First, int... I>
FORCE_INLINE vf every_second(vf a, vf b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (2 * I + First)...);
}
FORCE_INLINE vf even_lanes(vf a, vf b) { return every_second<0>(a, b, Lanes()); }
FORCE_INLINE vf odd_lanes(vf a, vf b) { return every_second<1>(a, b, Lanes()); }

// x[0] x[2] x[4] ... of an array x, given load(x) and load(x + VL - 1): nothing behind the last
// element that is taken needs to be readable.
template <int... I>
FORCE_INLINE vf take_even(vf first, vf last, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(first, last, (I < VL / 2 ? 2 * I : 2 * I + 1)...);
}
FORCE_INLINE vf load_even(const float* x) { return take_even(load(x), load(x + VL - 1), Lanes()); }

// a[0] b[0] a[1] b[1] ...: the lower and the upper half of the interleaved pair.
template <int Half, int... I>
FORCE_INLINE vf interleave(vf a, vf b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (Half * VL / 2 + I / 2 + (I & 1) * VL)...);
}
FORCE_INLINE vf interleave_low(vf a, vf b) { return interleave<0>(a, b, Lanes()); }
FORCE_INLINE vf interleave_high(vf a, vf b) { return interleave<1>(a, b, Lanes()); }

// One step of a transposition: exchanges the off-diagonal quarters of every 2D x 2D block.
template <int D, int... I>
FORCE_INLINE void exchange(vf& a, vf& b, std::integer_sequence<int, I...>) {
  const vf lower = __builtin_shufflevector(a, b, (I & D ? VL + I - D : I)...);
  const vf upper = __builtin_shufflevector(a, b, (I & D ? VL + I : I + D)...);
  a = lower;
  b = upper;
}
// Lane i * VL / 4 becomes reduce_sum of vector i, to the bit.
template <int D = VL / 8>
FORCE_INLINE vf sum_in_quarters(vf v) {
  if constexpr (D > 0) v = sum_in_quarters<D / 2>(v + swap_lanes<D>(v, Lanes()));
  return v;
}
FORCE_INLINE vf reduce_sums(vf a, vf b, vf c, vf d) {
  exchange<VL / 2>(a, c, Lanes());
  exchange<VL / 2>(b, d, Lanes());
  vf ac = a + c, bd = b + d;
  exchange<VL / 4>(ac, bd, Lanes());
  return sum_in_quarters(ac + bd);
}
template <int D = VL / 2>
FORCE_INLINE void transpose(vf (&rows)[VL]) {
#pragma GCC unroll 16
  for (int i = 0; i < VL; i++) {
    if (!(i & D)) exchange<D>(rows[i], rows[i + D], Lanes());
  }
  if constexpr (D > 1) transpose<D / 2>(rows);
}

// A block of up to VL x VL floats, missing ones zero.
FORCE_INLINE void load_block(const float* src, int64_t row_distance, int rows, int columns,
                             vf (&block)[VL]) {
  if (rows == VL && columns == VL) {
#pragma GCC unroll 16
    for (int i = 0; i < VL; i++) block[i] = load(src + i * row_distance);
  } else {
    for (int i = 0; i < VL; i++) {
      const float* row = src + i * row_distance;
      block[i] = i >= rows ? vf{} : columns == VL ? load(row) : load_partial(row, columns);
    }
  }
}

template <class T>
FORCE_INLINE constexpr T min_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
FORCE_INLINE constexpr T max_of(T a, T b) {
  return a > b ? a : b;
}
FORCE_INLINE constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
FORCE_INLINE constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
