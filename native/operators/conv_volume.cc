#include "operators/conv_volume.h"

#include <algorithm>

#include "operators/parallel.h"

namespace caffe2 {

namespace {

// Calls f(tap, row of the output frame, first sample of the row or -1 where it is all padding).
// A tap is one place of the window; `frame` an output frame.
template <class F>
void for_rows(const VolumeShape& s, int64_t frame, const F& f) {
  for (int64_t tap = 0; tap < s.taps(); tap++) {
    const int64_t kt = tap / (s.kernel[1] * s.kernel[2]);
    const int64_t kh = tap / s.kernel[2] % s.kernel[1];
    const int64_t t = frame * s.stride[0] - s.pad[0] + kt * s.dilation[0];
    for (int64_t oh = 0; oh < s.out[1]; oh++) {
      const int64_t h = oh * s.stride[1] - s.pad[1] + kh * s.dilation[1];
      const bool inside = t >= 0 && t < s.in[0] && h >= 0 && h < s.in[1];
      f(tap, oh, inside ? (t * s.in[1] + h) * s.in[2] : -1);
    }
  }
}

// The outputs [begin, end) of a row whose sample at this tap is data, and the sample of output 0.
struct RowPart {
  int64_t begin, end, first;
  RowPart(const VolumeShape& s, int64_t tap) {
    first = tap % s.kernel[2] * s.dilation[2] - s.pad[2];
    const int64_t step = s.stride[2];
    begin = first >= 0 ? 0 : (-first + step - 1) / step;
    end = std::clamp<int64_t>((s.in[2] - first + step - 1) / step, 0, s.out[2]);
    begin = std::min(begin, end);
  }
};

// columns[c][tap][output of the frame] of one example.
void gather(const VolumeShape& s, const float* x, int64_t frame, float* columns,
            const kernels::Parallel& parallel) {
  const int64_t per_channel = s.taps() * s.out_frame();
  for_ranges(parallel, s.c, rows_per_range(per_channel), [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; c++) {
      const float* from = x + c * s.in_size();
      float* channel = columns + c * per_channel;
      for_rows(s, frame, [&](int64_t tap, int64_t oh, int64_t row) {
        float* to = channel + tap * s.out_frame() + oh * s.out[2];
        if (row < 0) {
          std::fill_n(to, s.out[2], 0.f);
          return;
        }
        const RowPart part(s, tap);
        std::fill_n(to, part.begin, 0.f);
        const float* sample = from + row + part.first;
        for (int64_t o = part.begin; o < part.end; o++) to[o] = sample[o * s.stride[2]];
        std::fill(to + part.end, to + s.out[2], 0.f);
      });
    }
  });
}

// Adds columns to the samples they came from.
void scatter(const VolumeShape& s, const float* columns, int64_t frame, float* dx,
             const kernels::Parallel& parallel) {
  const int64_t per_channel = s.taps() * s.out_frame();
  for_ranges(parallel, s.c, rows_per_range(per_channel), [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; c++) {
      float* to = dx + c * s.in_size();
      const float* channel = columns + c * per_channel;
      for_rows(s, frame, [&](int64_t tap, int64_t oh, int64_t row) {
        if (row < 0) return;
        const float* from = channel + tap * s.out_frame() + oh * s.out[2];
        const RowPart part(s, tap);
        float* sample = to + row + part.first;
        for (int64_t o = part.begin; o < part.end; o++) sample[o * s.stride[2]] += from[o];
      });
    }
  });
}

// y[k of a group, frame] += weights * columns
kernels::Gemm forward_product(const VolumeShape& s) {
  kernels::Gemm g;
  g.m = s.k / s.group, g.n = s.out_frame(), g.k = s.column_rows() / s.group;
  g.lda = g.k, g.ldb = g.n, g.ldc = s.out_size();
  g.beta = 1;
  return g;
}

