// Cross-entropies of distributions and of logits, divergence of Bernoulli distributions.
#include <algorithm>
#include <cmath>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

constexpr float kSmallest = 1e-20f;  // logarithms see no smaller probability

class Distributions : public Operator {
 public:
  using Operator::Operator;

 protected:
  void check() const {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    require_same_shape(describe_input(0), x, describe_input(1), input(1));
  }
};

class CrossEntropyOperator : public Distributions {
 public:
  using Distributions::Distributions;

 protected:
  void run() override {
    check();
    const int64_t rows = input(0).dim(0), n = input(0).dim(1);
    Tensor& y = output(0, {rows}, DataType::kFloat);
    const float *x = input(0).data<float>(), *label = input(1).data<float>();
    float* out = y.mutable_data<float>();
    for_ranges(parallel(), rows, rows_per_range(8 * n), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int64_t j = i * n; j < (i + 1) * n; j++) {
          sum -= static_cast<double>(label[j]) * std::log(std::max(x[j], kSmallest));
        }
        out[i] = static_cast<float>(sum);
      }
    });
  }
};

// Inputs X, label, dY.
class CrossEntropyGradientOperator : public Distributions {
 public:
  using Distributions::Distributions;

 protected:
  void run() override {
    check();
    const int64_t rows = input(0).dim(0), n = input(0).dim(1);
    CAFFE2_ENFORCE(input(2).shape() == Shape{rows}, describe_input(2), " has shape ",
                   input(2).shape().text(), "; (", rows, ",) is needed");
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    const float *x = input(0).data<float>(), *label = input(1).data<float>();
    const float* dy = input(2).data<float>();
    float* out = dx.mutable_data<float>();
    for_ranges(parallel(), rows, rows_per_range(n), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        for (int64_t j = i * n; j < (i + 1) * n; j++) {
          out[j] = -label[j] * dy[i] / std::max(x[j], kSmallest);
        }
      }
    });
  }
};

// log(1 / (1 + e^-x)) without overflow.
float log_sigmoid(float x) { return std::min(x, 0.0f) - std::log1p(std::exp(-std::fabs(x))); }
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// Losses of logits x and targets t and their derivatives by x.
struct Joined {
  static float loss(float x, float t) { return -t * log_sigmoid(x) - (1 - t) * log_sigmoid(-x); }
  static float slope(float x, float t) { return sigmoid(x) - t; }
};
struct LogD {
  static float loss(float x, float t) { return -(2 * t - 1) * log_sigmoid(x); }
  static float slope(float x, float t) { return -(2 * t - 1) * sigmoid(-x); }
};
struct Unjoined {
  static float loss(float x, float t) { return -t * x - (1 - t) * log_sigmoid(-x); }
  static float slope(float x, float t) { return -t + (1 - t) * sigmoid(x); }
};

// Logits and targets begin at input `first`; weights, where there are any, follow.
class LogitLoss : public Operator {
 public:
  LogitLoss(const OperatorContext& context, int first, bool weighted)
      : Operator(context),
        log_d_(!weighted && args().boolean("log_D_trick")),
        unjoined_(!weighted && args().boolean("unjoined_lr_loss")),
        first_(first),
        weighted_(weighted) {
    CAFFE2_ENFORCE(!(log_d_ && unjoined_),
                   "argument 'log_D_trick' cannot be used with 'unjoined_lr_loss'");
  }

 protected:
  // The shape of the loss; rows of n elements are averaged.
  Shape check() {
    const Tensor& x = input(first_);
    for (int i = first_ + 1; i < first_ + (weighted_ ? 3 : 2); i++) {
      require_same_shape(describe_input(first_), x, describe_input(i), input(i));
    }
    Shape shape;
    for (int i = 0; i < x.rank() - 1; i++) shape.append(x.dim(i));
    n_ = x.rank() > 0 ? x.dim(x.rank() - 1) : 1;
    return shape;
  }

  // Calls f with one of the losses, for a loop that is compiled for it.
  template <class F>
  void with_loss(const F& f) const {
    if (log_d_) return f(LogD());
    if (unjoined_) return f(Unjoined());
    f(Joined());
  }

  const float* logits() const { return input(first_).data<float>(); }
  const float* targets() const { return input(first_ + 1).data<float>(); }
  const float* weights() const { return weighted_ ? input(first_ + 2).data<float>() : nullptr; }
  int64_t n_ = 0;

 private:
  const bool log_d_, unjoined_;
  const int first_;
  const bool weighted_;
};

