// Adam and its relatives.
#include <cmath>

#include "core/registry.h"
#include "operators/update.h"

namespace caffe2 {
namespace {

using kernels::UpdateRule;

class AdamBase : public UpdateOperator {
 public:
  explicit AdamBase(const OperatorContext& context)
      : UpdateOperator(context),
        beta1_(args().real("beta1")),
        beta2_(args().real("beta2")),
        epsilon_(args().real("epsilon")) {}

 protected:
  // What makes up for moments that began with 0.
  double correction(double t) const {
    return std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t));
  }

  double step(int iter) const {
    return static_cast<double>(step_number(input(iter), describe_input(iter)));
  }

  const double beta1_, beta2_;
  const float epsilon_;
};

class AdamOperator : public AdamBase {
 public:
  explicit AdamOperator(const OperatorContext& context)
      : AdamBase(context),
        rectified_(args().boolean("enableRAdam")),
        sparse_(def().type == "SparseAdam") {}

 protected:
  void run() override {
    const int lr = sparse_ ? 5 : 4;
    const kernels::Update u = rule(scalar_value(input(lr), describe_input(lr)), step(lr + 1));
    if (sparse_) {
      update_rows(u, {0, 1, 2, 4}, 3, {{0, 0}, {1, 1}, {2, 2}, {3, 4}});
    } else {
      update(u, {0, 1, 2, 3}, {{0, 0}, {1, 1}, {2, 2}, {3, 3}});
    }
  }

 private:
  kernels::Update rule(float lr, double t) const {
    UpdateRule kind = UpdateRule::kAdam;
    double factor = correction(t);
    if (rectified_) {
      const double most = 2 / (1 - beta2_) - 1, decayed = std::pow(beta2_, t);
      const double length = most - 2 * t * decayed / (1 - decayed);
      if (length < 5) {
        kind = UpdateRule::kAdamWarmUp;
        factor = 1 / (1 - std::pow(beta1_, t));
      } else {
        factor *=
            std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
      }
    }
    return {kind,
            {lr, static_cast<float>(beta1_), static_cast<float>(beta2_), epsilon_,
             static_cast<float>(factor)}};
  }

  const bool rectified_, sparse_;
};

class RowWiseSparseAdamOperator : public AdamBase {
 public:
  using AdamBase::AdamBase;

 protected:
  void run() override {
    const SparseRows rows = rows_at(0, 3, 4);
    require_same_shape(describe_input(1), input(1), describe_input(0), input(0));
    require_row_values(2, 0);
    const float lr = scalar_value(input(5), describe_input(5));
    const auto factor = static_cast<float>(correction(step(6)));
    float *w = changed(0, 0), *m = changed(1, 1), *v = changed(2, 2);
    float* steps = outputs() > 3
                       ? output(3, input(4).shape(), DataType::kFloat).mutable_data<float>()
                       : nullptr;
    const float* gradient = input(4).data<float>();
    const kernels::Parallel alone;
    const int64_t n = rows.width;
    for (int64_t r = 0; r < rows.count && n > 0; r++) {
      const int64_t row = rows.index[r], at = row * n;
      const float* g = gradient + r * n;
      const double square = kernels().dot(n, g, g, alone) / static_cast<double>(n);
      v[row] = static_cast<float>(beta2_ * v[row] + (1 - beta2_) * square);
      kernels().axpby(n, static_cast<float>(1 - beta1_), g, static_cast<float>(beta1_), m + at,
                      alone);
      const float rate = factor / (std::sqrt(v[row]) + epsilon_);
      kernels().axpby(n, lr * rate, m + at, 1, w + at, alone);
      if (steps) kernels().scale(n, rate, m + at, steps + r * n, alone);
    }
  }
};

class SmartDecaySparseAdamOperator : public AdamBase {
 public:
  using AdamBase::AdamBase;

 protected:
  void run() override {
    const SparseRows rows = rows_at(0, 4, 5);
    for (const int i : {1, 2}) {
      require_same_shape(describe_input(i), input(i), describe_input(0), input(0));
    }
    require_row_values(3, 0);
    const float lr = scalar_value(input(6), describe_input(6));
    const int64_t now = step_number(input(7), describe_input(7));
    for (int64_t r = 0; r < rows.count; r++) {
      const int64_t seen = input(3).data<int64_t>()[rows.index[r]];
      CAFFE2_ENFORCE(seen >= 0 && seen <= now, describe_input(3), " has ", seen, " for row ",
                     rows.index[r], "; allowed are 0 to iter + 1 = ", now);
    }
    float *w = changed(0, 0), *m = changed(1, 1), *v = changed(2, 2);
    int64_t* last_seen = changed<int64_t>(3, 3);
    const float* gradient = input(5).data<float>();
    for (int64_t r = 0; r < rows.count; r++) {
      const int64_t row = rows.index[r], at = row * rows.width;
      catch_up(rows.width, static_cast<double>(now - last_seen[row]), lr, gradient + r * rows.width,
               w + at, m + at, v + at);
      last_seen[row] = now;
    }
  }

 private:
  void catch_up(int64_t n, double missed, float lr, const float* g, float* w, float* m,
                float* v) const {
    const double left = std::pow(beta1_, std::fmax(missed - 1, 0));
    const auto late = static_cast<float>(beta1_ * (1 - left) / (1 - beta1_));
    const auto decay1 = static_cast<float>(std::pow(beta1_, missed));
    const auto decay2 = static_cast<float>(std::pow(beta2_, missed));
    const auto new1 = static_cast<float>(1 - beta1_), new2 = static_cast<float>(1 - beta2_);
    for (int64_t i = 0; i < n; i++) {
      const float old = m[i];
      m[i] = decay1 * old + new1 * g[i];
      v[i] = decay2 * v[i] + new2 * g[i] * g[i];
      w[i] += lr * (late * old + m[i]) / (std::sqrt(v[i]) + epsilon_);
    }
  }
};

class DecayAdagradOperator : public AdamBase {
 public:
  explicit DecayAdagradOperator(const OperatorContext& context)
      : AdamBase(context),
        weight_decay_(args().real("weight_decay")),
        corrected_(args().boolean("bias_correction_first")) {}

 protected:
  void run() override {
    const float lr = scalar_value(input(4), describe_input(4));
    const double t = step(5), factor = corrected_ ? 1 / (1 - std::pow(beta1_, t)) : 1;
    update({UpdateRule::kDecayAdagrad,
            {lr, static_cast<float>(beta1_), epsilon_, static_cast<float>(factor), weight_decay_}},
           {0, 1, 2, 3}, {{0, 0}, {1, 1}, {2, 2}});
  }

 private:
  const float weight_decay_;
  const bool corrected_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Adam, AdamOperator)
REGISTER_CPU_OPERATOR(SparseAdam, AdamOperator)
REGISTER_CPU_OPERATOR(RowWiseSparseAdam, RowWiseSparseAdamOperator)
REGISTER_CPU_OPERATOR(SmartDecaySparseAdam, SmartDecaySparseAdamOperator)
REGISTER_CPU_OPERATOR(DecayAdagrad, DecayAdagradOperator)

}  // namespace caffe2
