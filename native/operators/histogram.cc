// How values are spread: histograms, quantiles and percentiles.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/segments.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// All inputs are floats, or all are doubles.
class FloatingInputs : public Operator {
 public:
  using Operator::Operator;

 protected:
  void require_one_type() const {
    for (int i = 1; i < inputs(); i++) {
      require_same_type(describe_input(0), input(0), describe_input(i), input(i));
    }
  }

  // Calls f with each element as a double.
  template <class F>
  void visit(const F& f) const {
    dispatch<float, double>(input(0).type(), [&](auto zero) {
      using T = decltype(zero);
      for (int i = 0; i < inputs(); i++) {
        const T* x = input(i).data<T>();
        for (int64_t j = 0; j < input(i).size(); j++) f(static_cast<double>(x[j]));
      }
    });
  }
};

class HistogramOperator : public FloatingInputs {
 public:
  explicit HistogramOperator(const OperatorContext& context)
      : FloatingInputs(context), edges_(args().reals("bin_edges")) {
    CAFFE2_ENFORCE(edges_.size() >= 2, "argument 'bin_edges' has ", edges_.size(),
                   " values. Number of bin edges must be greater than or equal to 2");
    for (size_t i = 1; i < edges_.size(); i++) {
      CAFFE2_ENFORCE(edges_[i] > edges_[i - 1], "argument 'bin_edges' holds ", edges_[i], " after ",
                     edges_[i - 1], "; bin_edges must be a strictly increasing sequence of values");
    }
  }

 protected:
  void run() override {
    require_one_type();
    const auto bins = static_cast<int64_t>(edges_.size()) - 1;
    int64_t* counts = output(0, {bins}, DataType::kInt64).mutable_data<int64_t>();
    std::fill(counts, counts + bins, int64_t{0});
    visit([&](double x) {
      const int64_t bin = std::upper_bound(edges_.begin(), edges_.end(), x) - edges_.begin() - 1;
      if (bin >= 0 && bin < bins) counts[bin]++;
    });
  }

 private:
  const std::vector<float> edges_;
};

class AccumulateHistogramOperator : public Operator {
 public:
  explicit AccumulateHistogramOperator(const OperatorContext& context)
      : Operator(context),
        lower_(args().real("lower_bound")),
        upper_(args().real("upper_bound")),
        buckets_(args().integer("num_buckets")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const int64_t n = buckets_ + 2;
    Tensor& now = output(0, {n}, DataType::kInt64);
    Tensor& all = output(1, {n}, DataType::kInt64);
    total_.resize(checked_size(n));
    int64_t* counts = now.mutable_data<int64_t>();
    std::fill(counts, counts + n, int64_t{0});
    for (int64_t i = 0; i < x.size(); i++) {
      const float value = x.data<float>()[i];
      if (!std::isnan(value)) counts[bucket(value)]++;
    }
    for (int64_t i = 0; i < n; i++) total_[i] += counts[i];
    std::copy(total_.begin(), total_.end(), all.mutable_data<int64_t>());
  }

 private:
  int64_t bucket(float x) const {
    if (x < lower_) return 0;
    if (x >= upper_) return buckets_ + 1;
    const float width = (upper_ - lower_) / static_cast<float>(buckets_);
    const float place = std::floor((x - lower_) / width);
    return place >= static_cast<float>(buckets_) ? buckets_ : static_cast<int64_t>(place) + 1;
  }

  const float lower_, upper_;
  const int64_t buckets_;
  std::vector<int64_t> total_;
};

class QuantileOperator : public FloatingInputs {
 public:
  explicit QuantileOperator(const OperatorContext& context)
      : FloatingInputs(context),
        quantile_(args().real("quantile")),
        tolerance_(args().real("tol")),
        absolute_(args().boolean("abs")) {}

 protected:
  void run() override {
    require_one_type();
    double low = std::numeric_limits<double>::infinity(), high = -low;
    int64_t n = 0;
    bool finite = true;
    visit([&](double x) {
      const double value = absolute_ ? std::fabs(x) : x;
      finite = finite && std::isfinite(x);
      low = std::min(low, value), high = std::max(high, value);
      n++;
    });
    CAFFE2_ENFORCE(n > 0 && finite, describe_input(0),
                   " and the other inputs have no element, or one that is not finite");
    Tensor& y = output(0, {1}, input(0).type());
    const auto wanted = static_cast<int64_t>(std::ceil(quantile_ * static_cast<float>(n)));
    dispatch<float, double>(y.type(), [&](auto zero) {
      using T = decltype(zero);
      y.mutable_data<T>()[0] = search(static_cast<T>(low), static_cast<T>(high), wanted);
    });
  }

 private:
  // In the type of X: whether the middle is one of its values is a matter of rounding.
  template <class T>
  T search(T low, T high, int64_t wanted) const {
    if (count(low) >= wanted) return low;
    while (high - low > static_cast<T>(tolerance_) * (std::fabs(low) + std::fabs(high))) {
      const T middle = low / 2 + high / 2;
      if (middle == low || middle == high) break;
      const int64_t found = count(middle);
      if (found == wanted) return middle;
      (found > wanted ? high : low) = middle;
    }
    return high;
  }

  int64_t count(double most) const {
    int64_t found = 0;
    visit([&](double x) { found += (absolute_ ? std::fabs(x) : x) <= most; });
    return found;
  }

