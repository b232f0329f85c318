// Random numbers from Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3", 2011): ten rounds of multiplication turn (counter, key) into four random words.
// Nothing is carried from one number to the next. This file is compiled without fused multiply-add,
// so that results are the same on every instruction set.
#include "kernels/blocks.h"
#include "kernels/functions.h"
#include "kernels/math.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

constexpr int BLOCKS = 64;  // counters worked on together

struct Words {
  uint32_t word[4][BLOCKS];  // word[j][i]: word j of block first + i
};

void philox(uint64_t key, uint64_t stream, uint64_t first, Words& out) {
  uint32_t (&c)[4][BLOCKS] = out.word;
  for (int i = 0; i < BLOCKS; i++) {
    c[0][i] = (uint32_t)(first + i);
    c[1][i] = (uint32_t)((first + i) >> 32);
    c[2][i] = (uint32_t)stream;
    c[3][i] = (uint32_t)(stream >> 32);
  }
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    for (int i = 0; i < BLOCKS; i++) {
      const uint64_t p0 = (uint64_t)0xD2511F53 * c[0][i], p1 = (uint64_t)0xCD9E8D57 * c[2][i];
      c[0][i] = (uint32_t)(p1 >> 32) ^ c[1][i] ^ k0;
      c[1][i] = (uint32_t)p1;
      c[2][i] = (uint32_t)(p0 >> 32) ^ c[3][i] ^ k1;
      c[3][i] = (uint32_t)p0;
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

// Fills y with elements [r.offset, r.offset + n) of a stream that has PER_BLOCK elements per
// counter. make(words, values) turns the words of BLOCKS counters into values.
template <int PER_BLOCK, class T, class Make>
FORCE_INLINE void generate(const RandomState& r, int64_t n, T* y, const Parallel& parallel,
                           const Make& make) {
  constexpr int64_t COUNT = BLOCKS * PER_BLOCK;
  for_ranges(parallel, n, 8192, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const uint64_t element = r.offset + (uint64_t)begin, block = element / PER_BLOCK;
      const int64_t skip = (int64_t)(element % PER_BLOCK),
                    count = min_of(COUNT - skip, end - begin);
      Words words;
      T values[COUNT];
      philox(r.key, r.stream, block, words);
      make(words, values);
      __builtin_memcpy(y + begin, values + skip, count * sizeof(T));
      begin += count;
    }
  });
}

// 2 pi u -> cosine and sine, for u in [0, 1].
FORCE_INLINE void cosine_and_sine(vf u, vf& cosine, vf& sine) {
  // u is within an eighth of a turn of quadrant / 4.
  const vi quadrant = to_int(u * 4.f + 0.5f);
  const vf x = (u * 4.f - to_float(quadrant)) * 1.57079633f, z = x * x;
  vf s = splat(-0.000195172324f);
  s = s * z + 0.008332178f;
  s = s * z - 0.166666552f;
  s = x + x * z * s;
  vf c = splat(2.44383773e-05f);
  c = c * z - 0.00138873665f;
  c = c * z + 0.0416666456f;
  c = 1.f - 0.5f * z + z * z * c;
  const vi odd = (quadrant & 1) != 0;
  const vi cosine_sign = ((quadrant + 1) & 2) << 30, sine_sign = (quadrant & 2) << 30;
  cosine = as_float(as_int(select(odd, s, c)) ^ cosine_sign);
  sine = as_float(as_int(select(odd, c, s)) ^ sine_sign);
}

FORCE_INLINE vi load_word(const uint32_t* words) { return load_int((const int32_t*)words); }

// Two independent normal numbers out of two words (Box and Muller, 1958).
void box_muller(const uint32_t* first, const uint32_t* second, float mean, float std, float* even,
                float* odd) {
  for (int i = 0; i < BLOCKS; i += VL) {
    const vi a = load_word(first + i), b = load_word(second + i);
    // 31 bits, so that the conversion is the same everywhere; never 0, for the logarithm.
    const vf u = to_float((a & 0x7fffffff) | 1) * 0x1p-31f;
    const vf turn = to_float((b >> 8) & 0xffffff) * 0x1p-24f;
    float square[VL];
    store(square, -2.f * log(u));
    for (int l = 0; l < VL; l++) square[l] = __builtin_sqrtf(square[l]);
    const vf radius = load(square);
    vf cosine, sine;
    cosine_and_sine(turn, cosine, sine);
    store(even + i, radius * cosine * std + mean);
    store(odd + i, radius * sine * std + mean);
  }
}

// The float next to x toward minus infinity.
float before(float x) {
  int32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  bits = x == 0 ? (int32_t)0x80000001 : x > 0 ? bits - 1 : bits + 1;
  __builtin_memcpy(&x, &bits, sizeof(bits));
  return x;
}

}  // namespace

void uniform(const RandomState& r, float low, float high, int64_t n, float* y,
             const Parallel& parallel) {
  const float range = high - low, last = low < high ? before(high) : low;
  generate<4>(r, n, y, parallel, [&](const Words& words, float* values) {
    for (int i = 0; i < BLOCKS; i++) {
      for (int j = 0; j < 4; j++) {
        const float u = (float)(int32_t)(words.word[j][i] >> 8) * 0x1p-24f, v = low + u * range;
        values[4 * i + j] = v < last ? v : last;  // rounding can reach `high`
      }
    }
  });
}

void normal(const RandomState& r, float mean, float std, int64_t n, float* y,
            const Parallel& parallel) {
  generate<4>(r, n, y, parallel, [&](const Words& words, float* values) {
    float normals[4][BLOCKS];
    for (int j = 0; j < 4; j += 2) {
      box_muller(words.word[j], words.word[j + 1], mean, std, normals[j], normals[j + 1]);
    }
    for (int i = 0; i < BLOCKS; i++) {
      for (int j = 0; j < 4; j++) values[4 * i + j] = normals[j][i];
    }
  });
}

void uniform_int(const RandomState& r, int32_t low, int32_t high, int64_t n, int32_t* y,
                 const Parallel& parallel) {
  // A 64-bit fraction times the range: no value is favoured by more than 1 part in 2^32.
  const uint64_t range = (uint64_t)((int64_t)high - low) + 1;
  generate<2>(r, n, y, parallel, [&](const Words& words, int32_t* values) {
    for (int i = 0; i < BLOCKS; i++) {
      for (int j = 0; j < 2; j++) {
        const uint64_t upper = words.word[2 * j][i] * range;
        const uint64_t lower = words.word[2 * j + 1][i] * range;
        values[2 * i + j] = (int32_t)(low + (int64_t)((upper + (lower >> 32)) >> 32));
      }
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
