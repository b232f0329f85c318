// Convolution as a matrix product: rows are the places of the output, their values what the window
// sees there, columns the filters. With x = q - x_zero and w = v - w_zero,
//   sum of x w = sum of q (v - less) + (less - w_zero) sum of q - x_zero sum of w,
// so that bytes are multiplied as they are; the second sum is one number per row, the third one per
// column. `less` is what the packed filters are stored less of.
#include "kernels/int8_simd.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

constexpr int PANEL = TILE_VECTORS * VL;  // columns of a tile

struct Sizes {
  int64_t oh, ow, rows;
  int64_t channels, columns, depth;  // of a group
  int64_t steps, padded;             // of a row; columns, and room for them
  FORCE_INLINE explicit Sizes(const ConvShape& s)
      : oh(s.oh()),
        ow(s.ow()),
        rows(s.n * oh * ow),
        channels(s.c / s.group),
        columns(s.k / s.group),
        depth(s.kh * s.kw * channels),
        steps(ceil_div(depth, GROUP)),
        padded(round_up(columns, VL)) {}
};

// Cut so that the rows of a block stay in the nearest cache; few rows are shared out by columns.
struct Plan {
  bool direct;  // rows are read where they are
  int64_t row_bytes, height, row_blocks, panels, width, column_blocks;
  int64_t lane_bytes;

  Plan(const ConvShape& s, const Sizes& z, int threads) {
    const bool points = s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 &&
                        s.pad_t == 0 && s.pad_l == 0 && s.pad_b == 0 && s.pad_r == 0;
    direct = GROUP == 4 && points && z.depth % GROUP == 0;
    row_bytes = direct ? s.c : z.steps * 4;
    constexpr int64_t NEAR = 32 * 1024;
    height = max_of<int64_t>(1, NEAR / max_of<int64_t>(1, z.steps * 4 * TILE_ROWS)) * TILE_ROWS;
    height = min_of<int64_t>(height, 32 * TILE_ROWS);
    row_blocks = ceil_div(z.rows, height);
    panels = ceil_div(z.columns, PANEL);
    const int64_t blocks = row_blocks * s.group;
    column_blocks = threads > 1 ? min_of(panels, ceil_div(4 * threads, blocks)) : 1;
    width = ceil_div(panels, column_blocks);
    column_blocks = ceil_div(panels, width);
    Slices lane(nullptr);
    lane.take<int32_t>(height);
    if (!direct) lane.take<char>(height * row_bytes);
    lane_bytes = lane.bytes();
  }
};

// out[p][q] = the products of row p of x and column q, P rows and Q vectors of columns.
template <int P, int Q>
void tile(int64_t steps, const char* x, int64_t x_row, const int32_t* w, int32_t* out) {
  vi acc[P][Q] = {};
  for (int64_t r = 0; r < steps; r++, x += 4, w += Q * VL) {
    vi columns[Q];
#pragma GCC unroll 2
    for (int q = 0; q < Q; q++) columns[q] = load_int(w + q * VL);
#pragma GCC unroll 16
    for (int p = 0; p < P; p++) {
      const vi row = splat_int(*(const int_unaligned*)(x + p * x_row));
#pragma GCC unroll 2
      for (int q = 0; q < Q; q++) acc[p][q] = dot(acc[p][q], row, columns[q]);
    }
  }
#pragma GCC unroll 16
  for (int p = 0; p < P; p++) {
#pragma GCC unroll 2
    for (int q = 0; q < Q; q++) store_int(out + (p * Q + q) * VL, acc[p][q]);
  }
}

using Tile = void (*)(int64_t, const char*, int64_t, const int32_t*, int32_t*);

template <int Q, int... I>
Tile tile_of_height(int64_t rows, std::integer_sequence<int, I...>) {
  static constexpr Tile tiles[] = {tile<I + 1, Q>...};
  return tiles[rows - 1];
}
Tile tile_for(int64_t rows, int64_t vectors) {
  static_assert(TILE_VECTORS == 2);
  constexpr auto heights = std::make_integer_sequence<int, TILE_ROWS>();
  return vectors == 2 ? tile_of_height<2>(rows, heights) : tile_of_height<1>(rows, heights);
}

// n values from x, or as many that are `value`. The few bytes that a small window sees in a row of
// an image are not worth a call.
FORCE_INLINE X* put(const uint8_t* x, int64_t n, X* to) {
  typedef uint64_t eight __attribute__((aligned(1), may_alias));
  if (sizeof(X) == 1 && n >= 8 && n <= 16) {
    const eight first = *(const eight*)x, last = *(const eight*)(x + n - 8);
    *(eight*)to = first;
    *(eight*)(to + n - 8) = last;
    return to + n;
  }
  for (int64_t i = 0; i < n; i++) to[i] = x[i];
  return to + n;
}
FORCE_INLINE X* put(int32_t value, int64_t n, X* to) {
  for (int64_t i = 0; i < n; i++) to[i] = (X)value;
  return to + n;
}

