// How good predictions are: MultiClassAccuracy, Perplexity, APMeter.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class MultiClassAccuracyOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &x = input(0), &labels = input(1);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    const int64_t rows = x.dim(0), classes = x.dim(1);
    CAFFE2_ENFORCE(labels.shape() == Shape{rows}, describe_input(1), " has shape ",
                   labels.shape().text(), "; (", rows, ",) is needed");
    const int32_t* label = labels.data<int32_t>();
    for (int64_t i = 0; i < rows; i++) {
      CAFFE2_ENFORCE(label[i] >= 0 && label[i] < classes, "label ", label[i], " at position ", i,
                     " of ", describe_input(1), " is outside of [0, ", classes, ")");
    }
    Tensor& accuracies = output(0, {classes}, DataType::kFloat);
    Tensor& amounts = output(1, {classes}, DataType::kInt32);
    int64_t* right = scratch<int64_t>(classes);
    const float* row = x.data<float>();
    float* share = accuracies.mutable_data<float>();
    int32_t* amount = amounts.mutable_data<int32_t>();
    std::fill(right, right + classes, int64_t{0});
    std::fill(amount, amount + classes, 0);
    for (int64_t i = 0; i < rows; i++, row += classes) {
      amount[label[i]]++;
      right[label[i]] += best(row, classes) == label[i];
    }
    for (int64_t c = 0; c < classes; c++) {
      share[c] = static_cast<float>(static_cast<double>(right[c]) / std::max(amount[c], 1));
    }
  }

 private:
  static int64_t best(const float* row, int64_t n) {
    int64_t found = 0;
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < n; i++) {
      if (row[i] > most) most = row[found = i];
    }
    return found;
  }
};

class PerplexityOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    float* y = output(0, {}, DataType::kFloat).mutable_data<float>();
    double sum = 0;
    for (int64_t i = 0; i < x.size(); i++) sum += std::log(static_cast<double>(x.data<float>()[i]));
    y[0] = static_cast<float>(std::exp(-sum / static_cast<double>(std::max<int64_t>(x.size(), 1))));
  }
};

// Keeps the last rows in a ring.
class APMeterOperator : public Operator {
 public:
  explicit APMeterOperator(const OperatorContext& context)
      : Operator(context), limit_(args().integer("buffer_size")) {}

 protected:
  void run() override {
    const Tensor &x = input(0), &labels = input(1);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    require_same_shape(describe_input(0), x, describe_input(1), labels);
    const int64_t rows = x.dim(0), classes = x.dim(1);
    CAFFE2_ENFORCE(classes_ < 0 || classes == classes_, describe_input(0), " has ", classes,
                   " columns; it had ", classes_, " in earlier runs");
    const int32_t* label = labels.data<int32_t>();
    for (int64_t i = 0; i < labels.size(); i++) {
      CAFFE2_ENFORCE(label[i] == 0 || label[i] == 1, describe_input(1), " holds ", label[i],
                     " at position ", i, "; allowed are 0 and 1");
    }
    Tensor& y = output(0, {classes}, DataType::kFloat);
    const int64_t kept = std::min(limit_, kept_ + std::min(limit_, rows));
    const auto size = checked_size(checked_multiply(kept, classes));
    auto* order = scratch<int64_t>(kept);
    if (scores_.size() < size) scores_.resize(size);
    if (truth_.size() < size) truth_.resize(size);
    classes_ = classes;
    kept_ = kept;
    for (int64_t i = std::max<int64_t>(0, rows - limit_); i < rows; i++) {
      std::copy_n(x.data<float>() + i * classes, classes, scores_.begin() + next_ * classes);
      std::copy_n(label + i * classes, classes, truth_.begin() + next_ * classes);
      next_ = (next_ + 1) % limit_;
    }
    for (int64_t c = 0; c < classes; c++) y.mutable_data<float>()[c] = precision(c, order);
  }

 private:
  // Row `age` of the ring, counted from the oldest.
  int64_t place(int64_t age) const { return kept_ < limit_ ? age : (next_ + age) % limit_; }

  float precision(int64_t c, int64_t* order) const {
    const auto score = [=, this](int64_t age) { return scores_[place(age) * classes_ + c]; };
    std::iota(order, order + kept_, int64_t{0});
    std::sort(order, order + kept_, [&](int64_t a, int64_t b) {
      const float x = score(a), y = score(b);
      if (x > y || (std::isnan(y) && !std::isnan(x))) return true;
      if (x < y || (std::isnan(x) && !std::isnan(y))) return false;
      return a < b;
    });
    double sum = 0;
    int64_t found = 0;
    for (int64_t i = 0; i < kept_; i++) {
      if (truth_[place(order[i]) * classes_ + c] == 0) continue;
      found++;
      sum += static_cast<double>(found) / static_cast<double>(i + 1);
    }
    return static_cast<float>(sum / static_cast<double>(std::max<int64_t>(found, 1)));
  }

  const int64_t limit_;
  int64_t classes_ = -1, kept_ = 0, next_ = 0;
  std::vector<float> scores_;
  std::vector<int32_t> truth_;
};

}  // namespace

REGISTER_CPU_OPERATOR(MultiClassAccuracy, MultiClassAccuracyOperator)
REGISTER_CPU_OPERATOR(Perplexity, PerplexityOperator)
REGISTER_CPU_OPERATOR(APMeter, APMeterOperator)

}  // namespace caffe2
