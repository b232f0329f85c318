// Adagrad fused with the gradient of a sum over segments of rows.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/registry.h"
#include "operators/sparse_rows.h"

namespace caffe2 {
namespace {

enum class Sum { kSum, kMean, kWeighted };

// Inputs param, moment, (weighted: a weight for each index,) indices, grad, lr, lengths. For each
// index one step of Adagrad for its row, by the gradient of its segment.
template <bool row_wise, Sum sum, bool approximate>
class FusedAdagradOperator : public SparseRowsOperator {
 public:
  explicit FusedAdagradOperator(const OperatorContext& context)
      : SparseRowsOperator(context),
        epsilon_(args().real("epsilon")),
        weight_decay_(args().real("weight_decay")) {}

 protected:
  void run() override {
    const SparseRows rows = rows_at(0, kIndices);
    check(rows);
    const float lr = scalar_value(input(kRate), describe_input(kRate));
    const auto* lengths = input(kLengths).template data<int32_t>();
    const auto* gradient = input(kGradient).template data<float>();
    const float* weights = kWeighted ? input(2).template data<float>() : nullptr;
    const int64_t n = rows.width, segments = input(kLengths).size();
    auto* step = scratch<float>(n);  // the gradient of one row
    float* d_weights = nullptr;
    if (kWeighted) {
      d_weights = output(2, input(2).shape(), DataType::kFloat).template mutable_data<float>();
      // What the weights get depends on the rows as they were before any step.
      if (!approximate) weight_gradients(rows, input(0).template data<float>(), d_weights);
    }
    float *param = changed(0, 0), *moment = changed(1, 1);
    const kernels::Parallel alone;
    int64_t k = 0;
    for (int64_t s = 0; s < segments; s++) {
      const float* g = gradient + s * n;
      for (const int64_t end = k + lengths[s]; k < end; k++) {
        const int64_t row = rows.index[k];
        float* p = param + row * n;
        if (kWeighted && approximate) d_weights[k] = kernels().dot(n, p, g, alone);
        const float factor = sum == Sum::kMean ? 1 / static_cast<float>(lengths[s])
                             : kWeighted       ? weights[k]
                                               : 1;
        for (int64_t i = 0; i < n; i++) step[i] = factor * g[i] + weight_decay_ * p[i];
        update(n, lr, step, p, row_wise ? moment + row : moment + row * n);
      }
    }
  }

 private:
  static constexpr bool kWeighted = sum == Sum::kWeighted;
  static constexpr int kIndices = kWeighted ? 3 : 2, kGradient = kIndices + 1;
  static constexpr int kRate = kIndices + 2, kLengths = kIndices + 3;

  void check(const SparseRows& rows) const {
    const Tensor &indices = input(kIndices), &lengths = input(kLengths), &param = input(0);
    for (const int i : {kIndices, kLengths}) {
      CAFFE2_ENFORCE(input(i).rank() == 1, describe_input(i), " has shape ",
                     input(i).shape().text(), "; one dimension is needed");
    }
    if (row_wise) {
      require_row_values(1, 0);
    } else {
      require_same_shape(describe_input(1), input(1), describe_input(0), param);
    }
    if (kWeighted) {
      require_same_size(describe_input(2), input(2), describe_input(kIndices), indices);
    }
    Shape wanted{lengths.size()};
    for (int axis = 1; axis < param.rank(); axis++) wanted.append(param.dim(axis));
    CAFFE2_ENFORCE(input(kGradient).shape() == wanted, describe_input(kGradient), " has shape ",
                   input(kGradient).shape().text(), "; ", wanted.text(), " is needed");
    int64_t total = 0;
    for (int64_t s = 0; s < lengths.size(); s++) {
      const int32_t length = lengths.template data<int32_t>()[s];
      CAFFE2_ENFORCE(length >= 0, describe_input(kLengths), " holds ", length, " at position ", s,
                     "; lengths are not negative");
      total += length;
    }
    CAFFE2_ENFORCE(total == rows.count, describe_input(kLengths), " sums to ", total,
                   "; there are ", rows.count, " indices");
  }

