// Element-wise activations and Softmax, with their gradients.
#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

using UnaryKernel = void (*kernels::Table::*)(int64_t, const float*, float*,
                                              const kernels::Parallel&);

// keeps_zeros: f(0) = 0, so that missing channels of blocked tensors stay what they are.
template <UnaryKernel kernel, bool keeps_zeros>
class UnaryOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  bool takes_stored() const override { return keeps_zeros; }
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat, x.layout());
    (kernels().*kernel)(x.stored_size(), x.stored(), y.mutable_stored(), parallel());
  }
};

// Gradients that need the output only: dX = f(Y, dY).
using OutputGradientKernel = void (*kernels::Table::*)(int64_t, const float*, const float*, float*,
                                                       const kernels::Parallel&);

template <OutputGradientKernel kernel>
class OutputGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &y = input(0), &dy = input(1);
    require_same_shape(describe_input(0), y, describe_input(1), dy);
    Tensor& dx = output(0, y.shape(), DataType::kFloat);
    (kernels().*kernel)(y.size(), y.data<float>(), dy.data<float>(), dx.mutable_data<float>(),
                        parallel());
  }
};

class SoftmaxOperator : public Operator {
 public:
  explicit SoftmaxOperator(const OperatorContext& context)
      : Operator(context), axis_(args().int32("axis")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const int axis = canonical_axis(axis_, x.rank(), describe_input(0));
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    kernels().softmax(x.shape().product(0, axis), x.shape().product(axis, x.rank()),
                      x.data<float>(), y.mutable_data<float>(), parallel());
  }

 private:
  const int axis_;
};

class SoftmaxGradientOperator : public Operator {
 public:
  explicit SoftmaxGradientOperator(const OperatorContext& context)
      : Operator(context), axis_(args().int32("axis")) {}

 protected:
  void run() override {
    const Tensor &y = input(0), &dy = input(1);
    require_same_shape(describe_input(0), y, describe_input(1), dy);
    const int axis = canonical_axis(axis_, y.rank(), describe_input(0));
    Tensor& dx = output(0, y.shape(), DataType::kFloat);
    kernels().softmax_gradient(y.shape().product(0, axis), y.shape().product(axis, y.rank()),
                               y.data<float>(), dy.data<float>(), dx.mutable_data<float>(),
                               parallel());
  }

 private:
  const int axis_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Relu, UnaryOperator<&kernels::Table::relu, true>)
REGISTER_CPU_OPERATOR(ReluGradient, OutputGradientOperator<&kernels::Table::relu_gradient>)
REGISTER_CPU_OPERATOR(Sigmoid, UnaryOperator<&kernels::Table::sigmoid, false>)
REGISTER_CPU_OPERATOR(Tanh, UnaryOperator<&kernels::Table::tanh, true>)
REGISTER_CPU_OPERATOR(SigmoidGradient, OutputGradientOperator<&kernels::Table::sigmoid_gradient>)
REGISTER_CPU_OPERATOR(TanhGradient, OutputGradientOperator<&kernels::Table::tanh_gradient>)
REGISTER_CPU_OPERATOR(Softmax, SoftmaxOperator)
REGISTER_CPU_OPERATOR(SoftmaxGradient, SoftmaxGradientOperator)

}  // namespace caffe2
