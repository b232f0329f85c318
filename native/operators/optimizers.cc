// RMSProp, Adadelta, WNGrad, STORM, Lion.
#include <cmath>

#include "core/registry.h"
#include "operators/update.h"

namespace caffe2 {
namespace {

using kernels::UpdateRule;

class RmsPropOperator : public UpdateOperator {
 public:
  explicit RmsPropOperator(const OperatorContext& context)
      : UpdateOperator(context),
        decay_(args().real("decay")),
        momentum_(args().real("momentum")),
        epsilon_(args().real("epsilon")) {}

 protected:
  void run() override {
    const float lr = scalar_value(input(3), describe_input(3));
    update({UpdateRule::kRmsProp, {lr, decay_, momentum_, epsilon_}}, {1, 2, 0},
           {{1, 1}, {2, 2}, {0, 0}});
  }

 private:
  const float decay_, momentum_, epsilon_;
};

class AdadeltaOperator : public UpdateOperator {
 public:
  explicit AdadeltaOperator(const OperatorContext& context)
      : UpdateOperator(context),
        decay_(args().real("decay")),
        epsilon_(args().real("epsilon")),
        sparse_(def().type == "SparseAdadelta") {}

 protected:
  void run() override {
    const int at = sparse_ ? 5 : 4;
    const float lr = scalar_value(input(at), describe_input(at));
    const kernels::Update rule = {UpdateRule::kAdadelta, {lr, decay_, epsilon_}};
    const UpdateOutputs states = {{0, 0}, {1, 1}, {2, 2}};
    if (sparse_) {
      update_rows(rule, {0, 1, 2, 4}, 3, states);
    } else {
      update(rule, {0, 1, 2, 3}, states);
    }
  }

 private:
  const float decay_, epsilon_;
  const bool sparse_;
};

class WngradOperator : public SparseRowsOperator {
 public:
  explicit WngradOperator(const OperatorContext& context)
      : SparseRowsOperator(context), epsilon_(args().real("epsilon")) {}

 protected:
  void run() override {
    const Tensor &w = input(0), &g = input(2);
    require_same_size(describe_input(2), g, describe_input(0), w);
    const float b = scalar_value(input(1), describe_input(1));
    const float rate = scalar_value(input(3), describe_input(3)) / (b + epsilon_);
    Tensor& new_w = output(0, w.shape(), DataType::kFloat);
    Tensor& new_b = output(1, input(1).shape(), DataType::kFloat);
    Tensor* rates = outputs() > 2 ? &output(2, input(1).shape(), DataType::kFloat) : nullptr;
    Tensor* step = outputs() > 3 ? &output(3, w.shape(), DataType::kFloat) : nullptr;
    const auto square = kernels().dot(g.size(), g.data<float>(), g.data<float>(), parallel());
    new_w.copy_from(w);
    kernels().axpby(g.size(), rate, g.data<float>(), 1, new_w.mutable_data<float>(), parallel());
    *new_b.mutable_data<float>() = static_cast<float>(b + square / (b + epsilon_));
    if (rates) *rates->mutable_data<float>() = rate;
    if (step) {
      kernels().scale(g.size(), rate, g.data<float>(), step->mutable_data<float>(), parallel());
    }
  }

 private:
  const float epsilon_;
};

class SparseWngradOperator : public SparseRowsOperator {
 public:
  explicit SparseWngradOperator(const OperatorContext& context)
      : SparseRowsOperator(context), epsilon_(args().real("epsilon")) {}

 protected:
  void run() override {
    const SparseRows rows = rows_at(0, 2, 3);
    const float b = scalar_value(input(1), describe_input(1));
    const float rate = scalar_value(input(4), describe_input(4)) / (b + epsilon_);
    const float* g = input(3).data<float>();
    float* w = changed(0, 0);
    Tensor& new_b = output(1, input(1).shape(), DataType::kFloat);
    const double square = kernels().dot(input(3).size(), g, g, parallel());
    for (int64_t r = 0; r < rows.count; r++) {
      kernels().axpby(rows.width, rate, g + r * rows.width, 1, w + rows.index[r] * rows.width, {});
    }
    *new_b.mutable_data<float>() = static_cast<float>(b + square / b);
  }

