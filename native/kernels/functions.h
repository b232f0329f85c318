// Declares everything in Table as a function of one instruction set. See kernels.h for what they
// do.
#pragma once

#include <type_traits>

#include "kernels/kernels.h"

#define CAFFE2_KERNEL_LIST(KERNEL)       \
  KERNEL(gemm_scratch_bytes)             \
  KERNEL(gemm)                           \
  KERNEL(gemm_packed_bytes)              \
  KERNEL(gemm_pack)                      \
  KERNEL(gemm_packed)                    \
  KERNEL(conv_supports)                  \
  KERNEL(conv_algorithm)                 \
  KERNEL(conv_x_layout)                  \
  KERNEL(conv_y_layout)                  \
  KERNEL(conv_scratch_bytes)             \
  KERNEL(conv_packed_bytes)              \
  KERNEL(conv_pack)                      \
  KERNEL(conv_forward)                   \
  KERNEL(expand_depthwise_scratch_bytes) \
  KERNEL(expand_depthwise)               \
  KERNEL(conv_backward_data)             \
  KERNEL(conv_backward_weights)          \
  KERNEL(conv_backward_bias)             \
  KERNEL(blocked_bytes)                  \
  KERNEL(to_blocked)                     \
  KERNEL(from_blocked)                   \
  KERNEL(max_pool)                       \
  KERNEL(max_pool_gradient)              \
  KERNEL(average_pool)                   \
  KERNEL(average_pool_gradient)          \
  KERNEL(relu)                           \
  KERNEL(relu_gradient)                  \
  KERNEL(exp)                            \
  KERNEL(log)                            \
  KERNEL(tanh)                           \
  KERNEL(sigmoid)                        \
  KERNEL(tanh_gradient)                  \
  KERNEL(sigmoid_gradient)               \
  KERNEL(unary)                          \
  KERNEL(unary_gradient)                 \
  KERNEL(fill)                           \
  KERNEL(scale)                          \
  KERNEL(binary_supports)                \
  KERNEL(binary)                         \
  KERNEL(axpby)                          \
  KERNEL(weighted_sum)                   \
  KERNEL(add_row)                        \
  KERNEL(momentum_sgd)                   \
  KERNEL(update)                         \
  KERNEL(cast)                           \
  KERNEL(lstm_unit)                      \
  KERNEL(lstm_unit_gradient)             \
  KERNEL(gru_unit)                       \
  KERNEL(gru_unit_gradient)              \
  KERNEL(softmax)                        \
  KERNEL(log_softmax)                    \
  KERNEL(softmax_gradient)               \
  KERNEL(label_cross_entropy)            \
  KERNEL(label_cross_entropy_gradient)   \
  KERNEL(softmax_loss)                   \
  KERNEL(softmax_loss_gradient)          \
  KERNEL(sum)                            \
  KERNEL(dot)                            \
  KERNEL(reduce)                         \
  KERNEL(argmax)                         \
  KERNEL(first_outside)                  \
  KERNEL(channel_sums)                   \
  KERNEL(channel_products)               \
  KERNEL(channel_affine)                 \
  KERNEL(channel_combine)                \
  KERNEL(uniform)                        \
  KERNEL(normal)                         \
  KERNEL(uniform_int)

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

#define DECLARE_KERNEL(name) std::remove_pointer_t<decltype(Table::name)> name;
CAFFE2_KERNEL_LIST(DECLARE_KERNEL)
#undef DECLARE_KERNEL

extern const Table kTable;

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
