// Convolution: the choice between algorithms, and what they share.
#include "kernels/conv.h"

#include "kernels/functions.h"
#include "kernels/reduce.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

bool conv_supports(const ConvShape& s, ConvPass pass, ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kIm2col || direct_supports(s, pass);
}

// Rules found by measuring. Direct convolution wastes the lanes that the channels of the result
// leave empty, and, by data, computes on the whole padded input; products of matrices have to
// gather or scatter their columns, but for 1x1 windows that costs next to nothing.
ConvAlgorithm conv_algorithm(const ConvShape& s, ConvPass pass) {
  const ConvSizes z(s);
  if (z.taps == 1 || !direct_supports(s, pass)) return ConvAlgorithm::kIm2col;
  const double used = (double)z.group_k / round_up(z.group_k, VL);
  bool direct = false;
  switch (pass) {
    case ConvPass::kForward:
      direct = used >= 0.95;
      break;
    case ConvPass::kBackwardData:
      direct = s.h * s.w * round_up(z.group_c, VL) <= 1.2 * z.pixels * z.group_c;
      break;
    case ConvPass::kBackwardWeights:
      direct = used >= 0.5;
      break;
  }
  return direct ? ConvAlgorithm::kDirect : ConvAlgorithm::kIm2col;
}

std::size_t conv_scratch_bytes(const ConvShape& s, ConvPass pass, ConvAlgorithm algorithm,
                               int threads) {
  const bool direct = algorithm == ConvAlgorithm::kDirect;
  switch (pass) {
    case ConvPass::kForward:
      return direct ? direct_forward_scratch(s, threads) : im2col_forward_scratch(s, threads);
    case ConvPass::kBackwardData:
      return direct ? direct_backward_data_scratch(s, threads)
                    : im2col_backward_data_scratch(s, threads);
    case ConvPass::kBackwardWeights:
      return direct ? direct_backward_weights_scratch(s, threads)
                    : im2col_backward_weights_scratch(s, threads);
  }
  return 0;
}

std::size_t conv_packed_bytes(const ConvShape& s, ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kDirect ? direct_packed_bytes(s) : im2col_packed_bytes(s);
}

void conv_pack(const ConvShape& s, ConvAlgorithm algorithm, const float* weights, float* packed,
               const Parallel& parallel) {
  (algorithm == ConvAlgorithm::kDirect ? direct_pack : im2col_pack)(s, weights, packed, parallel);
}

void conv_forward(const ConvShape& s, ConvAlgorithm algorithm, const float* x, const float* packed,
                  const float* bias, bool relu, float* y, void* scratch, const Parallel& parallel) {
  (algorithm == ConvAlgorithm::kDirect ? direct_forward : im2col_forward)(s, x, packed, bias, relu,
                                                                          y, scratch, parallel);
}

void conv_backward_data(const ConvShape& s, ConvAlgorithm algorithm, const float* dy,
                        const float* weights, float* dx, void* scratch, const Parallel& parallel) {
  (algorithm == ConvAlgorithm::kDirect ? direct_backward_data : im2col_backward_data)(
      s, dy, weights, dx, scratch, parallel);
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