  const float quantile_;
  const double tolerance_;
  const bool absolute_;
};

// Raises unless the samples of one feature, `stride` values apart, increase or stay.
template <class What>
void require_increasing(const float* raw, int64_t n, int64_t stride, int64_t feature,
                        const What& what) {
  for (int64_t i = 0; i < n; i++) {
    const float value = raw[i * stride];
    CAFFE2_ENFORCE(i == 0 ? !std::isnan(value) : value >= raw[(i - 1) * stride], what,
                   " gives feature ", feature, " the sample ", value, " at position ", i,
                   "; samples must not decrease");
  }
}

// How many of n samples, `stride` values apart, come before x: those below it, or up to it.
template <bool kOrEqual>
int64_t samples_before(const float* raw, int64_t n, int64_t stride, float x) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    const float value = raw[middle * stride];
    const bool before = kOrEqual ? value <= x : value < x;
    (before ? low : high) = before ? middle + 1 : middle;
  }
  return low;
}

float between(double x, double x0, double x1, double y0, double y1) {
  return static_cast<float>(y0 + (x - x0) / (x1 - x0) * (y1 - y0));
}

// Inputs values [n, d], samples (value, percentile) [m, 2], lengths [d].
class PercentileOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor &x = input(0), &samples = input(1), &lengths = input(2);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    CAFFE2_ENFORCE(samples.rank() == 2 && samples.dim(1) == 2, describe_input(1), " has shape ",
                   samples.shape().text(), "; 2 columns are needed");
    const int64_t features = x.dim(1);
    CAFFE2_ENFORCE(lengths.shape() == Shape{features}, describe_input(2), " has shape ",
                   lengths.shape().text(), "; (", features, ",) is needed");
    find_segments(SegmentKind::kLengths, 2, samples.dim(0));
    const float* pairs = samples.data<float>();
    for (int64_t f = 0; f < features; f++) {
      require_increasing(pairs + 2 * offset(f), offset(f + 1) - offset(f), 2, f, describe_input(1));
    }
    float* y = output(0, x.shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t i = 0; i < x.size(); i++) {
      const int64_t f = i % features;
      y[i] = percentile(pairs + 2 * offset(f), offset(f + 1) - offset(f), x.data<float>()[i]);
    }
  }

 private:
  static float percentile(const float* pairs, int64_t n, float x) {
    const int64_t k = samples_before<false>(pairs, n, 2, x);
    if (k == n) return 1;
    const float* above = pairs + 2 * k;
    if (above[0] == x) return above[1];
    return k == 0 ? 0 : between(x, above[-2], above[0], above[-1], above[1]);
  }
};

class BisectPercentileOperator : public Operator {
 public:
  explicit BisectPercentileOperator(const OperatorContext& context)
      : Operator(context),
        raw_(args().reals("percentile_raw")),
        mapping_(args().reals("percentile_mapping")),
        lower_(args().reals("percentile_lower")),
        upper_(args().reals("percentile_upper")) {
    const size_t n = raw_.size();
    CAFFE2_ENFORCE(mapping_.size() == n && lower_.size() == n && upper_.size() == n,
                   "arguments 'percentile_raw', '_mapping', '_lower' and '_upper' must have "
                   "equally many values");
    for (const int64_t length : args().integers("lengths")) {
      const int64_t begin = offsets_.back();
      CAFFE2_ENFORCE(length <= static_cast<int64_t>(n) - begin,
                     "argument 'lengths' sums to more than the ", n, " samples");
      require_increasing(raw_.data() + begin, length, 1, static_cast<int64_t>(offsets_.size()) - 1,
                         "argument 'percentile_raw'");
      offsets_.push_back(begin + length);
    }
    CAFFE2_ENFORCE(offsets_.back() == static_cast<int64_t>(n), "argument 'lengths' sums to ",
                   offsets_.back(), "; there are ", n, " samples");
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    const auto features = static_cast<int64_t>(offsets_.size()) - 1;
    CAFFE2_ENFORCE(x.rank() == 2 && x.dim(1) == features, describe_input(0), " has shape ",
                   x.shape().text(), "; (N, ", features, ") is needed");
    float* y = output(0, x.shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t i = 0; i < x.size(); i++) {
      const int64_t f = i % features;
      y[i] = percentile(offsets_[f], offsets_[f + 1], x.data<float>()[i]);
    }
  }

 private:
  float percentile(int64_t begin, int64_t end, float x) const {
    if (std::isnan(x)) return x;
    const int64_t k = begin + samples_before<true>(raw_.data() + begin, end - begin, 1, x);
    if (k > begin && raw_[k - 1] == x) return mapping_[k - 1];
    if (k == end) return 1;
    return k == begin ? 0 : between(x, raw_[k - 1], raw_[k], upper_[k - 1], lower_[k]);
  }

  const std::vector<float> raw_, mapping_, lower_, upper_;
  std::vector<int64_t> offsets_{0};
};

}  // namespace

REGISTER_CPU_OPERATOR(Histogram, HistogramOperator)
REGISTER_CPU_OPERATOR(AccumulateHistogram, AccumulateHistogramOperator)
REGISTER_CPU_OPERATOR(Quantile, QuantileOperator)
REGISTER_CPU_OPERATOR(Percentile, PercentileOperator)
REGISTER_CPU_OPERATOR(BisectPercentile, BisectPercentileOperator)

}  // namespace caffe2
