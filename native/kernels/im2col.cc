#include "kernels/im2col.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

void pad_image(const ConvShape& s, const InputRows& in, int64_t channels, const float* x,
               float* padded) {
  for (int64_t c = 0; c < channels; c++, x += s.h * s.w) {
    for (int64_t i = 0; i < in.rows; i++, padded += in.width) {
      const int64_t y = in.top + i;
      if (y < 0 || y >= s.h) {
        __builtin_memset(padded, 0, in.width * sizeof(float));
        continue;
      }
      for (int64_t j = 0; j < s.pad_l; j++) padded[j] = 0;
      copy(x + y * s.w, s.w, padded + s.pad_l);
      for (int64_t j = s.pad_l + s.w; j < in.width; j++) padded[j] = 0;
    }
  }
}

int64_t padded_size(const ConvShape& s, int64_t channels, int64_t pixels) {
  const ConvSizes sizes(s);
  if (!sizes.padded) return 0;
  const InputRows in(s, 0, min_of(sizes.oh, (pixels - 1) / sizes.ow + 2));
  return channels * in.rows * in.width;
}

Window make_window(const ConvShape& s, int64_t channels, const float* x, int64_t begin, int64_t end,
                   float* padded) {
  const ConvSizes sizes(s);
  const int64_t first = begin / sizes.ow, last = (end - 1) / sizes.ow;
  const InputRows in(s, first, last - first + 1);
  if (!sizes.padded) return {x + in.top * s.w, (ptrdiff_t)(s.h * s.w), (ptrdiff_t)s.w, first};
  pad_image(s, in, channels, x, padded);
  return {padded, (ptrdiff_t)(in.rows * in.width), (ptrdiff_t)in.width, first};
}

void term_offsets(const ConvShape& s, ptrdiff_t plane, ptrdiff_t width, int64_t first,
                  int64_t count, ptrdiff_t* offsets) {
  const int64_t taps = s.kh * s.kw;
  int64_t c = first / taps, r = first % taps / s.kw, q = first % s.kw;
  for (int64_t i = 0; i < count; i++) {
    offsets[i] = c * plane + r * s.dilation_h * width + q * s.dilation_w;
    if (++q < s.kw) continue;
    q = 0;
    if (++r < s.kh) continue;
    r = 0;
    c++;
  }
}

// One stretch of neighbouring pixels, for all terms. `room`: floats left in the rows of out.
static void gather_stretch(const float* x, const ptrdiff_t* offsets, int64_t terms, int64_t stride,
                           int64_t length, int64_t room, float* out, int64_t row) {
  if (stride != 1) {
    for (int64_t i = 0; i < terms; i++) copy_strided(x + offsets[i], stride, length, out + i * row);
    return;
  }
  const int64_t whole = length / VL * VL;
  const int rest = (int)(length - whole);
  const bool may_spill = whole + VL <= room;  // the next stretch overwrites it
  for (int64_t i = 0; i < terms; i++) {
    const float* from = x + offsets[i];
    float* to = out + i * row;
    for (int64_t j = 0; j < whole; j += VL) store(to + j, load(from + j));
    if (rest == 0) continue;
    const vf v = load_partial(from + whole, rest);
    if (may_spill) {
      store(to + whole, v);
    } else {
      store_partial(to + whole, v, rest);
    }
  }
}

void gather(const ConvShape& s, const Window& window, const ptrdiff_t* offsets, int64_t terms,
            int64_t begin, int64_t count, float* out, int64_t row, int64_t room) {
  const int64_t ow = s.ow();
  const bool one_stretch = s.stride_w == 1 && s.stride_h == 1 && window.width == ow;
  constexpr int64_t BATCH = 64;  // terms whose rows stay in the first cache
  for (int64_t i = 0; i < terms; i += BATCH) {
    int64_t y = begin / ow, x = begin % ow;
    for (int64_t j = 0; j < count;) {
      const int64_t length = one_stretch ? count : min_of(count - j, ow - x);
      const float* corner =
          window.x + (y - window.first_row) * s.stride_h * window.width + x * s.stride_w;
      gather_stretch(corner, offsets + i, min_of(BATCH, terms - i), s.stride_w, length, room - j,
                     out + i * row + j, row);
      j += length;
      x = 0;
      y++;
    }
  }
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
