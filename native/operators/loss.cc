// Losses and Accuracy.
#include <algorithm>

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
  void check_labels(int64_t rows, int64_t classes) {
    rows_ = rows, classes_ = classes;
    const int32_t* labels = input(1).data<int32_t>();
    const int64_t bad = kernels().first_outside(
        rows, labels, 0, static_cast<int32_t>(std::min<int64_t>(classes, INT32_MAX)));
    if (bad >= 0) {
      fail(Code::kInvalidArgument, "label ", labels[bad], " at position ", bad, " of ",
           describe_input(1), " is outside of [0, ", classes, ")");
    }
  }
  int64_t rows_ = 0, classes_ = 0;
};

class LabelCrossEntropyBase : public LabelledRows {
 public:
  using LabelledRows::LabelledRows;

 protected:
  // A one-dimensional X is one row.
  void check() {
    const Tensor &x = input(0), &labels = input(1);
    CAFFE2_ENFORCE(x.rank() >= 1, describe_input(0), " has no dimension of classes");
    const int axis = x.rank() == 1 ? 0 : 1;
    const int64_t rows = x.shape().product(0, axis);
    CAFFE2_ENFORCE((labels.shape() == Shape{rows}) || (labels.shape() == Shape{rows, 1}),
                   describe_input(1), " has shape ", labels.shape().text(), "; (", rows, ",) or (",
                   rows, ", 1) is needed");
    check_labels(rows, x.shape().product(axis, x.rank()));
  }
};

class LabelCrossEntropyOperator : public LabelCrossEntropyBase {
 public:
  using LabelCrossEntropyBase::LabelCrossEntropyBase;

 protected:
  void run() override {
    check();
    Tensor& y = output(0, {rows_}, DataType::kFloat);
    kernels().label_cross_entropy(rows_, classes_, kLogFloor, input(0).data<float>(),
                                  input(1).data<int32_t>(), y.mutable_data<float>(), parallel());
  }
};

class LabelCrossEntropyGradientOperator : public LabelCrossEntropyBase {
 public:
  using LabelCrossEntropyBase::LabelCrossEntropyBase;

 protected:
  void run() override {
    const Tensor &x = input(0), &dy = input(2);
    check();
    CAFFE2_ENFORCE(dy.shape() == Shape{rows_}, describe_input(2), " has shape ", dy.shape().text(),
                   "; (", rows_, ",) is needed");
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    kernels().label_cross_entropy_gradient(rows_, classes_, kLogFloor, x.data<float>(),
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

// Share of rows whose label is among the top_k largest scores; NaN when there are no rows.
class AccuracyOperator : public LabelledRows {
 public:
  explicit AccuracyOperator(const OperatorContext& context)
      : LabelledRows(context), top_k_(args().integer("top_k")) {}

 protected:
  void run() override {
    const Tensor &x = input(0), &given = input(1);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    CAFFE2_ENFORCE(given.shape() == Shape{x.dim(0)}, describe_input(1), " has shape ",
                   given.shape().text(), "; (", x.dim(0), ",) is needed");
    check_labels(x.dim(0), x.dim(1));
    Tensor& y = output(0, {}, DataType::kFloat);
    const float* row = x.data<float>();
    const int32_t* labels = given.data<int32_t>();
    int64_t correct = 0;
    for (int64_t i = 0; i < rows_; i++, row += classes_) {
      const float own = row[labels[i]];
      // Of equal scores the one with the lower class number counts as larger.
      int64_t ahead = 0;
      for (int64_t j = 0; j < classes_; j++) {
        ahead += row[j] > own || (row[j] == own && j < labels[i]);
      }
      correct += ahead < top_k_;
    }
    y.mutable_data<float>()[0] =
        static_cast<float>(static_cast<double>(correct) / static_cast<double>(rows_));
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
