// Losses of orders: pairs that are to differ by a margin, lists, and sessions by NDCG.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/registry.h"
#include "operators/segments.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

double log1p_exp(double x) {  // log(1 + exp(x))
  return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class MarginOperator : public Operator {
 public:
  explicit MarginOperator(const OperatorContext& context)
      : Operator(context), margin_(args().real("margin")) {}

 protected:
  void require_sizes() const {
    for (int i = 1; i < inputs(); i++) {
      require_same_size(describe_input(i), input(i), describe_input(0), input(0));
    }
  }
  const float margin_;
};

class MarginRankingCriterionOperator : public MarginOperator {
 public:
  using MarginOperator::MarginOperator;

 protected:
  void run() override {
    require_sizes();
    const float *x1 = input(0).data<float>(), *x2 = input(1).data<float>();
    const int32_t* y = input(2).data<int32_t>();
    float* loss = output(0, input(0).shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t i = 0; i < input(0).size(); i++) {
      loss[i] = std::max(0.0f, margin_ - static_cast<float>(y[i]) * (x1[i] - x2[i]));
    }
  }
};

// Inputs X1, X2, Y, d(loss).
class MarginRankingCriterionGradientOperator : public MarginOperator {
 public:
  using MarginOperator::MarginOperator;

 protected:
  void run() override {
    require_sizes();
    const float *x1 = input(0).data<float>(), *x2 = input(1).data<float>();
    const int32_t* y = input(2).data<int32_t>();
    const float* d_loss = input(3).data<float>();
    Tensor& first = output(0, input(0).shape(), DataType::kFloat);
    Tensor& second = output(1, input(1).shape(), DataType::kFloat);
    float *dx1 = first.mutable_data<float>(), *dx2 = second.mutable_data<float>();
    for (int64_t i = 0; i < input(0).size(); i++) {
      const float wanted = static_cast<float>(y[i]);
      dx1[i] = margin_ - wanted * (x1[i] - x2[i]) >= 0 ? -wanted * d_loss[i] : 0;
      dx2[i] = -dx1[i];
    }
  }
};

class CosineEmbeddingCriterionOperator : public MarginOperator {
 public:
  using MarginOperator::MarginOperator;

 protected:
  void run() override {
    require_sizes();
    const float* s = input(0).data<float>();
    const int32_t* y = input(1).data<int32_t>();
    float* loss = output(0, input(0).shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t i = 0; i < input(0).size(); i++) {
      loss[i] = y[i] == 1 ? 1 - s[i] : std::max(0.0f, s[i] - margin_);
    }
  }
};

// Inputs S, Y, d(loss).
class CosineEmbeddingCriterionGradientOperator : public MarginOperator {
 public:
  using MarginOperator::MarginOperator;

 protected:
  void run() override {
    require_sizes();
    const float *s = input(0).data<float>(), *d_loss = input(2).data<float>();
    const int32_t* y = input(1).data<int32_t>();
    float* ds = output(0, input(0).shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t i = 0; i < input(0).size(); i++) {
      ds[i] = y[i] == 1 ? -d_loss[i] : s[i] >= margin_ ? d_loss[i] : 0;
    }
  }
};

class PairWiseBase : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  // Finds the lists of X and the labels; without lengths all rows are one.
  void find_lists(int lengths_input) {
    const Shape& shape = input(1).shape();
    CAFFE2_ENFORCE(shape.rank() == 1 || (shape.rank() == 2 && shape[1] == 1), describe_input(1),
                   " has shape ", shape.text(), "; (N,) or (N, 1) is needed");
    require_same_size(describe_input(0), input(0), describe_input(1), input(1));
    given_ = has_input(lengths_input);
    if (given_) find_segments(SegmentKind::kLengths, lengths_input, input(0).size());
  }
  int64_t lists() const { return given_ ? segments() : std::min<int64_t>(input(0).size(), 1); }
  int64_t begin(int64_t list) const { return given_ ? offset(list) : 0; }
  int64_t end(int64_t list) const { return given_ ? offset(list + 1) : input(0).size(); }

  // Calls f(i, j) for each pair of a list with label[i] > label[j]; how many there are.
  template <class F>
  int64_t visit(int64_t list, const F& f) const {
    const float* label = input(1).data<float>();
    int64_t pairs = 0;
    for (int64_t i = begin(list); i < end(list); i++) {
      for (int64_t j = begin(list); j < end(list); j++) {
        if (!(label[i] > label[j])) continue;
        f(i, j);
        pairs++;
      }
    }
    return pairs;
  }

 private:
  bool given_ = false;
};