// What the window sees at the places [begin, end), as rows of z.steps * GROUP values.
void gather(const ConvShape& s, const Sizes& z, const uint8_t* x, int32_t x_zero, int64_t begin,
            int64_t end, X* to) {
  const bool dense = s.dilation_w == 1 && s.group == 1;
  const uint8_t* image = x + begin / (z.oh * z.ow) * s.h * s.w * s.c;
  int64_t oy = begin / z.ow % z.oh, ox = begin % z.ow;
  for (int64_t place = begin; place < end; place++) {
    const int64_t top = oy * s.stride_h - s.pad_t, left = ox * s.stride_w - s.pad_l;
    const Range columns(0, s.kw, s.dilation_w, left, s.w);
    for (int64_t a = 0; a < s.kh; a++) {
      const int64_t i = top + a * s.dilation_h;
      if (i < 0 || i >= s.h || columns.begin >= columns.end) {
        to = put(x_zero, s.kw * z.channels, to);
        continue;
      }
      to = put(x_zero, columns.begin * z.channels, to);
      const uint8_t* from = image + (i * s.w + left) * s.c;
      if (dense) {
        to = put(from + columns.begin * s.c, (columns.end - columns.begin) * s.c, to);
      } else {
        for (int64_t b = columns.begin; b < columns.end; b++) {
          to = put(from + b * s.dilation_w * s.c, z.channels, to);
        }
      }
      to = put(x_zero, (s.kw - columns.end) * z.channels, to);
    }
    to = put(0, z.steps * GROUP - z.depth, to);
    if (++ox == z.ow) {
      ox = 0;
      if (++oy == z.oh) {
        oy = 0;
        image += s.h * s.w * s.c;
      }
    }
  }
}

// The sum of the bytes of each row, times `factor`.
void sum_rows(int64_t rows, int64_t steps, const char* x, int64_t x_row, int32_t factor,
              int32_t* sums) {
  const vi ones = splat_int(0x01010101);
  for (int64_t r = 0; r < rows; r++, x += x_row) {
    vi acc = {};
    for_vectors(0, steps, [&](int64_t i, int n) {
      const float* lanes = (const float*)x + i;  // nothing but a way to load them
      acc = dot(acc, as_int(n == VL ? load(lanes) : load_partial(lanes, n)), ones);
    });
    int32_t sum = 0;
    for (int i = 0; i < VL; i++) sum += acc[i];
    sums[r] = sum * factor;
  }
}

// Where the filters of a group begin, after the sums of all columns.
FORCE_INLINE const int32_t* filters_of(const ConvShape& s, const Sizes& z, const void* packed,
                                       int64_t g) {
  return (const int32_t*)packed + s.group * z.padded + g * z.padded * z.steps;
}

}  // namespace

// y[r][c] = f(sums[r * width + c] + column[c] + row[r]).
template <class F>
static FORCE_INLINE void finish_block(int64_t rows, int64_t columns, const int32_t* sums,
                                      int64_t width, const int32_t* column, const int32_t* row,
                                      uint8_t* y, int64_t y_row, const F& f) {
  for (int64_t r = 0; r < rows; r++, sums += width, y += y_row) {
    const vi more = row ? splat_int(row[r]) : vi{};
    for_vectors(0, columns, [&](int64_t c, int n) {
      vi v = load_int(sums + c);
      if (row) v += more;
      if (column) v += load_int(column + c);
      store_some(y + c, f(v), n);
    });
  }
}

void requantize_block(const Requantization& to, int64_t rows, int64_t columns, const int32_t* sums,
                      int64_t width, const int32_t* column, const int32_t* row, uint8_t* y,
                      int64_t y_row) {
  const auto finish = [&](const auto& f) {
    finish_block(rows, columns, sums, width, column, row, y, y_row, f);
  };
  const int32_t zero = to.zero_point, low = to.low - zero, high = 255 - zero, m = to.multiplier;
  const int shift = to.shift;
  if (to.even) {
    const float factor = to.factor;
    return finish([=](vi v) { return clamp(round_even(to_float(v) * factor), low, high) + zero; });
  }
  if (to.low_bits < 31) {  // factors of 1 and more, whose products take more than 32 bits
    const int low_bits = to.low_bits;
    const int64_t half = (int64_t)1 << (low_bits - 1);
    return finish([=](vi v) {
      vi result = {};
      for (int i = 0; i < VL; i++) {
        const int64_t place = (v[i] * (int64_t)m + half) >> low_bits;
        result[i] = (int32_t)max_of<int64_t>(low, min_of<int64_t>(high, place)) + zero;
      }
      return result;
    });
  }
  // What is cut off before it is divided leaves room for half a divisor and the zero point.
  constexpr int ROOM = 21;
  if (shift == 0 || shift > ROOM) {
    return finish(
        [=](vi v) { return clamp(round_shift(multiply_high(v, m), shift), low, high) + zero; });
  }
  const int32_t least = low * (1 << shift), most = high * (1 << shift);
  const int32_t more = zero * (1 << shift) + ((1 << shift) >> 1);
  finish([=](vi v) {
    v = clamp(multiply_high(v, m), least, most);
    return (v + (v >> 31) + more) >> shift;
  });
}

