// Checks of shapes that many operators share.
#pragma once
#include <string>

#include "core/tensor.h"

namespace caffe2 {

// Negative axes count from the end; the result lies in [0, rank).
inline int canonical_axis(int axis, int rank, const Operand& what) {
  CAFFE2_ENFORCE(axis >= -rank && axis < rank, "axis ", axis, " is outside of ", what,
                 ", which has ", rank, " dimensions");
  return axis < 0 ? axis + rank : axis;
}

inline void require_same_shape(const Operand& what_a, const Tensor& a, const Operand& what_b,
                               const Tensor& b) {
  CAFFE2_ENFORCE(a.shape() == b.shape(), what_a, " has shape ", a.shape().text(), " but ", what_b,
                 " has ", b.shape().text(), "; they must be the same");
}

inline void require_same_size(const Operand& what_a, const Tensor& a, const Operand& what_b,
                              const Tensor& b) {
  CAFFE2_ENFORCE(a.size() == b.size(), what_a, " has shape ", a.shape().text(), " but ", what_b,
                 " has ", b.shape().text(), "; they must hold equally many values");
}

inline void require_same_type(const Operand& what_a, const Tensor& a, const Operand& what_b,
                              const Tensor& b) {
  CAFFE2_ENFORCE(a.type() == b.type(), what_a, " has type ", type_name(a.type()), " but ", what_b,
                 " has ", type_name(b.type()), "; they must be the same");
}

inline float scalar_value(const Tensor& tensor, const Operand& what) {
  CAFFE2_ENFORCE(tensor.size() == 1, what, " has shape ", tensor.shape().text(),
                 "; one value is needed");
  return tensor.data<float>()[0];
}

}  // namespace caffe2
