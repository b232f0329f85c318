// Operators that only put elements elsewhere, of a tensor or of an Int8 tensor.
#pragma once
#include "core/operator.h"

namespace caffe2 {

class MovingOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  virtual const Tensor& source() { return input(0); }
  virtual Tensor& target(const Shape& shape, DataType type) { return output(0, shape, type); }
};

}  // namespace caffe2