// dw += dy of the frame * columns^T
kernels::Gemm weights_product(const VolumeShape& s) {
  kernels::Gemm g;
  g.trans_b = true;
  g.m = s.k / s.group, g.n = s.column_rows() / s.group, g.k = s.out_frame();
  g.lda = s.out_size(), g.ldb = g.k, g.ldc = g.n;
  g.beta = 1;
  return g;
}

// columns = weights^T * dy of the frame
kernels::Gemm data_product(const VolumeShape& s) {
  kernels::Gemm g;
  g.trans_a = true;
  g.m = s.column_rows() / s.group, g.n = s.out_frame(), g.k = s.k / s.group;
  g.lda = g.m, g.ldb = s.out_size(), g.ldc = g.n;
  return g;
}

// Calls f(example, frame, group).
template <class Start, class F>
void for_products(const VolumeShape& s, const Start& start, const F& f) {
  for (int64_t n = 0; n < s.n; n++) {
    for (int64_t frame = 0; frame < s.out[0]; frame++) {
      start(n, frame);
      for (int64_t group = 0; group < s.group; group++) f(n, frame, group);
    }
  }
}

}  // namespace

int64_t volume_gemm_bytes(const kernels::Table& table, const VolumeShape& s, int threads) {
  return std::max({table.gemm_scratch_bytes(forward_product(s), threads),
                   table.gemm_scratch_bytes(weights_product(s), threads),
                   table.gemm_scratch_bytes(data_product(s), threads)});
}

void volume_forward(const kernels::Table& table, const VolumeShape& s, const float* x,
                    const float* weights, const float* bias, float* y, const VolumeScratch& scratch,
                    const kernels::Parallel& parallel) {
  const kernels::Gemm g = forward_product(s);
  for (int64_t i = 0; i < s.n * s.k; i++) {
    std::fill_n(y + i * s.out_size(), s.out_size(), bias ? bias[i % s.k] : 0.f);
  }
  for_products(
      s,
      [&](int64_t n, int64_t frame) {
        gather(s, x + n * s.c * s.in_size(), frame, scratch.columns, parallel);
      },
      [&](int64_t n, int64_t frame, int64_t group) {
        float* to = y + (n * s.k + group * g.m) * s.out_size() + frame * s.out_frame();
        table.gemm(g, weights + group * g.m * g.k, scratch.columns + group * g.k * g.n, to,
                   scratch.gemm, parallel);
      });
}

void volume_backward_weights(const kernels::Table& table, const VolumeShape& s, const float* x,
                             const float* dy, float* dw, const VolumeScratch& scratch,
                             const kernels::Parallel& parallel) {
  const kernels::Gemm g = weights_product(s);
  std::fill_n(dw, s.k * g.n, 0.f);
  for_products(
      s,
      [&](int64_t n, int64_t frame) {
        gather(s, x + n * s.c * s.in_size(), frame, scratch.columns, parallel);
      },
      [&](int64_t n, int64_t frame, int64_t group) {
        const float* from = dy + (n * s.k + group * g.m) * s.out_size() + frame * s.out_frame();
        table.gemm(g, from, scratch.columns + group * g.n * g.k, dw + group * g.m * g.n,
                   scratch.gemm, parallel);
      });
}

void volume_backward_data(const kernels::Table& table, const VolumeShape& s, const float* dy,
                          const float* weights, float* dx, const VolumeScratch& scratch,
                          const kernels::Parallel& parallel) {
  const kernels::Gemm g = data_product(s);
  std::fill_n(dx, s.n * s.c * s.in_size(), 0.f);
  for_products(
      s, [](int64_t, int64_t) {},
      [&](int64_t n, int64_t frame, int64_t group) {
        const float* from = dy + (n * s.k + group * g.k) * s.out_size() + frame * s.out_frame();
        table.gemm(g, weights + group * g.k * g.m, from, scratch.columns + group * g.m * g.n,
                   scratch.gemm, parallel);
        if (group == s.group - 1) {
          scatter(s, scratch.columns, frame, dx + n * s.c * s.in_size(), parallel);
        }
      });
}

}  // namespace caffe2