template <bool Weighted>
class LogitLossOperator : public LogitLoss {
 public:
  explicit LogitLossOperator(const OperatorContext& context) : LogitLoss(context, 0, Weighted) {}

 protected:
  void run() override {
    Tensor& y = output(0, check(), DataType::kFloat);
    const float *x = logits(), *t = targets(), *w = weights();
    float* out = y.mutable_data<float>();
    const int64_t n = n_;
    with_loss([&](auto loss) {
      for_ranges(parallel(), y.size(), rows_per_range(8 * n), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          double sum = 0;
          for (int64_t j = i * n; j < (i + 1) * n; j++) {
            sum += (w ? w[j] : 1) * decltype(loss)::loss(x[j], t[j]);
          }
          out[i] = static_cast<float>(sum / static_cast<double>(std::max<int64_t>(1, n)));
        }
      });
    });
  }
};

// Inputs g, logits, targets, (weights).
template <bool Weighted>
class LogitLossGradientOperator : public LogitLoss {
 public:
  explicit LogitLossGradientOperator(const OperatorContext& context)
      : LogitLoss(context, 1, Weighted) {}

 protected:
  void run() override {
    const int64_t rows = check().size();
    const Tensor& g = input(0);
    CAFFE2_ENFORCE(g.size() == rows, describe_input(0), " has shape ", g.shape().text(), "; ", rows,
                   " values are needed");
    Tensor& dx = output(0, input(1).shape(), DataType::kFloat);
    const float *x = logits(), *t = targets(), *w = weights(), *grad = g.data<float>();
    float* out = dx.mutable_data<float>();
    const int64_t n = n_;
    with_loss([&](auto loss) {
      for_ranges(parallel(), rows, rows_per_range(8 * n), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          const float factor = grad[i] / static_cast<float>(std::max<int64_t>(1, n));
          for (int64_t j = i * n; j < (i + 1) * n; j++) {
            out[j] = factor * (w ? w[j] : 1) * decltype(loss)::slope(x[j], t[j]);
          }
        }
      });
    });
  }
};

struct Divergence {
  static double entropy(double p) {
    const double least = kSmallest;
    return p > least && p < 1 ? -p * std::log(p) - (1 - p) * std::log1p(-p) : 0;
  }
  static double logit(double p) {
    const double least = kSmallest;
    return std::log(std::max(p, least)) - std::log(std::max(1 - p, least));
  }
  static double of(double x, double t) {
    return entropy((x + t) / 2) - (entropy(x) + entropy(t)) / 2;
  }
  static double slope(double x, double t) { return (logit(x) - logit((x + t) / 2)) / 2; }
};

// Inputs X, T.
class BernoulliJSDOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    require_same_size(describe_input(0), x, describe_input(1), input(1));
    const float *p = x.data<float>(), *t = input(1).data<float>();
    float* out = output(0, x.shape(), DataType::kFloat).mutable_data<float>();
    for_ranges(parallel(), x.size(), rows_per_range(32), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) out[i] = static_cast<float>(Divergence::of(p[i], t[i]));
    });
  }
};

// Inputs dL, X, T.
class BernoulliJSDGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(1);
    require_same_size(describe_input(0), input(0), describe_input(1), x);
    require_same_size(describe_input(1), x, describe_input(2), input(2));
    const float *grad = input(0).data<float>(), *p = x.data<float>(), *t = input(2).data<float>();
    float* dx = output(0, x.shape(), DataType::kFloat).mutable_data<float>();
    for_ranges(parallel(), x.size(), rows_per_range(32), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        dx[i] = static_cast<float>(grad[i] * Divergence::slope(p[i], t[i]));
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(BernoulliJSD, BernoulliJSDOperator)
REGISTER_CPU_OPERATOR(BernoulliJSDGradient, BernoulliJSDGradientOperator)
REGISTER_CPU_OPERATOR(CrossEntropy, CrossEntropyOperator)
REGISTER_CPU_OPERATOR(CrossEntropyGradient, CrossEntropyGradientOperator)
REGISTER_CPU_OPERATOR(SigmoidCrossEntropyWithLogits, LogitLossOperator<false>)
REGISTER_CPU_OPERATOR(SigmoidCrossEntropyWithLogitsGradient, LogitLossGradientOperator<false>)
REGISTER_CPU_OPERATOR(WeightedSigmoidCrossEntropyWithLogits, LogitLossOperator<true>)
REGISTER_CPU_OPERATOR(WeightedSigmoidCrossEntropyWithLogitsGradient,
                      LogitLossGradientOperator<true>)

}  // namespace caffe2