class PairWiseLossOperator : public PairWiseBase {
 public:
  using PairWiseBase::PairWiseBase;

 protected:
  void run() override {
    find_lists(2);
    const float* x = input(0).data<float>();
    float* y = output(0, {lists()}, DataType::kFloat).mutable_data<float>();
    for (int64_t list = 0; list < lists(); list++) {
      double sum = 0;
      const int64_t pairs = visit(
          list, [&](int64_t i, int64_t j) { sum += log1p_exp(static_cast<double>(x[j]) - x[i]); });
      y[list] = static_cast<float>(sum / static_cast<double>(std::max<int64_t>(pairs, 1)));
    }
  }
};

// Inputs X, labels, dY, (lengths).
class PairWiseLossGradientOperator : public PairWiseBase {
 public:
  using PairWiseBase::PairWiseBase;

 protected:
  void run() override {
    find_lists(3);
    const Tensor &x = input(0), &dy = input(2);
    CAFFE2_ENFORCE(dy.size() == lists(), describe_input(2), " has shape ", dy.shape().text(), "; ",
                   lists(), " values are needed");
    double* sums = scratch<double>(x.size());
    const float *in = x.data<float>(), *grad = dy.data<float>();
    float* dx = output(0, x.shape(), DataType::kFloat).mutable_data<float>();
    std::fill(sums, sums + x.size(), 0.0);
    for (int64_t list = 0; list < lists(); list++) {
      const int64_t pairs = visit(list, [&](int64_t i, int64_t j) {
        const double pull = sigmoid(static_cast<double>(in[j]) - in[i]);
        sums[i] -= pull;
        sums[j] += pull;
      });
      const double scale = grad[list] / static_cast<double>(std::max<int64_t>(pairs, 1));
      for (int64_t i = begin(list); i < end(list); i++) {
        dx[i] = static_cast<float>(sums[i] * scale);
      }
    }
  }
};

// Inputs y, r, session lengths; outputs loss and lambdas.
class LambdaRankNdcgOperator : public SegmentBase {
 public:
  explicit LambdaRankNdcgOperator(const OperatorContext& context)
      : SegmentBase(context),
        ndcg_loss_(args().boolean("use_ndcg_as_loss")),
        exponential_(args().boolean("use_exp_gain") || !ndcg_loss_),
        normalize_(args().boolean("use_idcg_normalization")) {}

 protected:
  void run() override {
    const Tensor &y = input(0), &r = input(1);
    CAFFE2_ENFORCE(y.rank() == 1, describe_input(0), " has shape ", y.shape().text(),
                   "; one dimension is needed");
    require_same_shape(describe_input(0), y, describe_input(1), r);
    find_segments(SegmentKind::kLengths, 2, y.size());
    const auto n = static_cast<size_t>(y.size());
    Session all{y.data<float>(), r.data<float>(), nullptr, nullptr, nullptr, 0};
    all.gains = scratch<double>(n);
    all.discounts = scratch<double>(n);
    all.order = scratch<int64_t>(n);
    float* loss = output(0, {segments()}, DataType::kFloat).mutable_data<float>();
    float* dy = output(1, y.shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t k = 0; k < segments(); k++) {
      Session s = all;
      s.y += offset(k), s.r += offset(k), s.n = offset(k + 1) - offset(k);
      loss[k] = static_cast<float>(session(s, dy + offset(k)));
    }
  }

