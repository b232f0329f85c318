// Products of batches of matrices.
#include <algorithm>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"

namespace caffe2 {
namespace {

class BatchMatMulOperator : public Operator {
 public:
  explicit BatchMatMulOperator(const OperatorContext& context)
      : Operator(context),
        trans_a_(args().boolean("trans_a")),
        trans_b_(args().boolean("trans_b")),
        broadcast_(args().boolean("broadcast")) {}

 protected:
  void run() override {
    const Tensor &a = input(0), &b = input(1);
    const bool row = a.rank() == 1, column = b.rank() == 1;
    const kernels::Gemm g = product(a, b);
    const Shape batch = batches(a.shape(), b.shape(), row || column);
    Shape shape = batch;
    if (!row) shape.append(g.m);
    if (!column) shape.append(g.n);
    if (row && column) shape.append(1);
    Tensor& y = output(0, shape, DataType::kFloat);
    void* buffer = scratch(kernels().gemm_scratch_bytes(g, parallel().threads));
    const float *left = a.data<float>(), *right = b.data<float>();
    float* out = y.mutable_data<float>();
    for (int64_t i = 0; i < batch.size(); i++) {
      const int64_t from_a = matrix_of(i, batch, a.shape()),
                    from_b = matrix_of(i, batch, b.shape());
      kernels().gemm(g, left + from_a * g.m * g.k, right + from_b * g.k * g.n, out + i * g.m * g.n,
                     buffer, parallel());
    }
  }

 private:
  // A vector is a row as A and a column as B.
  kernels::Gemm product(const Tensor& a, const Tensor& b) const {
    for (int i : {0, 1}) {
      CAFFE2_ENFORCE(input(i).rank() >= 1, describe_input(i), " is a scalar; a matrix is needed");
    }
    kernels::Gemm g;
    g.trans_a = trans_a_ && a.rank() > 1;
    g.trans_b = trans_b_ && b.rank() > 1;
    g.m = a.rank() > 1 ? a.dim(a.rank() - 2) : 1, g.k = a.dim(a.rank() - 1);
    int64_t k = b.rank() > 1 ? b.dim(b.rank() - 2) : b.dim(0);
    g.n = b.rank() > 1 ? b.dim(b.rank() - 1) : 1;
    g.lda = g.k, g.ldb = g.n;
    if (g.trans_a) std::swap(g.m, g.k);
    if (g.trans_b) std::swap(k, g.n);
    g.ldc = g.n;
    CAFFE2_ENFORCE(g.k == k, describe_input(0), " has shape ", a.shape().text(), ", ", g.k,
                   " columns after trans_a, but ", describe_input(1), " has shape ",
                   b.shape().text(), ", ", k, " rows after trans_b");
    return g;
  }

  static int batch_rank(const Shape& shape) { return std::max(0, shape.rank() - 2); }

  // The dimension of a batch, counted from the back; 1 where there is none.
  static int64_t batch_dim(const Shape& shape, int from_back) {
    const int axis = batch_rank(shape) - 1 - from_back;
    return axis >= 0 ? shape[axis] : 1;
  }

  Shape batches(const Shape& a, const Shape& b, bool vector) const {
    const int rank = std::max(batch_rank(a), batch_rank(b));
    const bool any = broadcast_ || vector;
    CAFFE2_ENFORCE(any || a.rank() == b.rank(), describe_input(0), " has shape ", a.text(), " and ",
                   describe_input(1), " has ", b.text(),
                   "; without broadcast=1 their batches must be the same");
    Shape found;
    for (int d = rank - 1; d >= 0; d--) {
      const int64_t first = batch_dim(a, d), second = batch_dim(b, d);
      CAFFE2_ENFORCE(first == second || (any && (first == 1 || second == 1)), describe_input(0),
                     " has shape ", a.text(), " and ", describe_input(1), " has ", b.text(),
                     "; their batches do not go together");
      found.append(first == 1 ? second : first);
    }
    return found;
  }

  // Which matrix of an operand belongs to matrix i of the product.
  static int64_t matrix_of(int64_t i, const Shape& batch, const Shape& operand) {
    int64_t index = 0, stride = 1;
    for (int d = 0; d < batch.rank(); d++) {
      const int64_t all = batch[batch.rank() - 1 - d], own = batch_dim(operand, d);
      if (own > 1) index += i % all * stride;
      i /= all;
      stride *= own;
    }
    return index;
  }

  const bool trans_a_, trans_b_, broadcast_;
};

}  // namespace

REGISTER_CPU_OPERATOR(BatchMatMul, BatchMatMulOperator)

}  // namespace caffe2
