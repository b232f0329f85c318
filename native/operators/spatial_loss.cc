// SpatialSoftmaxWithLoss and its gradient.
#include <algorithm>
#include <cmath>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

constexpr int32_t kDontCare = -1;  // the label of a point that does not count

// Logits [n][classes][plane], with a label and, where given, a weight for each point.
class SpatialLossBase : public Operator {
 public:
  explicit SpatialLossBase(const OperatorContext& context)
      : Operator(context), scale_(args().real("scale")) {}

 protected:
  struct Points {
    int64_t n, classes, plane;
    const int32_t* labels;
    const float* weights;  // or null
    double inverse;        // 1 / sum of the weights that count

    double weight(int64_t point) const {
      if (labels[point] == kDontCare) return 0;
      return weights ? weights[point] : 1;
    }
  };

  Points points(int weights_input) const {
    const Tensor &x = input(0), &labels = input(1);
    CAFFE2_ENFORCE(x.rank() == 4, describe_input(0), " has shape ", x.shape().text(),
                   "; 4 dimensions are needed");
    const Shape wanted{x.dim(0), x.dim(2), x.dim(3)};
    for (int i : {1, weights_input}) {
      if (i < 0) continue;
      CAFFE2_ENFORCE(input(i).shape() == wanted, describe_input(i), " has shape ",
                     input(i).shape().text(), "; ", wanted.text(), " is needed");
    }
    Points p{x.dim(0), x.dim(1), x.dim(2) * x.dim(3), labels.data<int32_t>(), nullptr, 0};
    if (weights_input >= 0) p.weights = input(weights_input).data<float>();
    double total = 0;
    for (int64_t i = 0; i < labels.size(); i++) {
      const int32_t label = p.labels[i];
      CAFFE2_ENFORCE(label == kDontCare || (label >= 0 && label < p.classes), "label ", label,
                     " at position ", i, " of ", describe_input(1), " is outside of [0, ",
                     p.classes, ") and not ", kDontCare);
      total += p.weight(i);
    }
    p.inverse = total > 0 ? 1 / total : 0;
    return p;
  }

  const float scale_;
};

class SpatialSoftmaxWithLossOperator : public SpatialLossBase {
 public:
  using SpatialLossBase::SpatialLossBase;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Points p = points(has_input(2) ? 2 : -1);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    Tensor& loss = output(1, {}, DataType::kFloat);
    const int64_t points = p.n * p.plane;
    double* losses = scratch<double>(points);
    const float* in = x.data<float>();
    float* out = y.mutable_data<float>();
    const int64_t step = rows_per_range(p.classes * 8);
    for_ranges(parallel(), points, step, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t at = i / p.plane * p.classes * p.plane + i % p.plane;
        losses[i] = softmax(p, in + at, out + at, p.labels[i]) * p.weight(i);
      }
    });
    double sum = 0;
    for (int64_t i = 0; i < points; i++) sum += losses[i];
    loss.mutable_data<float>()[0] =
        p.inverse > 0 ? static_cast<float>(scale_ * sum * p.inverse) : 0.0f;
  }

 private:
  // Of one point, whose classes are p.plane values apart; -log of the share of `label`.
  static double softmax(const Points& p, const float* x, float* y, int32_t label) {
    if (p.classes == 0) return 0;
    float most = x[0];
    for (int64_t c = 1; c < p.classes; c++) most = std::max(most, x[c * p.plane]);
    double sum = 0;
    for (int64_t c = 0; c < p.classes; c++) {
      const double e = std::exp(static_cast<double>(x[c * p.plane]) - most);
      y[c * p.plane] = static_cast<float>(e);
      sum += e;
    }
    for (int64_t c = 0; c < p.classes; c++) {
      y[c * p.plane] = static_cast<float>(y[c * p.plane] / sum);
    }
    if (label == kDontCare) return 0;
    return std::log(sum) - (static_cast<double>(x[label * p.plane]) - most);
  }
};

// Inputs X, labels, (weights), P, d(loss); output dX.
class SpatialSoftmaxWithLossGradientOperator : public SpatialLossBase {
 public:
  using SpatialLossBase::SpatialLossBase;

 protected:
  void run() override {
    const bool weighted = inputs() == 5;
    const Points p = points(weighted ? 2 : -1);
    const int share = weighted ? 3 : 2;
    const Tensor& x = input(0);
    require_same_shape(describe_input(0), x, describe_input(share), input(share));
    const float d_loss = scalar_value(input(share + 1), describe_input(share + 1));
    const double factor = static_cast<double>(scale_) * d_loss * p.inverse;
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    const float* in = input(share).data<float>();
    float* out = dx.mutable_data<float>();
    const int64_t step = rows_per_range(p.classes);
    for_ranges(parallel(), p.n * p.plane, step, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t at = i / p.plane * p.classes * p.plane + i % p.plane;
        const double weight = p.weight(i) * factor;
        for (int64_t c = 0; c < p.classes; c++) {
          const double difference = in[at + c * p.plane] - (c == p.labels[i] ? 1.0 : 0.0);
          out[at + c * p.plane] = static_cast<float>(difference * weight);
        }
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(SpatialSoftmaxWithLoss, SpatialSoftmaxWithLossOperator)
REGISTER_CPU_OPERATOR(SpatialSoftmaxWithLossGradient, SpatialSoftmaxWithLossGradientOperator)

}  // namespace caffe2
