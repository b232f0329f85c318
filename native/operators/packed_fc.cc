// Weights of FbFCPacked: rounded to numbers of 16 bits, in the order of FC.
#include "core/operator.h"
#include "core/registry.h"
#include "operators/half.h"
#include "operators/view.h"

namespace caffe2 {
namespace {

template <bool transposed>
class FbGemmPackOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; two dimensions are needed");
    const int64_t rows = x.dim(0), columns = x.dim(1);
    auto* rounded = scratch<float>(x.size());
    const float* in = x.data<float>();
    for (int64_t i = 0; i < x.size(); i++) rounded[i] = half_to_float(float_to_half(in[i]));
    Shape shape{rows, columns};
    View view;
    view.add(rows, columns, transposed ? 1 : columns);
    view.add(columns, 1, transposed ? rows : 1);
    if (transposed) shape = {columns, rows};
    float* out = output(0, shape, DataType::kFloat).template mutable_data<float>();
    copy_view(DataType::kFloat, view, rounded, out, parallel());
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(FbGemmPack, FbGemmPackOperator<false>)
REGISTER_CPU_OPERATOR(FbGemmPackTranspose, FbGemmPackOperator<true>)

}  // namespace caffe2
