// Accurate sums.
#pragma once

#include "kernels/blocks.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

// Sum of x: short stretches in float, added up in double.
double sum_block(int64_t n, const float* x);

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
