// Losses and Accuracy.
#include <algorithm>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

constexpr float kLogFloor = 1e-20f;  // probabilities below it count as this much

// Rows of scores with one class label each.
class LabelledRows : public Operator {
 public:
  using Operator::Operator;

 protected:
  // X as [m, n] split at `axis`; raises when the labels do not fit.
  void check(int axis) {
    const Tensor &x = input(0), &labels = input(1);
    m_ = x.shape().product(0, axis);
    n_ = x.shape().product(axis, x.rank());
    CAFFE2_ENFORCE(labels.size() == m_, describe_input(1), " has shape ", labels.shape().text(),
                   "; one label for each of the ", m_, " rows of ", describe_input(0),
                   " is needed");
    const int64_t bad = kernels().first_outside(m_, labels.data<int32_t>(), 0,
                                                static_cast<int32_t>(std::min<int64_t>(n_, INT32_MAX)));
    if (bad >= 0) {
      fail(Code::kInvalidArgument, "label ", labels.data<int32_t>()[bad], " at position ", bad,
           " of ", describe_input(1), " is outside of [0, ", n_, ")");
    }
  }
  int64_t m_ = 0, n_ = 0;
};

class LabelCrossEntropyOperator : public LabelledRows {
 public:
  using LabelledRows::LabelledRows;

 protected:
  void run() override {
    check_rank(input(0));
    check(1);
    Tensor& y = output(0, {m_}, DataType::kFloat);
    kernels().label_cross_entropy(m_, n_, kLogFloor, input(0).data<float>(),
                                  input(1).data<int32_t>(), y.mutable_data<float>(), parallel());
  }
  void check_rank(const Tensor& x) const {
    CAFFE2_ENFORCE(x.rank() >= 1, describe_input(0), " has no dimension to hold the rows");
  }
};

class LabelCrossEntropyGradientOperator : public LabelCrossEntropyOperator {
 public:
  using LabelCrossEntropyOperator::LabelCrossEntropyOperator;

 protected:
  void run() override {
    const Tensor &x = input(0), &dy = input(2);
    check_rank(x);
    check(1);
    CAFFE2_ENFORCE(dy.size() == m_, describe_input(2), " has shape ", dy.shape().text(), "; ", m_,
                   " values are needed");
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    kernels().label_cross_entropy_gradient(m_, n_, kLogFloor, x.data<float>(),
                                           input(1).data<int32_t>(), dy.data<float>(),
                                           dx.mutable_data<float>(), parallel());
  }
};

class AveragedLossOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, {}, DataType::kFloat);
    const double sum = kernels().sum(x.size(), x.data<float>(), parallel());
    y.mutable_data<float>()[0] = x.size() > 0 ? static_cast<float>(sum / x.size()) : 0.0f;
  }
};

class AveragedLossGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const float dy = scalar_value(input(1), describe_input(1));
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    kernels().fill(x.size(), x.size() > 0 ? dy / static_cast<float>(x.size()) : 0.0f,
                   dx.mutable_data<float>(), parallel());
  }
};

// Fraction of rows whose label is among the top_k largest scores.
class AccuracyOperator : public LabelledRows {
 public:
  explicit AccuracyOperator(const OperatorContext& context)
      : LabelledRows(context), top_k_(args().integer("top_k")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; rows of scores (2 dimensions) are needed");
    check(1);
    Tensor& y = output(0, {}, DataType::kFloat);
    const float* scores = x.data<float>();
    const int32_t* labels = input(1).data<int32_t>();
    int64_t correct = 0;
    for (int64_t i = 0; i < m_; i++) {
      const float* row = scores + i * n_;
      const float own = row[labels[i]];
      // Scores equal to the label's own count as better when they come first.
      int64_t better = 0;
      for (int64_t j = 0; j < n_; j++) better += row[j] > own || (row[j] == own && j < labels[i]);
      correct += better < top_k_;
    }
    y.mutable_data<float>()[0] =
        m_ > 0 ? static_cast<float>(static_cast<double>(correct) / static_cast<double>(m_)) : 0.0f;
  }

 private:
  const int64_t top_k_;
};

}  // namespace

REGISTER_CPU_OPERATOR(LabelCrossEntropy, LabelCrossEntropyOperator)
REGISTER_CPU_OPERATOR(LabelCrossEntropyGradient, LabelCrossEntropyGradientOperator)
REGISTER_CPU_OPERATOR(AveragedLoss, AveragedLossOperator)
REGISTER_CPU_OPERATOR(AveragedLossGradient, AveragedLossGradientOperator)
REGISTER_CPU_OPERATOR(Accuracy, AccuracyOperator)

}  // namespace caffe2
