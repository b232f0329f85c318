// Functions made of straight lines, and histograms that find their own bins.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// Inputs predictions, and bounds, slopes and intercepts unless these are arguments.
class PiecewiseLinearOperator : public Operator {
 public:
  explicit PiecewiseLinearOperator(const OperatorContext& context)
      : Operator(context),
        bounds_(args().reals("bounds")),
        slopes_(args().reals("slopes")),
        intercepts_(args().reals("intercepts")),
        binary_(args().boolean("binary")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const int64_t columns = x.rank() == 2 ? x.dim(1) : 1;
    if (binary_) {
      CAFFE2_ENFORCE(x.rank() == 1 || (x.rank() == 2 && (columns == 1 || columns == 2)),
                     describe_input(0), " has shape ", x.shape().text(),
                     "; with binary=1 needed is (N,), (N, 1) or (N, 2)");
    } else {
      CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                     "; 2 dimensions are needed");
    }
    const Pieces pieces = find_pieces(binary_ ? 1 : columns);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const float* in = x.data<float>();
    float* out = y.mutable_data<float>();
    const bool pairs = binary_ && columns == 2;
    for_ranges(parallel(), x.dim(0), rows_per_range(columns), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        if (pairs) {
          out[2 * i + 1] = pieces.value(0, in[2 * i + 1]);
          out[2 * i] = 1 - out[2 * i + 1];
          continue;
        }
        for (int64_t k = 0; k < columns; k++) {
          out[i * columns + k] = pieces.value(k, in[i * columns + k]);
        }
      }
    });
  }

 private:
  struct Pieces {
    int64_t count;  // of each group
    const float *bounds, *slopes, *intercepts;

    float value(int64_t group, float x) const {
      const float *first = bounds + group * (count + 1), *last = first + count;
      if (x < *first) x = *first;
      if (x > *last) x = *last;
      const int64_t above = std::lower_bound(first, last + 1, x) - first;
      const int64_t piece = group * count + std::clamp<int64_t>(above - 1, 0, count - 1);
      return slopes[piece] * x + intercepts[piece];
    }
  };

  Pieces find_pieces(int64_t groups) const {
    const bool given = !bounds_.empty() || !slopes_.empty() || !intercepts_.empty();
    CAFFE2_ENFORCE(inputs() == 4 ? !given : inputs() == 1 && given,
                   "bounds, slopes and intercepts must be three arguments or three inputs");
    const bool in = inputs() == 4;
    const int64_t bounds = in ? input(1).size() : static_cast<int64_t>(bounds_.size());
    const int64_t slopes = in ? input(2).size() : static_cast<int64_t>(slopes_.size());
    const int64_t intercepts = in ? input(3).size() : static_cast<int64_t>(intercepts_.size());
    const int64_t count = groups > 0 ? slopes / groups : 0;
    CAFFE2_ENFORCE(count > 0 && slopes == groups * count && slopes == intercepts &&
                       bounds == groups * (count + 1),
                   "it has ", bounds, " bounds, ", slopes, " slopes and ", intercepts,
                   " intercepts for ", groups,
                   " columns; one bound more than slopes is needed for each");
    const Pieces pieces{count, in ? input(1).data<float>() : bounds_.data(),
                        in ? input(2).data<float>() : slopes_.data(),
                        in ? input(3).data<float>() : intercepts_.data()};
    for (int64_t g = 0; g < groups; g++) {
      const float* first = pieces.bounds + g * (count + 1);
      for (int64_t k = 0; k < count; k++) {
        CAFFE2_ENFORCE(first[k] <= first[k + 1], "the bounds of column ", g,
                       " do not rise: ", first[k], " before ", first[k + 1]);
      }
    }
    return pieces;
  }

  const std::vector<float> bounds_, slopes_, intercepts_;
  const bool binary_;
};

class SelfBinningHistogramOperator : public Operator {
 public:
  explicit SelfBinningHistogramOperator(const OperatorContext& context)
      : Operator(context),
        bins_(args().integer("num_bins")),
        logarithmic_(args().text("bin_spacing") == "logarithmic"),
        start_(args().real("logspace_start")),
        abs_(args().boolean("abs")) {
    CAFFE2_ENFORCE(bins_ >= 1, "argument 'num_bins' is ", bins_,
                   ". Number of bins must be greater than or equal to 1.");
    CAFFE2_ENFORCE(logarithmic_ || args().text("bin_spacing") == "linear",
                   "argument 'bin_spacing' is '", args().text("bin_spacing"),
                   "'. Bin spacing can be one of 'linear' or 'logarithmic'.");
  }

 protected:
  void run() override {
    for (int i = 1; i < inputs(); i++) {
      require_same_type(describe_input(0), input(0), describe_input(i), input(i));
    }
    dispatch<float, double>(input(0).type(), [&](auto kind) { count<decltype(kind)>(); });
  }

 private:
  // Calls f with each element.
  template <class T, class F>
  void visit(const F& f) const {
    for (int i = 0; i < inputs(); i++) {
      const T* x = input(i).data<T>();
      for (int64_t j = 0; j < input(i).size(); j++) f(i, abs_ ? std::fabs(x[j]) : x[j]);
    }
  }

  template <class T>
  void count() {
    int64_t total = 0;
    T least = 0, most = 0;
    visit<T>([&](int i, T x) {
      CAFFE2_ENFORCE(std::isfinite(x), describe_input(i), " holds ", x, ", which is not finite");
      least = total == 0 ? x : std::min(least, x);
      most = total == 0 ? x : std::max(most, x);
      total++;
    });
    Tensor& values = output(0, {bins_ + 1}, TypeOf<T>::value);
    Tensor& counts = output(1, {bins_ + 1}, DataType::kInt64);
    T* edges = values.mutable_data<T>();
    int64_t* found = counts.mutable_data<int64_t>();
    std::fill_n(edges, bins_ + 1, T{0});
    std::fill_n(found, bins_ + 1, int64_t{0});
    if (total == 0) return;
    double low = static_cast<double>(least), high = static_cast<double>(most);
    if (logarithmic_) {
      low = std::max(low, static_cast<double>(start_));
      high = std::max(low, high);
    }
    const double end = high + (high - low) * 1e-4;
    for (int64_t i = 0; i <= bins_; i++) {
      const double step = static_cast<double>(i) / static_cast<double>(bins_);
      edges[i] =
          static_cast<T>(logarithmic_ ? low * std::pow(end / low, step) : low + (end - low) * step);
    }
    edges[0] = static_cast<T>(low);
    edges[bins_] = static_cast<T>(end);
    if (edges[bins_] <= most) {
      found[0] = total;
      return;
    }
    visit<T>([&](int, T x) {
      const int64_t place = std::upper_bound(edges, edges + bins_ + 1, x) - edges - 1;
      found[std::max<int64_t>(place, 0)]++;
    });
  }

  const int64_t bins_;
  const bool logarithmic_;
  const float start_;
  const bool abs_;
};

}  // namespace

REGISTER_CPU_OPERATOR(PiecewiseLinearTransform, PiecewiseLinearOperator)
REGISTER_CPU_OPERATOR(SelfBinningHistogram, SelfBinningHistogramOperator)

}  // namespace caffe2
