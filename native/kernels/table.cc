#include "kernels/functions.h"
#include "kernels/simd.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

#define KERNEL_ENTRY(name) .name = name,
const Table kTable = {
    .isa = Isa::CAFFE2_KERNELS_ISA_ENUM, .vector_width = VL, CAFFE2_KERNEL_LIST(KERNEL_ENTRY)};
#undef KERNEL_ENTRY

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
