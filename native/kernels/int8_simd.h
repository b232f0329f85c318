// Vectors of bytes, and dot products of small integers.
#pragma once

#include "kernels/blocks.h"
#include "kernels/int8.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// A lane of dot() holds GROUP values of x and of the filter, as types X and W. The filter is stored
// less a number: W_LESS, or, where W has room for the difference, its zero point.
#if defined(__AVX512VNNI__)
typedef uint8_t X;
typedef int8_t W;
constexpr int GROUP = 4, W_LESS = 128;
#elif defined(__ARM_FEATURE_DOTPROD)
typedef uint8_t X;
typedef uint8_t W;
constexpr int GROUP = 4, W_LESS = 0;
#else
typedef int16_t X;
typedef int16_t W;
constexpr int GROUP = 2, W_LESS = 0;
#endif

typedef int32_t int_unaligned __attribute__((aligned(1), may_alias));

#if defined(__AVX512F__)
FORCE_INLINE vi add_pairs(vi acc, vi x, vi w) {
#if defined(__AVX512VNNI__)
  return (vi)_mm512_dpwssd_epi32((__m512i)acc, (__m512i)x, (__m512i)w);
#else
  return acc + (vi)_mm512_madd_epi16((__m512i)x, (__m512i)w);
#endif
}
#elif defined(__AVX2__)
FORCE_INLINE vi add_pairs(vi acc, vi x, vi w) {
  return acc + (vi)_mm256_madd_epi16((__m256i)x, (__m256i)w);
}
#elif defined(__SSE2__)
FORCE_INLINE vi add_pairs(vi acc, vi x, vi w) {
  return acc + (vi)_mm_madd_epi16((__m128i)x, (__m128i)w);
}
#elif defined(__aarch64__)
FORCE_INLINE vi add_pairs(vi acc, vi x, vi w) {
  const int16x8_t a = (int16x8_t)x, b = (int16x8_t)w;
  const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
  return acc + (vi)vpaddq_s32(low, vmull_high_s16(a, b));
}
#elif defined(__wasm_simd128__)
FORCE_INLINE vi add_pairs(vi acc, vi x, vi w) {
  return acc + (vi)wasm_i32x4_dot_i16x8((v128_t)x, (v128_t)w);
}
#else
FORCE_INLINE vi add_pairs(vi acc, vi x, vi w) {
  return acc + (x << 16 >> 16) * (w << 16 >> 16) + (x >> 16) * (w >> 16);
}
#endif

// acc + the sum of the GROUP products of each lane.
FORCE_INLINE vi dot(vi acc, vi x, vi w) {
#if defined(__AVX512VNNI__)
  return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)x, (__m512i)w);
#elif defined(__ARM_FEATURE_DOTPROD)
  return (vi)vdotq_u32((uint32x4_t)acc, (uint8x16_t)x, (uint8x16_t)w);
#else
  return add_pairs(acc, x, w);
#endif
}

// acc + x * w, for x and w of at most 16 bits.
FORCE_INLINE vi add_product(vi acc, vi x, vi w) {
#if defined(__SSE2__)
  return add_pairs(acc, x, w);  // the upper halves of x are 0
#else
  return acc + x * w;
#endif
}

// VL bytes as integers.
FORCE_INLINE vi load_bytes(const uint8_t* p) {
#if defined(__AVX512F__)
  return (vi)_mm512_maskz_cvtepu8_epi32((__mmask16)-1, _mm_loadu_si128((const __m128i_u*)p));
#elif defined(__AVX2__)
  return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u*)p));
#elif defined(__SSE4_1__)
  return (vi)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(*(const int_unaligned*)p));
#elif defined(__aarch64__)
  const uint8x8_t bytes = vreinterpret_u8_s32(vdup_n_s32(*(const int_unaligned*)p));
  return (vi)vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
#else
  return vi{p[0], p[1], p[2], p[3]};
#endif
}

// The lowest byte of each lane.
FORCE_INLINE void store_bytes(uint8_t* p, vi v) {
#if defined(__AVX512F__)
  _mm_storeu_si128((__m128i_u*)p, _mm512_maskz_cvtepi32_epi8((__mmask16)-1, (__m512i)v));
#elif defined(__AVX2__)
  const __m256i all = (__m256i)v;
  const __m128i words =
      _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storel_epi64((__m128i_u*)p, _mm_packus_epi16(words, words));
#elif defined(__SSE4_1__)
  const __m128i words = _mm_packus_epi32((__m128i)v, (__m128i)v);
  *(int_unaligned*)p = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
#elif defined(__aarch64__)
  const uint16x4_t words = vmovn_u32((uint32x4_t)v);
  const uint8x8_t bytes = vmovn_u16(vcombine_u16(words, words));
  *(int_unaligned*)p = vget_lane_s32(vreinterpret_s32_u8(bytes), 0);
#else
  for (int i = 0; i < VL; i++) p[i] = (uint8_t)v[i];
#endif
}

// The first n < VL bytes, touching nothing behind them; the other lanes are 0.
FORCE_INLINE vi load_bytes(const uint8_t* p, int n) {
#if defined(__AVX512F__)
  return (vi)_mm512_maskz_cvtepu8_epi32((__mmask16)-1,
                                        _mm_maskz_loadu_epi8((__mmask16)((1u << n) - 1), p));
#else
  uint8_t bytes[VL] = {};
  for (int i = 0; i < n; i++) bytes[i] = p[i];
  return load_bytes(bytes);
#endif
}
FORCE_INLINE void store_bytes(uint8_t* p, vi v, int n) {
#if defined(__AVX512F__)
  _mm_mask_storeu_epi8(p, (__mmask16)((1u << n) - 1),
                       _mm512_maskz_cvtepi32_epi8((__mmask16)-1, (__m512i)v));
#else
  uint8_t bytes[VL];
  store_bytes(bytes, v);
  for (int i = 0; i < n; i++) p[i] = bytes[i];
#endif
}