  void weight_gradients(const SparseRows& rows, const float* param, float* out) {
    const auto* lengths = input(kLengths).template data<int32_t>();
    const auto* gradient = input(kGradient).template data<float>();
    const kernels::Parallel alone;
    int64_t k = 0;
    for (int64_t s = 0; s < input(kLengths).size(); s++) {
      for (const int64_t end = k + lengths[s]; k < end; k++) {
        out[k] = kernels().dot(rows.width, param + rows.index[k] * rows.width,
                               gradient + s * rows.width, alone);
      }
    }
  }

  void update(int64_t n, float lr, const float* g, float* p, float* h) {
    const kernels::Parallel alone;
    if (row_wise) {
      *h += kernels().dot(n, g, g, alone) / static_cast<float>(std::max<int64_t>(n, 1));
      kernels().axpby(n, lr / (std::sqrt(*h) + epsilon_), g, 1, p, alone);
      return;
    }
    for (int64_t i = 0; i < n; i++) {
      h[i] += g[i] * g[i];
      p[i] += lr * g[i] / (std::sqrt(h[i]) + epsilon_);
    }
  }

  const float epsilon_, weight_decay_;
};

template <Sum sum>
using SparseAdagradFused = FusedAdagradOperator<false, sum, false>;
template <Sum sum>
using SparseAdagradFusedApprox = FusedAdagradOperator<false, sum, true>;
template <Sum sum>
using RowWiseAdagradFused = FusedAdagradOperator<true, sum, false>;
template <Sum sum>
using RowWiseAdagradFusedApprox = FusedAdagradOperator<true, sum, true>;

}  // namespace

REGISTER_CPU_OPERATOR(SparseAdagradFusedWithSparseLengthsSumGradient, SparseAdagradFused<Sum::kSum>)
REGISTER_CPU_OPERATOR(SparseAdagradFusedWithSparseLengthsMeanGradient,
                      SparseAdagradFused<Sum::kMean>)
REGISTER_CPU_OPERATOR(SparseAdagradFusedWithSparseLengthsWeightedSumGradient,
                      SparseAdagradFused<Sum::kWeighted>)
REGISTER_CPU_OPERATOR(SparseAdagradFusedWithSparseLengthsSumGradientApprox,
                      SparseAdagradFusedApprox<Sum::kSum>)
REGISTER_CPU_OPERATOR(SparseAdagradFusedWithSparseLengthsMeanGradientApprox,
                      SparseAdagradFusedApprox<Sum::kMean>)
REGISTER_CPU_OPERATOR(SparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox,
                      SparseAdagradFusedApprox<Sum::kWeighted>)
REGISTER_CPU_OPERATOR(RowWiseSparseAdagradFusedWithSparseLengthsSumGradient,
                      RowWiseAdagradFused<Sum::kSum>)
REGISTER_CPU_OPERATOR(RowWiseSparseAdagradFusedWithSparseLengthsMeanGradient,
                      RowWiseAdagradFused<Sum::kMean>)
REGISTER_CPU_OPERATOR(RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradient,
                      RowWiseAdagradFused<Sum::kWeighted>)
REGISTER_CPU_OPERATOR(RowWiseSparseAdagradFusedWithSparseLengthsSumGradientApprox,
                      RowWiseAdagradFusedApprox<Sum::kSum>)
REGISTER_CPU_OPERATOR(RowWiseSparseAdagradFusedWithSparseLengthsMeanGradientApprox,
                      RowWiseAdagradFusedApprox<Sum::kMean>)
REGISTER_CPU_OPERATOR(RowWiseSparseAdagradFusedWithSparseLengthsWeightedSumGradientApprox,
                      RowWiseAdagradFusedApprox<Sum::kWeighted>)

}  // namespace caffe2
