// What changes learning rates, gradients and weights besides the rules of optimizers.
#include <algorithm>
#include <cmath>

#include "core/registry.h"
#include "operators/sparse_rows.h"

namespace caffe2 {
namespace {

class LarsOperator : public Operator {
 public:
  explicit LarsOperator(const OperatorContext& context)
      : Operator(context), offset_(args().real("offset")), lr_min_(args().real("lr_min")) {}

 protected:
  void run() override {
    const Tensor &x = input(0), &dx = input(1);
    require_same_size(describe_input(1), dx, describe_input(0), x);
    const float decay = scalar_value(input(2), describe_input(2));
    const float trust = scalar_value(input(3), describe_input(3));
    const float lr_max = scalar_value(input(4), describe_input(4));
    Tensor& out = output(0, {1}, DataType::kFloat);
    const double x_norm = norm(x), dx_norm = norm(dx);
    double rate = 1;
    if (x_norm > 0) rate = trust / (dx_norm / x_norm + decay + offset_);
    if (rate < lr_min_) rate = lr_min_;
    if (rate > lr_max) rate = lr_max;
    *out.mutable_data<float>() = static_cast<float>(rate);
  }

 private:
  double norm(const Tensor& x) const {
    return std::sqrt(kernels().dot(x.size(), x.data<float>(), x.data<float>(), parallel()));
  }

  const float offset_, lr_min_;
};

class LearningRateAdaptionOperator : public Operator {
 public:
  explicit LearningRateAdaptionOperator(const OperatorContext& context)
      : Operator(context),
        alpha_(args().real("lr_alpha")),
        normalized_(args().boolean("normalized_lr_adaption")) {}

 protected:
  void run() override {
    const Tensor &g = input(1), &e = input(2);
    require_same_size(describe_input(2), e, describe_input(1), g);
    const double lr = scalar_value(input(0), describe_input(0));
    Tensor& out = output(0, input(0).shape(), DataType::kFloat);
    const double product = dot(g, e);
    double rate = lr - alpha_ * product;
    if (normalized_) {
      const double norms = std::sqrt(dot(g, g)) * std::sqrt(dot(e, e));
      rate = norms > 0 ? lr * (1 - alpha_ * product / norms) : lr;
    }
    *out.mutable_data<float>() = static_cast<float>(rate);
  }

 private:
  double dot(const Tensor& a, const Tensor& b) const {
    return kernels().dot(a.size(), a.data<float>(), b.data<float>(), parallel());
  }

  const double alpha_;
  const bool normalized_;
};

class WeightScaleOperator : public Operator {
 public:
  explicit WeightScaleOperator(const OperatorContext& context)
      : Operator(context),
        stepsize_(args().integer("stepsize")),
        upper_bound_(args().integer("upper_bound_iter")),
        scale_(args().real("scale")) {}

 protected:
  void run() override {
    const Tensor& w = input(0);
    const int64_t step = step_number(input(1), describe_input(1));
    Tensor& out = output(0, w.shape(), DataType::kFloat);
    if (step % stepsize_ == 0 && step < upper_bound_) {
      kernels().scale(w.size(), scale_, w.data<float>(), out.mutable_data<float>(), parallel());
    } else {
      out.copy_from(w);
    }
  }

 private:
  const int64_t stepsize_, upper_bound_;
  const float scale_;
};

class ClipTensorByScalingOperator : public Operator {
 public:
  explicit ClipTensorByScalingOperator(const OperatorContext& context)
      : Operator(context), threshold_(args().real("threshold")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const float value = scalar_value(input(1), describe_input(1));
    const float most =
        has_input(2) ? threshold_ * scalar_value(input(2), describe_input(2)) : threshold_;
    Tensor& out = output(0, x.shape(), DataType::kFloat);
    if (value > most) {
      kernels().scale(x.size(), most / value, x.data<float>(), out.mutable_data<float>(),
                      parallel());
    } else {
      out.copy_from(x);
    }
  }

 private:
  const float threshold_;
};

class RowWiseCounterOperator : public SparseRowsOperator {
 public:
  explicit RowWiseCounterOperator(const OperatorContext& context)
      : SparseRowsOperator(context),
        halflife_(static_cast<double>(args().integer("counter_halflife"))) {}

 protected:
  void run() override {
    CAFFE2_ENFORCE(input(0).shape().rank() == 1, describe_input(0), " has shape ",
                   input(0).shape().text(), "; one dimension is needed");
    require_same_shape(describe_input(1), input(1), describe_input(0), input(0));
    CAFFE2_ENFORCE(input(3).size() == 1, describe_input(3), " has shape ", input(3).shape().text(),
                   "; one value is needed");
    const SparseRows rows = rows_at(0, 2);
    const int64_t now = input(3).data<int64_t>()[0];
    auto* last = changed<int64_t>(0, 0);
    auto* counter = changed<double>(1, 1);
    if (halflife_ <= 0) return;
    for (int64_t r = 0; r < rows.count; r++) {
      const int64_t row = rows.index[r];
      const double passed = std::fmax(static_cast<double>(now) - static_cast<double>(last[row]), 0);
      counter[row] = 1 + counter[row] * std::exp2(-passed / halflife_);
      last[row] = std::max(now, last[row]);
    }
  }

 private:
  const double halflife_;
};

class SparseLpRegularizerOperator : public SparseRowsOperator {
 public:
  explicit SparseLpRegularizerOperator(const OperatorContext& context)
      : SparseRowsOperator(context), p_(args().real("p")), strength_(args().real("reg_lambda")) {
    CAFFE2_ENFORCE(p_ == 1 || p_ == 2, "argument 'p' is ", p_, "; allowed are 1 and 2");
  }

 protected:
  void run() override {
    const SparseRows rows = has_input(2) ? rows_at(0, 1, 2) : rows_at(0, 1);
    float* w = changed(0, 0);
    for (int64_t r = 0; r < rows.count; r++) {
      float* row = w + rows.index[r] * rows.width;
      if (p_ == 2) {
        kernels().scale(rows.width, 1 - strength_, row, row, {});
        continue;
      }
      for (int64_t i = 0; i < rows.width; i++) {
        const float left = std::fabs(row[i]) - strength_;
        row[i] = left < 0 ? 0 : std::copysign(left, row[i]);  // a NaN stays
      }
    }
  }

 private:
  const float p_, strength_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Lars, LarsOperator)
REGISTER_CPU_OPERATOR(LearningRateAdaption, LearningRateAdaptionOperator)
REGISTER_CPU_OPERATOR(WeightScale, WeightScaleOperator)
REGISTER_CPU_OPERATOR(ClipTensorByScaling, ClipTensorByScalingOperator)
REGISTER_CPU_OPERATOR(RowWiseCounter, RowWiseCounterOperator)
REGISTER_CPU_OPERATOR(SparseLpRegularizer, SparseLpRegularizerOperator)

}  // namespace caffe2