// Calls f(i, n) for the n lanes from element i on; n is the constant VL but for the last ones.
template <class F>
FORCE_INLINE void for_vectors(int64_t begin, int64_t end, const F& f) {
  int64_t i = begin;
  for (; i + VL <= end; i += VL) f(i, VL);
  if (i < end) f(i, (int)(end - i));
}
FORCE_INLINE vi load_some(const uint8_t* p, int n) {
  return n == VL ? load_bytes(p) : load_bytes(p, n);
}
FORCE_INLINE void store_some(uint8_t* p, vi v, int n) {
  n == VL ? store_bytes(p, v) : store_bytes(p, v, n);
}

FORCE_INLINE vi clamp(vi v, int32_t low, int32_t high) {
  const vi least = splat_int(low), most = splat_int(high);
  v = v < least ? least : v;
  return v > most ? most : v;
}

#if defined(__SSE4_1__)
typedef uint64_t vl __attribute__((vector_size(VL * 4)));

// The products of the lanes 0, 2, 4 ... as 64 bits.
FORCE_INLINE vl multiply_even(vi a, vi b) {
#if defined(__AVX512F__)
  return (vl)_mm512_maskz_mul_epi32((__mmask8)-1, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (vl)_mm256_mul_epi32((__m256i)a, (__m256i)b);
#else
  return (vl)_mm_mul_epi32((__m128i)a, (__m128i)b);
#endif
}
template <int... I>
FORCE_INLINE vi alternate(vi even, vi odd, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(even, odd, (I % 2 ? VL + I : I)...);
}
#endif

// (v * m + 2^30) >> 31, for m >= 0.
FORCE_INLINE vi multiply_high(vi v, int32_t m) {
#if defined(__SSE4_1__)
  constexpr uint64_t half = 1 << 30;
  const vl even = multiply_even(v, splat_int(m)) + half;
  const vl odd = multiply_even((vi)((vl)v >> 32), splat_int(m)) + half;
  return alternate((vi)(even >> 31), (vi)(odd << 1), Lanes());
#elif defined(__aarch64__)
  return (vi)vqrdmulhq_n_s32((int32x4_t)v, m);
#else
  typedef int64_t vl __attribute__((vector_size(VL * 8)));
  const vl products = __builtin_convertvector(v, vl) * (int64_t)m;
  return __builtin_convertvector((products + (1 << 30)) >> 31, vi);
#endif
}

// v / 2^shift for shift in [0, 31], halves away from zero.
FORCE_INLINE vi round_shift(vi v, int shift) {
  const int32_t mask = (int32_t)((1u << shift) - 1);
  const vi rest = (v & mask) + (v >> 31);
  return (v >> shift) - (rest > splat_int(mask >> 1));
}
FORCE_INLINE int64_t round_shift(int64_t v, int shift) {
  const int64_t mask = (int64_t)(((uint64_t)1 << shift) - 1), rest = (v & mask) + (v >> 63);
  return (v >> shift) + (rest > mask >> 1 ? 1 : 0);
}

// The nearest integers to v + offset, halves to even; v is cut off at 1000, a NaN becomes -1000.
FORCE_INLINE vi round_even(vf v, float offset = 0) {
  constexpr float INTEGERS = 12582912;  // floats of this size have no fraction
  v = min(max(v, splat(-1000)), splat(1000));
  return to_int((v + offset + INTEGERS) - INTEGERS);
}

// y[r][c] = requantized(sums[r * width + c] + column[c] + row[r]); column and row may be null.
// Whole vectors are read from sums and column.
void requantize_block(const Requantization& to, int64_t rows, int64_t columns, const int32_t* sums,
                      int64_t width, const int32_t* column, const int32_t* row, uint8_t* y,
                      int64_t y_row);

int64_t int8_conv_packed_bytes(const ConvShape& s);
void int8_conv_pack(const ConvShape& s, int32_t w_zero, const uint8_t* weights, void* packed,
                    const Parallel& parallel);
int64_t int8_conv_scratch_bytes(const ConvShape& s, int threads);
void int8_conv(const Int8Conv& conv, const uint8_t* x, const void* packed, uint8_t* y,
               void* scratch, const Parallel& parallel);

// The same for one filter per channel.
FORCE_INLINE bool is_depthwise(const ConvShape& s) { return s.group == s.c && s.k == s.c; }
int64_t int8_depthwise_packed_bytes(const ConvShape& s);
void int8_depthwise_pack(const ConvShape& s, int32_t w_zero, const uint8_t* weights, void* packed);
void int8_depthwise(const Int8Conv& conv, const uint8_t* x, const void* packed, uint8_t* y,
                    const Parallel& parallel);

void int8_requantize(const Requantization& to, int64_t n, const int32_t* sums, uint8_t* y,
                     const Parallel& parallel);
void int8_average_pool(const Int8Pool& p, const uint8_t* x, uint8_t* y, const Parallel& parallel);
void int8_max_pool(const Int8Pool& p, const uint8_t* x, uint8_t* y, const Parallel& parallel);
void int8_sum(const Int8Sum& s, int64_t n, const uint8_t* const* inputs, uint8_t* y,
              const Parallel& parallel);
void int8_quantize(float inverse_scale, float offset, int32_t zero_point, int64_t n, const float* x,
                   uint8_t* y, const Parallel& parallel);
void int8_dequantize(float scale, int32_t zero_point, int64_t n, const uint8_t* x, float* y,
                     const Parallel& parallel);

extern const Int8Table kInt8Table;

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
