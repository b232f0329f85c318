// Which algorithm can do a convolution, and which one does it: fixed rules, found by measuring.
#include "kernels/conv_direct.h"
#include "kernels/functions.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// Data gradients by a forward convolution of the turned filters.
FORCE_INLINE bool can_turn(const ConvShape& s) {
  const ConvSizes z(s);
  return s.stride_h == 1 && s.stride_w == 1 && max_of(s.pad_t, s.pad_b) < z.reach_h &&
         max_of(s.pad_l, s.pad_r) < z.reach_w;
}

FORCE_INLINE bool can_use_direct(const ConvShape& s, ConvPass pass) {
  const ConvSizes z(s);
  const bool groups = s.group == 1 || (z.group_c % VL == 0 && z.group_k % VL == 0);
  switch (pass) {
    case ConvPass::kForward:
      return groups;
    case ConvPass::kBackwardData:
      return groups && can_turn(s);
    case ConvPass::kBackwardWeights:
      return s.group == 1;
  }
  return false;
}

FORCE_INLINE bool can_use_depthwise(const ConvShape& s, ConvPass pass) {
  return pass == ConvPass::kForward && s.group > 1 && s.group == s.c && s.group == s.k;
}

FORCE_INLINE bool can_use_winograd(const ConvShape& s, ConvPass pass, bool large_tiles) {
  const bool sizes = s.kh == 3 || (s.kh == 5 && !large_tiles);
  const bool window = sizes && s.kw == s.kh && s.stride_h == 1 && s.stride_w == 1 &&
                      s.dilation_h == 1 && s.dilation_w == 1 && s.group == 1;
  return window && (pass == ConvPass::kForward || (pass == ConvPass::kBackwardData && can_turn(s)));
}

// Larger tiles save more multiplications, but have 2.25 times as many filters to read, which counts
// where these serve few pixels.
FORCE_INLINE ConvAlgorithm winograd_for(const ConvShape& s, int64_t pixels) {
  return s.kh == 5 || pixels <= 400 ? ConvAlgorithm::kWinograd2 : ConvAlgorithm::kWinograd4;
}

// Whether the transformations are cheap beside the products that they save. Of 5x5 windows only
// few pixels are done so: training, where rounding adds up over many steps, has large batches.
FORCE_INLINE bool winograd_pays(const ConvShape& s, int64_t h, int64_t w) {
  return min_of(s.c, s.k) >= 16 && min_of(h, w) >= 4 && (s.kh == 3 || s.n * h * w <= 1024);
}

}  // namespace

bool conv_supports(const ConvShape& s, ConvPass pass, ConvAlgorithm algorithm) {
  switch (algorithm) {
    case ConvAlgorithm::kDirect:
      return can_use_direct(s, pass);
    case ConvAlgorithm::kIm2col:
      return true;
    case ConvAlgorithm::kDepthwise:
      return can_use_depthwise(s, pass);
    case ConvAlgorithm::kWinograd2:
      return can_use_winograd(s, pass, false);
    case ConvAlgorithm::kWinograd4:
      return can_use_winograd(s, pass, true);
  }
  return false;
}

// Direct convolution wastes the lanes that the channels of the result leave empty, and, by data,
// computes on the whole padded input; products of matrices have to gather or scatter their columns,
// but for 1x1 windows in plain layout that costs next to nothing.
ConvAlgorithm conv_algorithm(const ConvShape& s, ConvPass pass, Layout layout) {
  const ConvSizes z(s);
  if (can_use_depthwise(s, pass)) return ConvAlgorithm::kDepthwise;
  if (can_use_winograd(s, pass, false)) {
    const bool forward = pass == ConvPass::kForward;
    const int64_t h = forward ? z.oh : s.h, w = forward ? z.ow : s.w;
    if (winograd_pays(s, h, w)) return winograd_for(s, s.n * h * w);
  }
  if (!can_use_direct(s, pass)) return ConvAlgorithm::kIm2col;
  const double used = (double)z.group_k / round_up(z.group_k, VL);
  bool direct = false;
  switch (pass) {
    case ConvPass::kForward:
      direct = layout == Layout::kBlocked || (z.taps > 1 && used >= 0.95);
      break;
    case ConvPass::kBackwardData:
      direct = z.taps > 1 && s.h * s.w * round_up(z.group_c, VL) <= 1.2 * z.pixels * z.group_c;
      break;
    case ConvPass::kBackwardWeights:
      direct = z.taps > 1 && used >= 0.5;
      break;
  }
  return direct ? ConvAlgorithm::kDirect : ConvAlgorithm::kIm2col;
}

Layout conv_x_layout(const ConvShape& s, ConvAlgorithm algorithm) {
  const bool plain = algorithm == ConvAlgorithm::kIm2col ||
                     (algorithm == ConvAlgorithm::kDirect && DirectLayout(s).plain);
  return plain ? Layout::kPlain : Layout::kBlocked;
}

Layout conv_y_layout(const ConvShape&, ConvAlgorithm algorithm) {
  return algorithm == ConvAlgorithm::kIm2col ? Layout::kPlain : Layout::kBlocked;
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
