// Products of all pairs of vectors, of which some are taken.
#include <cstdint>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class PairProductsOperator : public Operator {
 public:
  explicit PairProductsOperator(const OperatorContext& context) : Operator(context) {
    CAFFE2_ENFORCE(context.def.input.size() > 1, "it has no vectors, only indices");
  }

 protected:
  void run() override {
    const Tensor &indices = input(0), &first = input(1);
    const int64_t vectors = inputs() - 1;
    CAFFE2_ENFORCE(indices.rank() == 1, describe_input(0), " has shape ", indices.shape().text(),
                   "; one dimension is needed");
    CAFFE2_ENFORCE(first.rank() == 2, describe_input(1), " has shape ", first.shape().text(),
                   "; (rows, columns) is needed");
    std::vector<const float*> data;
    for (int i = 1; i < inputs(); i++) {
      require_same_shape(describe_input(i), input(i), describe_input(1), first);
      data.push_back(input(i).data<float>());
    }
    const auto* pairs = indices.data<int32_t>();
    const int64_t rows = first.dim(0), width = first.dim(1), taken = indices.size();
    for (int64_t k = 0; k < taken; k++) {
      CAFFE2_ENFORCE(pairs[k] >= 0 && pairs[k] < vectors * vectors, describe_input(0), " holds ",
                     pairs[k], " at position ", k, "; there are ", vectors * vectors, " pairs");
    }
    float* y = output(0, {rows, taken}, DataType::kFloat).mutable_data<float>();
    for_ranges(parallel(), rows, rows_per_range(width * taken), [&](int64_t row, int64_t end) {
      const kernels::Parallel alone;
      for (; row < end; row++) {
        for (int64_t k = 0; k < taken; k++) {
          const float* a = data[pairs[k] / vectors] + row * width;
          const float* b = data[pairs[k] % vectors] + row * width;
          y[row * taken + k] = kernels().dot(width, a, b, alone);
        }
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(ConcatBatchMatMulBatchGatherOp, PairProductsOperator)

}  // namespace caffe2
