// SoftmaxWithLoss and its gradient.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

constexpr float kSmallest = 1e-20f;  // logarithms see no smaller probability

// Logits X as [m, n] split at `axis`, labels (class numbers, or with label_prob a distribution per
// row) and, where given, one weight per row.
class SoftmaxLossBase : public Operator {
 public:
  explicit SoftmaxLossBase(const OperatorContext& context)
      : Operator(context),
        axis_(args().int32("axis")),
        label_prob_(args().boolean("label_prob")),
        by_rows_(args().boolean("average_by_batch_size")),
        scale_(args().real("scale")) {}

 protected:
  struct Rows {
    int64_t m, n;
    const float* weights;  // or null
    double total;          // what the sum of the losses is divided by
  };

  Rows rows(int weights_input) const {
    const Tensor& x = input(0);
    const int axis = canonical_axis(axis_, x.rank(), describe_input(0));
    Rows r{x.shape().product(0, axis), x.shape().product(axis, x.rank()), nullptr, 0};
    if (label_prob_) {
      check_distributions(r, axis);
    } else {
      check_labels(r, axis);
    }
    r.total = static_cast<double>(r.m);
    if (weights_input >= 0) {
      const Tensor& w = input(weights_input);
      CAFFE2_ENFORCE(w.size() == r.m, describe_input(weights_input), " has shape ",
                     w.shape().text(), "; one weight for each of the ", r.m, " rows is needed");
      r.weights = w.data<float>();
      if (!by_rows_) r.total = kernels().sum(r.m, r.weights, parallel());
    }
    return r;
  }

  const int axis_;
  const bool label_prob_, by_rows_;
  const float scale_;

 private:
  void check_labels(const Rows& r, int axis) const {
    const Tensor& labels = input(1);
    CAFFE2_ENFORCE(labels.type() == DataType::kInt32, describe_input(1), " has type ",
                   type_name(labels.type()), "; class numbers are int32");
    const int64_t rows = labels.shape().product(0, std::min(axis, labels.rank()));
    CAFFE2_ENFORCE(rows == r.m && labels.size() == r.m, describe_input(1), " has shape ",
                   labels.shape().text(), "; one class number for each of the ", r.m,
                   " rows is needed");
    const int32_t* label = labels.data<int32_t>();
    const int64_t bad = kernels().first_outside(
        r.m, label, 0, static_cast<int32_t>(std::min<int64_t>(r.n, INT32_MAX)));
    if (bad >= 0) {
      fail(Code::kInvalidArgument, "label ", label[bad], " at position ", bad, " of ",
           describe_input(1), " is outside of [0, ", r.n, ")");
    }
  }

  void check_distributions(const Rows& r, int axis) const {
    const Tensor& labels = input(1);
    CAFFE2_ENFORCE(labels.type() == DataType::kFloat, describe_input(1), " has type ",
                   type_name(labels.type()), "; with label_prob they are float");
    CAFFE2_ENFORCE(labels.rank() >= 2 && axis <= labels.rank() &&
                       labels.shape().product(0, axis) == r.m &&
                       labels.shape().product(axis, labels.rank()) == r.n,
                   describe_input(1), " has shape ", labels.shape().text(), "; ", r.m, " rows of ",
                   r.n, " probabilities are needed");
    const float* p = labels.data<float>();
    for (int64_t i = 0; i < r.m; i++, p += r.n) {
      double sum = 0;
      for (int64_t j = 0; j < r.n; j++) {
        CAFFE2_ENFORCE(p[j] >= 0, describe_input(1), " holds ", p[j], " in row ", i,
                       "; probabilities are not negative");
        sum += p[j];
      }
      CAFFE2_ENFORCE(std::fabs(sum - 1) < 1e-5, describe_input(1), " sums to ", sum, " in row ", i,
                     "; 1 is needed");
    }
  }
};

class SoftmaxWithLossOperator : public SoftmaxLossBase {
 public:
  using SoftmaxLossBase::SoftmaxLossBase;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Rows r = rows(has_input(2) ? 2 : -1);
    Tensor& p = output(0, x.shape(), DataType::kFloat);
    Tensor& average = output(1, {}, DataType::kFloat);
    float* losses = scratch<float>(r.m);
    if (label_prob_) {
      distribution_losses(r, p.mutable_data<float>(), losses);
    } else {
      kernels().softmax_loss(r.m, r.n, x.data<float>(), input(1).data<int32_t>(), r.weights,
                             p.mutable_data<float>(), losses, parallel());
    }
    const double sum = kernels().sum(r.m, losses, parallel());
    average.mutable_data<float>()[0] =
        r.total != 0 ? static_cast<float>(scale_ * sum / r.total) : 0.0f;
  }

 private:
  void distribution_losses(const Rows& r, float* p, float* losses) {
    const float *x = input(0).data<float>(), *labels = input(1).data<float>();
    kernels().log_softmax(r.m, r.n, x, p, parallel());
    for (int64_t i = 0; i < r.m; i++) {
      double sum = 0;
      for (int64_t j = i * r.n; j < (i + 1) * r.n; j++) {
        sum -= static_cast<double>(labels[j]) * std::max(p[j], std::log(kSmallest));
      }
      losses[i] = static_cast<float>(r.weights ? r.weights[i] * sum : sum);
    }
    kernels().exp(r.m * r.n, p, p, parallel());
  }
};

// Inputs X, labels, (weights), P, d(average loss); output dX.
class SoftmaxWithLossGradientOperator : public SoftmaxLossBase {
 public:
  using SoftmaxLossBase::SoftmaxLossBase;

 protected:
  void run() override {
    const bool weighted = inputs() == 5;
    const Rows r = rows(weighted ? 2 : -1);
    const int p_index = weighted ? 3 : 2;
    const Tensor &x = input(0), &p = input(p_index);
    require_same_shape(describe_input(0), x, describe_input(p_index), p);
    const float d_average = scalar_value(input(p_index + 1), describe_input(p_index + 1));
    const float factor =
        r.total != 0 ? static_cast<float>(static_cast<double>(scale_) * d_average / r.total) : 0.0f;
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    if (label_prob_) {
      distribution_gradient(r, p.data<float>(), factor, dx.mutable_data<float>());
    } else {
      kernels().softmax_loss_gradient(r.m, r.n, p.data<float>(), input(1).data<int32_t>(),
                                      r.weights, factor, dx.mutable_data<float>(), parallel());
    }
  }

 private:
  void distribution_gradient(const Rows& r, const float* p, float factor, float* dx) {
    const float* labels = input(1).data<float>();
    for (int64_t i = 0; i < r.m; i++) {
      const float weight = factor * (r.weights ? r.weights[i] : 1.0f);
      for (int64_t j = i * r.n; j < (i + 1) * r.n; j++) dx[j] = weight * (p[j] - labels[j]);
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(SoftmaxWithLoss, SoftmaxWithLossOperator)
REGISTER_CPU_OPERATOR(SoftmaxWithLossGradient, SoftmaxWithLossGradientOperator)

}  // namespace caffe2
