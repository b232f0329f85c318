// Int8 tensors element by element, and their pooling.
#include "kernels/int8_simd.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

void int8_requantize(const Requantization& to, int64_t n, const int32_t* sums, uint8_t* y,
                     const Parallel& parallel) {
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    const int64_t whole = begin + (end - begin) / VL * VL;
    requantize_block(to, 1, whole - begin, sums + begin, 0, nullptr, nullptr, y + begin, 0);
    int32_t rest[VL] = {};
    for (int64_t i = whole; i < end; i++) rest[i - whole] = sums[i];
    requantize_block(to, 1, end - whole, rest, 0, nullptr, nullptr, y + whole, 0);
  });
}

void int8_quantize(float inverse_scale, float offset, int32_t zero_point, int64_t n, const float* x,
                   uint8_t* y, const Parallel& parallel) {
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    for_vectors(begin, end, [&](int64_t i, int count) {
      const vf v = count == VL ? load(x + i) : load_partial(x + i, count);
      store_some(y + i, clamp(round_even(v * inverse_scale, offset) + zero_point, 0, 255), count);
    });
  });
}

void int8_dequantize(float scale, int32_t zero_point, int64_t n, const uint8_t* x, float* y,
                     const Parallel& parallel) {
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    for_vectors(begin, end, [&](int64_t i, int count) {
      const vf v = to_float(load_some(x + i, count) - zero_point) * scale;
      count == VL ? store(y + i, v) : store_partial(y + i, v, count);
    });
  });
}

// Products of 22 bits and bytes, two of which fit into 32 bits together.
static bool is_narrow(const Int8Sum& s) {
  for (int i = 0; i < s.count; i++) {
    if (s.multipliers[i] > 1 << 22) return false;
  }
  return s.count <= 2 && s.shift <= 31;
}

void int8_sum(const Int8Sum& s, int64_t n, const uint8_t* const* inputs, uint8_t* y,
              const Parallel& parallel) {
  const bool narrow = is_narrow(s);
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    for_vectors(begin, end, [&](int64_t i, int count) {
      if (narrow) {
        vi sum = splat_int((int32_t)s.offset);
        for (int k = 0; k < s.count; k++) sum += load_some(inputs[k] + i, count) * s.multipliers[k];
        sum = clamp(round_shift(sum, s.shift), s.low - s.zero_point, 255 - s.zero_point);
        return store_some(y + i, sum + s.zero_point, count);
      }
      for (int64_t j = i; j < i + count; j++) {
        int64_t sum = s.offset;
        for (int k = 0; k < s.count; k++) sum += (int64_t)inputs[k][j] * s.multipliers[k];
        sum = round_shift(sum, s.shift) + s.zero_point;
        y[j] = (uint8_t)max_of<int64_t>(s.low, min_of<int64_t>(255, sum));
      }
    });
  });
}

namespace {

// Windows are pooled by pieces of the channels, so that one large window is work for many threads.
constexpr int64_t PIECE = 256;

// Calls piece(place, channel, channels, for_window) for all places and pieces of the channels,
// where for_window(f) calls f(values of an element of the window that lies inside).
template <class Piece>
void pool(const Int8Pool& p, const uint8_t* x, const Parallel& parallel, const Piece& piece) {
  const PoolShape& s = p.shape;
  const int64_t places = s.oh * s.ow, pieces = ceil_div(p.channels, PIECE);
  const int64_t step = max_of<int64_t>(1, ELEMENTS / (s.kh * s.kw * PIECE));
  for_ranges(parallel, s.planes * places * pieces, step, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      const int64_t place = b / pieces, c = b % pieces * PIECE;
      const int64_t top = place / s.ow % s.oh * s.stride_h - s.pad_t;
      const int64_t left = place % s.ow * s.stride_w - s.pad_l;
      const Range rows(0, s.kh, s.dilation_h, top, s.h);
      const Range columns(0, s.kw, s.dilation_w, left, s.w);
      const uint8_t* image = x + place / places * s.h * s.w * p.channels + c;
      piece(place, c, min_of(PIECE, p.channels - c), [&](const auto& f) {
        for (int64_t r = rows.begin; r < rows.end; r++) {
          for (int64_t q = columns.begin; q < columns.end; q++) {
            const int64_t i = top + r * s.dilation_h, j = left + q * s.dilation_w;
            f(image + (i * s.w + j) * p.channels);
          }
        }
      });
    }
  });
}

}  // namespace

void int8_average_pool(const Int8Pool& p, const uint8_t* x, uint8_t* y, const Parallel& parallel) {
  pool(p, x, parallel, [&](int64_t place, int64_t c, int64_t channels, const auto& for_window) {
    int32_t sums[PIECE];
    for (int64_t i = 0; i < channels; i++) sums[i] = 0;
    for_window([&](const uint8_t* from) {
      for (int64_t i = 0; i < channels; i++) sums[i] += from[i] - p.x_zero;
    });
    uint8_t* to = y + place * p.channels + c;
    for (int64_t i = 0; i < channels; i++) {
      const int64_t mean = round_shift(sums[i] * p.multiplier, p.shift) + p.zero_point;
      to[i] = (uint8_t)max_of<int64_t>(p.low, min_of<int64_t>(255, mean));
    }
  });
}

void int8_max_pool(const Int8Pool& p, const uint8_t* x, uint8_t* y, const Parallel& parallel) {
  pool(p, x, parallel, [&](int64_t place, int64_t c, int64_t channels, const auto& for_window) {
    uint8_t largest[PIECE];
    for (int64_t i = 0; i < channels; i++) largest[i] = (uint8_t)p.low;
    for_window([&](const uint8_t* from) {
      for (int64_t i = 0; i < channels; i++) largest[i] = max_of(largest[i], from[i]);
    });
    uint8_t* to = y + place * p.channels + c;
    for (int64_t i = 0; i < channels; i++) to[i] = largest[i];
  });
}

const Int8Table kInt8Table = {.conv_packed_bytes = int8_conv_packed_bytes,
                              .conv_pack = int8_conv_pack,
                              .conv_scratch_bytes = int8_conv_scratch_bytes,
                              .conv = int8_conv,
                              .requantize = int8_requantize,
                              .average_pool = int8_average_pool,
                              .max_pool = int8_max_pool,
                              .sum = int8_sum,
                              .quantize = int8_quantize,
                              .dequantize = int8_dequantize};

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
