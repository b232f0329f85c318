// The register tile that matrix products and convolutions stand on:
//
//   out[p][q] = bias + add[p][q] +
//               sum over runs, r < run.count:  a[run.offset + p * PS + r * a_step] * w[..][q]
//
// p < P are scalars of the broadcast operand `a`, q < Q are vectors of the operand `w`, whose rows
// follow each other through all runs. Where `a` is found is told by a list of runs, which makes one
// tile serve a packed matrix (one run per packed piece), a convolution over blocked channels (one
// run per channel block and filter tap: an implicit matrix product, nothing is copied), a
// convolution over few plain channels (one run per filter row), and weight gradients (one run per
// output row).
#pragma once

#include "kernels/simd.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

struct Run {
  ptrdiff_t offset, count;
};

FORCE_INLINE vf cut(vf v, const Bounds& bounds) {
  return min(splat(bounds.high), max(splat(bounds.low), v));
}
FORCE_INLINE float cut(float v, const Bounds& bounds) {
  v = v < bounds.low ? bounds.low : v;
  return v > bounds.high ? bounds.high : v;
}

// What all tiles of one product have in common. Distances are counted in floats.
struct TileShape {
  const Run* runs = nullptr;
  ptrdiff_t run_count = 0;
  ptrdiff_t a_pixel = 0;  // for Spacing::kAny; for kTwoRows, between scalars 0 and P / 2
  ptrdiff_t a_step = 1;   // between r and r + 1
  ptrdiff_t w_step = 0, w_vector = VL;
  ptrdiff_t out_row = 0, out_vector = VL;
  ptrdiff_t ahead_step = 0;  // what each run brings into the cache of `ahead`, if not 0
  bool scattered = false;
  Bounds bounds;
};

// The operands of one tile; of the biases at most one.
struct TilePointers {
  const float* a;
  const float* w;
  float* out;
  const float* bias_vector = nullptr;  // Q vectors, for all p
  const float* bias_row = nullptr;     // P scalars, for all q
  const float* add = nullptr;          // laid out as out is; may be out
  const float* ahead = nullptr;        // where later tiles will read
};

using Tile = void (*)(const TileShape&, const TilePointers&);

// PS, the distance between scalars: 1, VL, a_pixel, or VL within each half of the scalars.
enum class Spacing { kOne, kVector, kAny, kTwoRows };

// The tile for p rows (1 to TILE_ROWS, even for kTwoRows) and q vectors (1 or 2).
Tile tile_for(Spacing spacing, int p, int q);

// Cuts `count` rows into the fewest tiles, all of nearly the same height.
struct RowTiles {
  int64_t count, tiles;
  FORCE_INLINE explicit RowTiles(int64_t rows) : count(rows), tiles(ceil_div(rows, TILE_ROWS)) {}
  FORCE_INLINE int64_t begin(int64_t i) const { return i * count / tiles; }
  FORCE_INLINE int height(int64_t i) const { return (int)(begin(i + 1) - begin(i)); }
};

// Filters that come from memory are waited for unless they are asked for early: while `tiles` tiles
// use one piece of them, they bring the next piece, of as many floats, into the cache.
class Ahead {
 public:
  // `all`: floats of all pieces.
  FORCE_INLINE Ahead(int64_t all, int64_t piece, int64_t tiles, TileShape& shape) {
    constexpr int64_t LINE = kAlignment / sizeof(float), NEAR = 16 * 1024;
    if (all <= NEAR) return;
    shape.ahead_step = round_up(ceil_div(piece, tiles * shape.run_count), LINE);
    share_ = shape.ahead_step * shape.run_count;
  }
  // For tile number `tile` of those that use the piece before `next`.
  FORCE_INLINE const float* at(const float* next, int64_t tile) const {
    return next + tile * share_;
  }

 private:
  int64_t share_ = 0;
};

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