 private:
  struct Session {
    const float *y, *r;
    double *gains, *discounts;
    int64_t* order;
    int64_t n;
  };

  static double discount(int64_t place) { return 1 / std::log2(static_cast<double>(place) + 2); }

  // Places in descending order, NaN last; equal ones keep their order.
  static void sort(const Session& s, const float* values) {
    std::iota(s.order, s.order + s.n, int64_t{0});
    std::sort(s.order, s.order + s.n, [values](int64_t a, int64_t b) {
      const float x = values[a], y = values[b];
      if (x > y || (std::isnan(y) && !std::isnan(x))) return true;
      if (x < y || (std::isnan(x) && !std::isnan(y))) return false;
      return a < b;
    });
  }

  double session(const Session& s, float* dy) const {
    for (int64_t i = 0; i < s.n; i++) s.gains[i] = exponential_ ? std::exp2(s.r[i]) : s.r[i];
    double ideal = 0, found = 0;
    sort(s, s.r);
    for (int64_t place = 0; place < s.n; place++) {
      ideal += s.gains[s.order[place]] * discount(place);
    }
    sort(s, s.y);
    for (int64_t place = 0; place < s.n; place++) {
      s.discounts[s.order[place]] = discount(place);
      found += s.gains[s.order[place]] * discount(place);
    }
    const double scale = !normalize_ ? 1 : ideal > 0 ? 1 / ideal : 0;
    double loss = 0;
    for (int64_t i = 0; i < s.n; i++) {
      double lambda = 0;
      for (int64_t j = 0; j < s.n; j++) {
        const double change =
            std::fabs((s.gains[i] - s.gains[j]) * (s.discounts[i] - s.discounts[j]));
        const double sign = s.r[i] > s.r[j] ? 1 : -1;
        const double ahead = sign * (static_cast<double>(s.y[i]) - s.y[j]);
        lambda -= sign * change * sigmoid(-ahead);
        loss += change * log1p_exp(-ahead);
      }
      dy[i] = static_cast<float>(lambda * scale);
    }
    return (ndcg_loss_ ? ideal - found : loss) * scale;
  }

  const bool ndcg_loss_, exponential_, normalize_;
};

// Inputs y, session lengths, lambdas, d(loss).
class LambdaRankNdcgGradientOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor &y = input(0), &lambdas = input(2), &d_loss = input(3);
    CAFFE2_ENFORCE(y.rank() == 1, describe_input(0), " has shape ", y.shape().text(),
                   "; one dimension is needed");
    require_same_shape(describe_input(0), y, describe_input(2), lambdas);
    find_segments(SegmentKind::kLengths, 1, y.size());
    require_same_shape(describe_input(1), input(1), describe_input(3), d_loss);
    float* dy = output(0, y.shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t k = 0; k < segments(); k++) {
      for (int64_t i = offset(k); i < offset(k + 1); i++) {
        dy[i] = lambdas.data<float>()[i] * d_loss.data<float>()[k];
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(MarginRankingCriterion, MarginRankingCriterionOperator)
REGISTER_CPU_OPERATOR(MarginRankingCriterionGradient, MarginRankingCriterionGradientOperator)
REGISTER_CPU_OPERATOR(CosineEmbeddingCriterion, CosineEmbeddingCriterionOperator)
REGISTER_CPU_OPERATOR(CosineEmbeddingCriterionGradient, CosineEmbeddingCriterionGradientOperator)
REGISTER_CPU_OPERATOR(PairWiseLoss, PairWiseLossOperator)
REGISTER_CPU_OPERATOR(PairWiseLossGradient, PairWiseLossGradientOperator)
REGISTER_CPU_OPERATOR(LambdaRankNdcg, LambdaRankNdcgOperator)
REGISTER_CPU_OPERATOR(LambdaRankNdcgGradient, LambdaRankNdcgGradientOperator)

}  // namespace caffe2
