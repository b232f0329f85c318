// One filter per channel: every place of the output is a few multiplications of vectors of
// channels.
#include "kernels/int8_simd.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

constexpr int PIXELS = VL == 16 ? 8 : 4;  // outputs held in registers

// The taps that lie inside of the image, and where their values and filters are.
struct Taps {
  const uint8_t* x;  // of tap (0, 0), which may lie outside
  const int32_t* w;
  int64_t top, bottom, left, right;  // taps [top, bottom) x [left, right)
  int64_t kw, row, column, pixel;    // values between rows and columns of taps, and outputs
  int lanes;                         // VL, or how many channels there are
};

// P outputs that see the same taps. KW: the window's width when all of it is seen, with outputs
// STRIDE columns apart, which then share what they read; else 0.
template <int P, int KW, int STRIDE, bool WHOLE>
FORCE_INLINE void sum_taps(const Taps& t, vi start, int32_t* sums) {
  vi acc[P];
#pragma GCC unroll 8
  for (int p = 0; p < P; p++) acc[p] = start;
  for (int64_t r = t.top; r < t.bottom; r++) {
    const uint8_t* x = t.x + r * t.row;
    const int32_t* w = t.w + r * t.kw * VL;
    if constexpr (KW > 0) {
      vi factors[KW];
#pragma GCC unroll 8
      for (int q = 0; q < KW; q++) factors[q] = load_int(w + q * VL);
#pragma GCC unroll 32
      for (int j = 0; j < (P - 1) * STRIDE + KW; j++) {
        const vi value = load_bytes(x + j * t.column);
#pragma GCC unroll 8
        for (int q = 0; q < KW; q++) {
          const int p = (j - q) / STRIDE;
          if (j >= q && (j - q) % STRIDE == 0 && p < P) {
            acc[p] = add_product(acc[p], value, factors[q]);
          }
        }
      }
    } else {
      for (int64_t q = t.left; q < t.right; q++) {
        const vi factor = load_int(w + q * VL);
#pragma GCC unroll 8
        for (int p = 0; p < P; p++) {
          const uint8_t* from = x + q * t.column + p * t.pixel;
          const vi value = WHOLE ? load_bytes(from) : load_bytes(from, t.lanes);
          acc[p] = add_product(acc[p], value, factor);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < P; p++) store_int(sums + p * VL, acc[p]);
}

// `count` outputs that see the same taps, from y on.
template <int KW, int STRIDE, bool WHOLE>
void sum_span(const Int8Conv& conv, Taps t, int64_t count, vi bias, uint8_t* y) {
  vi filter = {};
  for (int64_t r = t.top; r < t.bottom; r++) {
    for (int64_t q = t.left; q < t.right; q++) filter += load_int(t.w + (r * t.kw + q) * VL);
  }
  bias -= filter * conv.x_zero;
  constexpr int64_t SPAN = 4 * PIXELS;
  alignas(kAlignment) int32_t sums[SPAN * VL];
  for (int64_t done = 0; done < count; done += SPAN) {
    const int64_t n = min_of(SPAN, count - done);
    for (int64_t i = 0; i < n;) {
      const int64_t step = n - i >= PIXELS ? PIXELS : n - i >= PIXELS / 2 ? PIXELS / 2 : 1;
      if (step == PIXELS) {
        sum_taps<PIXELS, KW, STRIDE, WHOLE>(t, bias, sums + i * VL);
      } else if (step > 1) {
        sum_taps<PIXELS / 2, KW, STRIDE, WHOLE>(t, bias, sums + i * VL);
      } else {
        sum_taps<1, KW, STRIDE, WHOLE>(t, bias, sums + i * VL);
      }
      t.x += step * t.pixel;
      i += step;
    }
    requantize_block(conv.to, n, t.lanes, sums, VL, nullptr, nullptr, y, conv.shape.c);
    y += n * conv.shape.c;
  }
}

using Span = void (*)(const Int8Conv&, Taps, int64_t, vi, uint8_t*);

// For outputs that see the whole width of the window.
Span span_for(const ConvShape& s) {
  if (s.dilation_w == 1 && s.stride_w == 1) {
    if (s.kw == 3) return sum_span<3, 1, true>;
    if (s.kw == 5) return sum_span<5, 1, true>;
  } else if (s.dilation_w == 1 && s.stride_w == 2) {
    if (s.kw == 3) return sum_span<3, 2, true>;
    if (s.kw == 5) return sum_span<5, 2, true>;
  }
  return sum_span<0, 0, true>;
}

FORCE_INLINE vi bias_of(const Int8Conv& conv, int64_t c, int lanes) {
  if (!conv.bias) return vi{};
  if (lanes == VL) return load_int(conv.bias + c);
  vi bias = {};
  for (int i = 0; i < lanes; i++) bias[i] = conv.bias[c + i];
  return bias;
}

// One output, all channels: those at the ends of a row see a share of the window of their own.
void sum_column(const Int8Conv& conv, const Taps& t, uint8_t* y) {
  const ConvShape& s = conv.shape;
  constexpr int64_t PIECE = 8 * VL;
  alignas(kAlignment) int32_t sums[PIECE];
  for (int64_t first = 0; first < s.c; first += PIECE) {
    const int64_t end = min_of(s.c, first + PIECE);
    for_vectors(first, end, [&](int64_t c, int lanes) {
      vi acc = bias_of(conv, c, lanes), filter = {};
      for (int64_t r = t.top; r < t.bottom; r++) {
        for (int64_t q = t.left; q < t.right; q++) {
          const vi factor = load_int(t.w + c * s.kh * s.kw + (r * t.kw + q) * VL);
          acc = add_product(acc, load_some(t.x + r * t.row + q * t.column + c, lanes), factor);
          filter += factor;
        }
      }
      store_int(sums + (c - first), acc - filter * conv.x_zero);
    });
    requantize_block(conv.to, 1, end - first, sums, 0, nullptr, nullptr, y + first, 0);
  }
}

// Output row `row` of one image.
void convolve_row(const Int8Conv& conv, const uint8_t* image, const int32_t* w, int64_t row,
                  uint8_t* y) {
  const ConvShape& s = conv.shape;
  const int64_t ow = s.ow(), top = row * s.stride_h - s.pad_t;
  const Range rows(0, s.kh, s.dilation_h, top, s.h);
  // Outputs [inside.begin, inside.end) see the whole width of the window.
  const Range inside(0, ow, s.stride_w, -s.pad_l, s.w - s.dilation_w * (s.kw - 1));
  const Span inner = span_for(s);
  Taps t = {};
  t.top = rows.begin;
  t.bottom = max_of(rows.begin, rows.end);
  t.kw = s.kw;
  t.row = s.dilation_h * s.w * s.c;
  t.column = s.dilation_w * s.c;
  t.pixel = s.stride_w * s.c;
  for (int64_t column = 0; column < ow;) {
    const int64_t left = column * s.stride_w - s.pad_l;
    const bool all = column >= inside.begin && column < inside.end;
    const int64_t count = all ? inside.end - column : 1;
    const Range columns(0, s.kw, s.dilation_w, left, s.w);
    t.left = columns.begin;
    t.right = max_of(columns.begin, columns.end);
    t.x = image + (top * s.w + left) * s.c;
    t.w = w;
    if (!all) sum_column(conv, t, y + column * s.c);
    for (int64_t c = 0; all && c < s.c; c += VL) {
      Taps own = t;
      own.x += c;
      own.w += c * s.kh * s.kw;
      own.lanes = (int)min_of<int64_t>(VL, s.c - c);
      const Span span = own.lanes == VL ? inner : sum_span<0, 0, false>;
      span(conv, own, count, bias_of(conv, c, own.lanes), y + column * s.c + c);
    }
    column += count;
  }
}

}  // namespace

int64_t int8_depthwise_packed_bytes(const ConvShape& s) {
  return round_up(s.c, VL) * s.kh * s.kw * sizeof(int32_t);
}

// Vectors of channels, tap by tap.
void int8_depthwise_pack(const ConvShape& s, int32_t w_zero, const uint8_t* weights, void* packed) {
  const int64_t taps = s.kh * s.kw;
  int32_t* to = (int32_t*)packed;
  for (int64_t c = 0; c < s.c; c += VL) {
    for (int64_t t = 0; t < taps; t++) {
      for (int64_t i = c; i < c + VL; i++) *to++ = i < s.c ? weights[i * taps + t] - w_zero : 0;
    }
  }
}

void int8_depthwise(const Int8Conv& conv, const uint8_t* x, const void* packed, uint8_t* y,
                    const Parallel& parallel) {
  const ConvShape& s = conv.shape;
  const int64_t oh = s.oh(), row = s.ow() * s.c;
  const int64_t step = max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, row * s.kh * s.kw));
  for_ranges(parallel, s.n * oh, step, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      convolve_row(conv, x + i / oh * s.h * s.w * s.c, (const int32_t*)packed, i % oh, y + i * row);
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
