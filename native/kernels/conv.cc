// Convolution: one entry for all algorithms, and what they share.
#include "kernels/conv.h"

#include "kernels/functions.h"
#include "kernels/reduce.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

int64_t conv_scratch_bytes(const ConvShape& s, ConvPass pass, ConvAlgorithm algorithm,
                           int threads) {
  const bool forward = pass == ConvPass::kForward, by_data = pass == ConvPass::kBackwardData;
  switch (algorithm) {
    case ConvAlgorithm::kDirect:
      return forward   ? direct_forward_scratch(s, threads)
             : by_data ? direct_backward_data_scratch(s, threads)
                       : direct_backward_weights_scratch(s, threads);
    case ConvAlgorithm::kIm2col:
      return forward   ? im2col_forward_scratch(s, threads)
             : by_data ? im2col_backward_data_scratch(s, threads)
                       : im2col_backward_weights_scratch(s, threads);
    case ConvAlgorithm::kDepthwise:
      return depthwise_forward_scratch(s, threads);
    case ConvAlgorithm::kWinograd2:
    case ConvAlgorithm::kWinograd4:
      return (forward ? winograd_forward_scratch : winograd_backward_data_scratch)(
          s, winograd_size(algorithm), threads);
  }
  return 0;
}

int64_t conv_packed_bytes(const ConvShape& s, ConvAlgorithm algorithm) {
  switch (algorithm) {
    case ConvAlgorithm::kDirect:
      return direct_packed_bytes(s);
    case ConvAlgorithm::kIm2col:
      return im2col_packed_bytes(s);
    case ConvAlgorithm::kDepthwise:
      return depthwise_packed_bytes(s);
    case ConvAlgorithm::kWinograd2:
    case ConvAlgorithm::kWinograd4:
      return winograd_packed_bytes(s, winograd_size(algorithm));
  }
  return 0;
}

void conv_pack(const ConvShape& s, ConvAlgorithm algorithm, const float* weights, float* packed,
               const Parallel& parallel) {
  switch (algorithm) {
    case ConvAlgorithm::kDirect:
      return direct_pack(s, weights, packed, parallel);
    case ConvAlgorithm::kIm2col:
      return im2col_pack(s, weights, packed, parallel);
    case ConvAlgorithm::kDepthwise:
      return depthwise_pack(s, weights, packed, parallel);
    case ConvAlgorithm::kWinograd2:
    case ConvAlgorithm::kWinograd4:
      return winograd_pack(s, winograd_size(algorithm), false, weights, packed, parallel);
  }
}

void conv_forward(const ConvForward& f, const float* x, const float* packed, float* y,
                  void* scratch, const Parallel& parallel) {
  switch (f.algorithm) {
    case ConvAlgorithm::kDirect:
      return direct_forward(f, x, packed, y, scratch, parallel);
    case ConvAlgorithm::kIm2col:
      return im2col_forward(f, x, packed, y, scratch, parallel);
    case ConvAlgorithm::kDepthwise:
      return depthwise_forward(f, x, packed, y, scratch, parallel);
    case ConvAlgorithm::kWinograd2:
    case ConvAlgorithm::kWinograd4:
      return winograd_forward(f, winograd_size(f.algorithm), x, packed, y, scratch, parallel);
  }
}

void conv_backward_data(const ConvShape& s, ConvAlgorithm algorithm, const float* dy,
                        const float* weights, float* dx, void* scratch, const Parallel& parallel) {
  switch (algorithm) {
    case ConvAlgorithm::kDirect:
      return direct_backward_data(s, dy, weights, dx, scratch, parallel);
    case ConvAlgorithm::kWinograd2:
    case ConvAlgorithm::kWinograd4:
      return winograd_backward_data(s, winograd_size(algorithm), dy, weights, dx, scratch,
                                    parallel);
    case ConvAlgorithm::kIm2col:
    case ConvAlgorithm::kDepthwise:
      break;
  }
  im2col_backward_data(s, dy, weights, dx, scratch, parallel);
}

void conv_backward_weights(const ConvShape& s, ConvAlgorithm algorithm, const float* x,
                           const float* dy, float* dw, void* scratch, const Parallel& parallel) {
  (algorithm == ConvAlgorithm::kDirect ? direct_backward_weights : im2col_backward_weights)(
      s, x, dy, dw, scratch, parallel);
}

void conv_backward_bias(const ConvShape& s, const float* dy, float* db, const Parallel& parallel) {
  const int64_t pixels = s.oh() * s.ow();
  const int64_t step = max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, s.n * pixels));
  for_ranges(parallel, s.k, step, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      double total = 0;
      for (int64_t n = 0; n < s.n; n++) total += sum_block(pixels, dy + (n * s.k + k) * pixels);
      db[k] = (float)total;
    }
  });
}

ConvShape turned(const ConvShape& s) {
  const ConvSizes z(s);
  ConvShape t = s;
  t.c = s.k;
  t.k = s.c;
  t.h = z.oh;
  t.w = z.ow;
  t.pad_t = z.reach_h - 1 - s.pad_t;
  t.pad_b = z.reach_h - 1 - s.pad_b;
  t.pad_l = z.reach_w - 1 - s.pad_l;
  t.pad_r = z.reach_w - 1 - s.pad_r;
  return t;
}

void add_slices(int64_t count, int64_t size, const float* slices, float* total,
                const Parallel& parallel) {
  for_ranges(parallel, size, ELEMENTS / count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      float sum = slices[i];
      for (int64_t j = 1; j < count; j++) sum += slices[j * size + i];
      total[i] = sum;
    }
  });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
