// Adagrad and its relatives.
#include <cmath>

#include "core/registry.h"
#include "operators/update.h"

namespace caffe2 {
namespace {

using kernels::UpdateRule;

class AdagradOperator : public UpdateOperator {
 public:
  explicit AdagradOperator(const OperatorContext& context)
      : UpdateOperator(context),
        epsilon_(args().real("epsilon")),
        decay_(args().real("decay")),
        weight_decay_(args().real("weight_decay")) {}

 protected:
  void run() override {
    const float lr = scalar_value(input(3), describe_input(3));
    update({UpdateRule::kAdagrad, {lr, epsilon_, decay_, weight_decay_}}, {0, 1, 2},
           {{0, 0}, {1, 1}, {2, 0}, {3, 0}});
  }

 private:
  const float epsilon_, decay_, weight_decay_;
};

class SparseAdagradOperator : public UpdateOperator {
 public:
  explicit SparseAdagradOperator(const OperatorContext& context)
      : UpdateOperator(context),
        epsilon_(args().real("epsilon")),
        weight_decay_(args().real("weight_decay")) {}

 protected:
  void run() override {
    const float lr = scalar_value(input(4), describe_input(4));
    update_rows({UpdateRule::kAdagrad, {lr, epsilon_, 1, weight_decay_}}, {0, 1, 3}, 2,
                {{0, 0}, {1, 1}});
  }

 private:
  const float epsilon_, weight_decay_;
};

class RowWiseSparseAdagradOperator : public SparseRowsOperator {
 public:
  explicit RowWiseSparseAdagradOperator(const OperatorContext& context)
      : SparseRowsOperator(context),
        epsilon_(args().real("epsilon")),
        weight_decay_(args().real("weight_decay")),
        halflife_(static_cast<double>(args().integer("counter_halflife"))) {}

 protected:
  void run() override {
    const SparseRows rows = rows_at(0, 2, 3);
    require_row_values(1, 0);
    const float lr = scalar_value(input(4), describe_input(4));
    const double* counter = nullptr;
    if (has_input(5)) {
      require_row_values(5, 0);
      if (halflife_ > 0) counter = input(5).data<double>();
    }
    const float* gradient = input(3).data<float>();
    float *w = changed(0, 0), *h = changed(1, 1);
    const kernels::Parallel alone;
    const int64_t n = rows.width;
    for (int64_t r = 0; r < rows.count && n > 0; r++) {
      const int64_t row = rows.index[r];
      const float* g = gradient + r * n;
      float* p = w + row * n;
      float decay = weight_decay_;
      if (counter && counter[row] > 0) {
        decay = static_cast<float>(weight_decay_ * halflife_ / counter[row]);
      }
      double square = 0;
      if (decay == 0) {
        square = kernels().dot(n, g, g, alone);
      } else {
        for (int64_t i = 0; i < n; i++) {
          const double v = g[i] + decay * p[i];
          square += v * v;
        }
      }
      h[row] += static_cast<float>(square / static_cast<double>(n));
      const float rate = lr / (std::sqrt(h[row]) + epsilon_);
      kernels().axpby(n, rate, g, 1 + rate * decay, p, alone);
    }
  }

 private:
  const float epsilon_, weight_decay_;
  const double halflife_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Adagrad, AdagradOperator)
REGISTER_CPU_OPERATOR(SparseAdagrad, SparseAdagradOperator)
REGISTER_CPU_OPERATOR(RowWiseSparseAdagrad, RowWiseSparseAdagradOperator)

}  // namespace caffe2