 private:
  const float epsilon_;
};

class StormOperator : public SparseRowsOperator {
 public:
  explicit StormOperator(const OperatorContext& context)
      : SparseRowsOperator(context),
        momentum_(args().real("momentum")),
        beta_(args().real("beta")),
        sparse_(def().type == "SparseStorm") {}

 protected:
  void run() override {
    const Tensor &w = input(0), &g = input(3);
    const int at = sparse_ ? 5 : 4;
    const float lr = scalar_value(input(at), describe_input(at));
    const float sum = scalar_value(input(2), describe_input(2));
    // Dense: one row, which is all of it.
    const int64_t all = 0;
    SparseRows rows = {1, w.size(), &all};
    if (sparse_) {
      rows = rows_at(0, 4, 3);
      require_same_shape(describe_input(1), input(1), describe_input(0), w);
    } else {
      require_same_size(describe_input(3), g, describe_input(0), w);
      require_same_size(describe_input(1), input(1), describe_input(0), w);
    }
    const auto [new_w, m, new_sum] = changed_together<3>();
    const float* grad = g.data<float>();
    const double total = sum + kernels().dot(g.size(), grad, grad, parallel());
    const double rate = lr * std::pow(beta_ + total, -1.0 / 3);
    const auto lost = static_cast<float>(momentum_ * rate * rate);
    const kernels::Parallel threads = sparse_ ? kernels::Parallel{} : parallel();
    for (int64_t r = 0; r < rows.count; r++) {
      const int64_t at_row = rows.index[r] * rows.width;
      kernels().axpby(rows.width, lost, grad + r * rows.width, 1 - lost, m + at_row, threads);
      kernels().axpby(rows.width, static_cast<float>(rate), m + at_row, 1, new_w + at_row, threads);
    }
    *new_sum = static_cast<float>(total);
  }

 private:
  const float momentum_, beta_;
  const bool sparse_;
};

class LionUpdateOperator : public Operator {
 public:
  explicit LionUpdateOperator(const OperatorContext& context)
      : Operator(context),
        beta1_(args().real("beta1")),
        beta2_(args().real("beta2")),
        decay_(args().real("wd")),
        lr_(args().real("lr")) {}

 protected:
  void run() override {
    const Tensor &w = input(0), &g = input(1), &m = input(2);
    require_same_size(describe_input(1), g, describe_input(0), w);
    require_same_size(describe_input(2), m, describe_input(1), g);
    const float lr = has_input(3) ? scalar_value(input(3), describe_input(3)) : lr_;
    const float *grad = g.data<float>(), *old_w = w.data<float>(), *old_m = m.data<float>();
    float* new_w = output(0, w.shape(), DataType::kFloat).mutable_data<float>();
    float* new_m = output(1, m.shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t i = 0; i < w.size(); i++) {
      const float mixed = beta1_ * old_m[i] + (1 - beta1_) * grad[i];
      const float sign = mixed > 0 ? 1 : mixed < 0 ? -1 : mixed;  // a NaN stays
      new_w[i] = old_w[i] + lr * (sign + decay_ * old_w[i]);
      new_m[i] = beta2_ * old_m[i] + (1 - beta2_) * grad[i];
    }
  }

 private:
  const float beta1_, beta2_, decay_, lr_;
};

}  // namespace

REGISTER_CPU_OPERATOR(RmsProp, RmsPropOperator)
REGISTER_CPU_OPERATOR(Adadelta, AdadeltaOperator)
REGISTER_CPU_OPERATOR(SparseAdadelta, AdadeltaOperator)
REGISTER_CPU_OPERATOR(Wngrad, WngradOperator)
REGISTER_CPU_OPERATOR(SparseWngrad, SparseWngradOperator)
REGISTER_CPU_OPERATOR(LionUpdate, LionUpdateOperator)
REGISTER_CPU_OPERATOR(Storm, StormOperator)
REGISTER_CPU_OPERATOR(SparseStorm, StormOperator)

}  // namespace caffe2