int64_t int8_conv_packed_bytes(const ConvShape& s) {
  if (is_depthwise(s)) return int8_depthwise_packed_bytes(s);
  const Sizes z(s);
  return s.group * z.padded * (z.steps + 1) * sizeof(int32_t);
}

void int8_conv_pack(const ConvShape& s, int32_t w_zero, const uint8_t* weights, void* packed,
                    const Parallel& parallel) {
  if (is_depthwise(s)) return int8_depthwise_pack(s, w_zero, weights, packed);
  const Sizes z(s);
  const int32_t less = GROUP == 4 ? W_LESS : w_zero;
  const int64_t blocks = z.padded / VL;
  for_blocks(parallel, s.group * blocks, [&](int64_t block, int) {
    const int64_t g = block / blocks, first = block % blocks * VL;
    const int64_t panel = first / PANEL * PANEL;
    const int64_t vectors = min_of<int64_t>(TILE_VECTORS, (z.padded - panel) / VL);
    W* to = (W*)(filters_of(s, z, packed, g) + panel * z.steps + (first - panel));
    for (int64_t c = 0; c < VL; c++) {
      const bool there = first + c < z.columns;
      const uint8_t* from = weights + (g * z.columns + (there ? first + c : 0)) * z.depth;
      uint32_t sum = 0;
      for (int64_t i = 0; i < z.steps * GROUP; i++) {
        const bool taken = there && i < z.depth;
        to[(i / GROUP * vectors * VL + c) * GROUP + i % GROUP] = (W)(taken ? from[i] - less : 0);
        if (taken) sum += (uint32_t)(from[i] - w_zero);
      }
      ((int32_t*)packed)[g * z.padded + first + c] = (int32_t)sum;
    }
  });
}

int64_t int8_conv_scratch_bytes(const ConvShape& s, int threads) {
  if (is_depthwise(s)) return 0;
  const Sizes z(s);
  const Plan plan(s, z, threads);
  const int64_t blocks = s.group * plan.row_blocks * plan.column_blocks;
  return round_up(s.group * z.padded * 4, kAlignment) +
         lane_count(threads, blocks) * plan.lane_bytes;
}

void int8_conv(const Int8Conv& conv, const uint8_t* x, const void* packed, uint8_t* y,
               void* scratch, const Parallel& parallel) {
  const ConvShape& s = conv.shape;
  if (is_depthwise(s)) return int8_depthwise(conv, x, packed, y, parallel);
  const Sizes z(s);
  const Plan plan(s, z, parallel.threads);
  Slices slices(scratch);
  int32_t* offsets = slices.take<int32_t>(s.group * z.padded);
  char* lanes = (char*)scratch + slices.bytes();
  for (int64_t g = 0; g < s.group; g++) {
    for (int64_t c = 0; c < z.padded; c++) {
      const int64_t i = g * z.padded + c;
      const uint32_t zeros = (uint32_t)conv.x_zero * (uint32_t)((const int32_t*)packed)[i];
      const int32_t bias = conv.bias && c < z.columns ? conv.bias[g * z.columns + c] : 0;
      offsets[i] = (int32_t)((uint32_t)bias - zeros);
    }
  }
  const int32_t row_factor = GROUP == 4 ? W_LESS - conv.w_zero : 0;

  for_blocks(parallel, s.group * plan.row_blocks * plan.column_blocks, [&](int64_t b, int lane) {
    const int64_t g = b % s.group, rest = b / s.group;
    const int64_t begin = rest / plan.column_blocks * plan.height;
    const int64_t count = min_of(plan.height, z.rows - begin);
    Slices own(lanes + lane * plan.lane_bytes);
    int32_t* row_sums = own.take<int32_t>(plan.height);
    const char* rows = (const char*)x + begin * s.c + g * z.channels;
    if (!plan.direct) {
      X* gathered = (X*)own.take<char>(plan.height * plan.row_bytes);
      gather(s, z, x + g * z.channels, conv.x_zero, begin, begin + count, gathered);
      rows = (const char*)gathered;
    }
    if (row_factor != 0) sum_rows(count, z.steps, rows, plan.row_bytes, row_factor, row_sums);

    const int64_t first = rest % plan.column_blocks * plan.width;
    const int64_t tiles = ceil_div(count, TILE_ROWS);
    for (int64_t p = first; p < min_of(plan.panels, first + plan.width); p++) {
      const int64_t column = p * PANEL, columns = min_of<int64_t>(PANEL, z.columns - column);
      const int64_t vectors = ceil_div(columns, VL);
      const int32_t* w = filters_of(s, z, packed, g) + column * z.steps;
      for (int64_t t = 0; t < tiles; t++) {
        const int64_t row = t * count / tiles, height = (t + 1) * count / tiles - row;
        alignas(kAlignment) int32_t sums[TILE_ROWS * PANEL];
        tile_for(height, vectors)(z.steps, rows + row * plan.row_bytes, plan.row_bytes, w, sums);
        requantize_block(conv.to, height, columns, sums, vectors * VL,
                         offsets + g * z.padded + column,
                         row_factor != 0 ? row_sums + row : nullptr,
                         y + (begin + row) * s.k + g * z.columns + column, s.k);
      }
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
