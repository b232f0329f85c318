#include "kernels/tile.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// The scalars of the broadcast operand, PS floats apart.
template <int P, int PS>
struct Scalars {
  FORCE_INLINE Scalars(const float* a, ptrdiff_t) : x(a) {}
  FORCE_INLINE float operator[](int p) const { return x[p * PS]; }
  FORCE_INLINE void advance(ptrdiff_t step) { x += step; }
  const float* x;
};

// A distance known only at run time: one pointer for five scalars, else addresses spill.
constexpr int RUNTIME = 0;
template <int P>
struct Scalars<P, RUNTIME> {
  static constexpr int POINTERS = (P + 4) / 5;
  FORCE_INLINE Scalars(const float* a, ptrdiff_t distance) : pixel(distance) {
    for (int i = 0; i < POINTERS; i++) middle[i] = a + (5 * i + 2) * distance;
  }
  FORCE_INLINE float operator[](int p) const { return middle[p / 5][(p % 5 - 2) * pixel]; }
  FORCE_INLINE void advance(ptrdiff_t step) {
#pragma GCC unroll 3
    for (int i = 0; i < POINTERS; i++) {
      middle[i] += step;
      // Keeps the compiler from deriving all addresses from the first pointer again.
      asm("" : "+r"(middle[i]));
    }
  }
  const float* middle[POINTERS];
  ptrdiff_t pixel;
};

// Two rows of an image that are too narrow for a tile each.
constexpr int TWO_ROWS = -1;
template <int P>
struct Scalars<P, TWO_ROWS> {
  FORCE_INLINE Scalars(const float* a, ptrdiff_t distance) : row{a, a + distance} {}
  FORCE_INLINE float operator[](int p) const { return row[p / (P / 2)][p % (P / 2) * VL]; }
  FORCE_INLINE void advance(ptrdiff_t step) {
    row[0] += step;
    row[1] += step;
  }
  const float* row[2];
};

#define UNROLL_ROWS _Pragma("GCC unroll 16")
#define UNROLL_VECTORS _Pragma("GCC unroll 2")

template <int P, int Q, int PS>
void tile(const TileShape& t, const TilePointers& at) {
  vf acc[P][Q];
  if (at.bias_row) {
    UNROLL_ROWS for (int p = 0; p < P; p++) {
      UNROLL_VECTORS for (int q = 0; q < Q; q++) acc[p][q] = splat(at.bias_row[p]);
    }
  } else {
    UNROLL_VECTORS for (int q = 0; q < Q; q++) {
      const vf start = at.bias_vector ? load(at.bias_vector + q * VL) : vf{};
      UNROLL_ROWS for (int p = 0; p < P; p++) acc[p][q] = start;
    }
  }

  const ptrdiff_t a_step = t.a_step, w_step = t.w_step, w_vector = t.w_vector;
  const float* w = at.w;
  constexpr ptrdiff_t LINE = kAlignment / sizeof(float);
  const float* ahead = at.ahead;
  for (const Run *run = t.runs, *end = run + t.run_count; run != end; run++) {
    // One line of four is left to the processor, which goes on by itself where a line was missed:
    // with all of them asked for, what else is on its way waits for them.
    for (const float* end_ahead = ahead + t.ahead_step; ahead != end_ahead; ahead += LINE) {
      if ((uintptr_t)ahead / kAlignment % 4 != 3) __builtin_prefetch(ahead, 0, 2);
    }
    if (PS == VL && t.scattered && end - run > 2) {
      const float* later = at.a + run[2].offset;
      UNROLL_ROWS for (int p = 0; p < P; p++) __builtin_prefetch(later + p * VL, 0, 3);
    }
    Scalars<P, PS> a(at.a + run->offset, t.a_pixel);
#pragma GCC unroll 4
    for (ptrdiff_t r = run->count; r > 0; r--) {
      vf wv[Q];
      UNROLL_VECTORS for (int q = 0; q < Q; q++) wv[q] = load(w + q * w_vector);
      UNROLL_ROWS for (int p = 0; p < P; p++) {
        const vf av = splat(a[p]);
        UNROLL_VECTORS for (int q = 0; q < Q; q++) acc[p][q] += wv[q] * av;
      }
      w += w_step;
      a.advance(a_step);
    }
  }

  if (at.add) {
    UNROLL_ROWS for (int p = 0; p < P; p++) {
      UNROLL_VECTORS for (int q = 0; q < Q; q++) {
        acc[p][q] += load(at.add + p * t.out_row + q * t.out_vector);
      }
    }
  }
  const vf low = splat(t.bounds.low), high = splat(t.bounds.high);
  UNROLL_ROWS for (int p = 0; p < P; p++) {
    UNROLL_VECTORS for (int q = 0; q < Q; q++) {
      store(at.out + p * t.out_row + q * t.out_vector, min(high, max(low, acc[p][q])));
    }
  }
}

#undef UNROLL_ROWS
#undef UNROLL_VECTORS

// Heights are multiples of UNIT.
template <int PS, int UNIT, int Q, int... I>
Tile tile_of_height(int p, std::integer_sequence<int, I...>) {
  static constexpr Tile tiles[] = {tile<(I + 1) * UNIT, Q, PS>...};
  return tiles[p / UNIT - 1];
}
template <int PS, int UNIT = 1>
Tile tile_of_size(int p, int q) {
  static_assert(TILE_VECTORS == 2);
  constexpr auto heights = std::make_integer_sequence<int, TILE_ROWS / UNIT>();
  return q == 2 ? tile_of_height<PS, UNIT, 2>(p, heights) : tile_of_height<PS, UNIT, 1>(p, heights);
}

}  // namespace

Tile tile_for(Spacing spacing, int p, int q) {
  switch (spacing) {
    case Spacing::kOne:
      return tile_of_size<1>(p, q);
    case Spacing::kVector:
      return tile_of_size<VL>(p, q);
    case Spacing::kTwoRows:
      return tile_of_size<TWO_ROWS, 2>(p, q);
    case Spacing::kAny:
      break;
  }
  return tile_of_size<RUNTIME>(p, q);
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
