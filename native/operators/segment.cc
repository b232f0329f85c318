// Reductions over segments and their gradients.
//
// All are one loop: over the rows of each segment, where what follows says which row of the data
// it is (indices) and what it counts (weights).
#include <cmath>

#include "core/registry.h"
#include "operators/half.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

enum class Reducer { kSum, kMean, kWeightedSum, kPositional, kMax, kLogSumExp, kLogMeanExp };

constexpr bool is_weighted(Reducer reducer) {
  return reducer == Reducer::kWeightedSum || reducer == Reducer::kPositional;
}

inline float value_of(float value) { return value; }
inline float value_of(uint16_t half) { return half_to_float(half); }

// Inputs: DATA, SCALARS of weighted reducers, INDICES of sparse operators, segments.
template <SegmentKind kind, Reducer reducer, bool sparse>
class SegmentOperator : public SegmentBase {
 public:
  explicit SegmentOperator(const OperatorContext& context) : SegmentBase(context) {
    if constexpr (kind == SegmentKind::kUnsorted) num_segments_ = args().integer("num_segments");
  }

 protected:
  void run() override {
    const Tensor& data = input(0);
    constexpr int kIndices = 1 + is_weighted(reducer), kSegments = kIndices + sparse;
    CAFFE2_ENFORCE(data.rank() >= 1, describe_input(0), " is a scalar; rows are needed");
    const int64_t* indices = nullptr;
    int64_t rows = data.dim(0);
    if constexpr (sparse) {
      indices = find_indices(kIndices, data.dim(0));
      rows = input(kIndices).size();
    }
    find_segments(kind, kSegments, rows, num_segments_);
    const float* weights = nullptr;
    if constexpr (is_weighted(reducer)) {
      check_weights(input(1));
      weights = input(1).template data<float>();
    }
    Tensor& y = output(0, with_rows(data.shape(), segments()), DataType::kFloat);
    if constexpr (kind == SegmentKind::kUnsorted) group_rows();
    const int64_t width = data.shape().product(1, data.rank());
    if (data.type() == DataType::kFloat) {
      reduce(data.data<float>(), indices, weights, width, y.mutable_data<float>());
    } else {
      reduce(elements<uint16_t>(data), indices, weights, width, y.mutable_data<float>());
    }
  }

 private:
  void check_weights(const Tensor& weights) const {
    int64_t needed = rows();
    if constexpr (reducer == Reducer::kPositional) {
      needed = 0;
      for (int64_t k = 0; k < segments(); k++) {
        needed = std::max(needed, offset(k + 1) - offset(k));
      }
      CAFFE2_ENFORCE(weights.rank() == 1 && weights.size() >= needed, describe_input(1),
                     " has shape ", weights.shape().text(), ", but the longest segment has ",
                     needed, " rows");
    } else {
      CAFFE2_ENFORCE(weights.shape() == Shape{needed}, describe_input(1), " has shape ",
                     weights.shape().text(), "; (", needed, ",) is needed");
    }
  }

  template <class T>
  void reduce(const T* data, const int64_t* indices, const float* weights, int64_t width,
              float* out) const {
    const int64_t mean_rows = segments() > 0 ? rows() / segments() + 1 : 1;
    for_ranges(parallel(), segments(), rows_per_block(width * mean_rows),
               [&](int64_t k, int64_t end) {
                 for (; k < end; k++) segment(data, indices, weights, width, k, out + k * width);
               });
  }

  template <class T>
  void segment(const T* data, const int64_t* indices, const float* weights, int64_t width,
               int64_t k, float* out) const {
    const int64_t begin = offset(k), end = offset(k + 1);
    const auto source = [&](int64_t p) {
      const int64_t j = row(p);
      return data + (sparse ? indices[j] : j) * width;
    };
    std::fill_n(out, width, 0.0f);
    if (begin == end) return;
    if constexpr (reducer == Reducer::kMax || reducer == Reducer::kLogSumExp ||
                  reducer == Reducer::kLogMeanExp) {
      const T* first = source(begin);
      for (int64_t i = 0; i < width; i++) out[i] = value_of(first[i]);
      for (int64_t p = begin + 1; p < end; p++) {
        const T* in = source(p);
        for (int64_t i = 0; i < width; i++) out[i] = std::max(out[i], value_of(in[i]));
      }
      if constexpr (reducer != Reducer::kMax) {
        const double scale = reducer == Reducer::kLogMeanExp ? end - begin : 1;
        for (int64_t i = 0; i < width; i++) {
          double sum = 0;
          for (int64_t p = begin; p < end; p++) sum += std::exp(value_of(source(p)[i]) - out[i]);
          out[i] += static_cast<float>(std::log(sum / scale));
        }
      }
    } else {
      constexpr int64_t kAhead = 8;  // rows that are fetched while others are added
      for (int64_t p = begin; p < end; p++) {
        if (sparse && p + kAhead < end) __builtin_prefetch(source(p + kAhead));
        const T* in = source(p);
        const float weight = reducer == Reducer::kWeightedSum ? weights[row(p)]
                             : is_weighted(reducer)           ? weights[p - begin]
                                                              : 1.0f;
        for (int64_t i = 0; i < width; i++) out[i] += weight * value_of(in[i]);
      }
      if constexpr (reducer == Reducer::kMean) {
        const float scale = 1.0f / static_cast<float>(end - begin);
        for (int64_t i = 0; i < width; i++) out[i] *= scale;
      }
    }
  }

  int64_t num_segments_ = -1;
};

// What every gradient does: dX of each row from dY of its segment.
class SegmentGradientBase : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void check_gradient(int i) const {
    const Tensor& dy = input(i);
    CAFFE2_ENFORCE(dy.rank() >= 1 && dy.dim(0) == segments(), describe_input(i), " has shape ",
                   dy.shape().text(), ", but there are ", segments(), " segments");
  }

  // Calls f(row, dY of its segment, number of rows of the segment) for every row.
  template <class F>
  void for_rows(const Tensor& dy, const F& f) const {
    const float* grad = dy.data<float>();
    const int64_t width = dy.shape().product(1, dy.rank());
    for_ranges(parallel(), segments(), rows_per_block(width), [&](int64_t k, int64_t end) {
      for (; k < end; k++) {
        for (int64_t p = offset(k); p < offset(k + 1); p++) {
          f(row(p), grad + k * width, k, static_cast<float>(offset(k + 1) - offset(k)));
        }
      }
    });
  }
};

// Inputs: SCALARS of the weighted sum, dY, segments, and maybe one with as many rows as dX.
template <SegmentKind kind, Reducer reducer>
class SpreadOperator : public SegmentGradientBase {
 public:
  using SegmentGradientBase::SegmentGradientBase;

 protected:
  void run() override {
    constexpr int kWeighted = is_weighted(reducer);
    const Tensor& dy = input(kWeighted);
    int64_t rows = -1;
    if (has_input(kWeighted + 2)) {
      const Tensor& like = input(kWeighted + 2);
      CAFFE2_ENFORCE(like.rank() >= 1, describe_input(kWeighted + 2), " is a scalar");
      rows = like.dim(0);
    }
    this->find_segments(kind, kWeighted + 1, rows,
                        kind == SegmentKind::kUnsorted && dy.rank() > 0 ? dy.dim(0) : -1);
    check_gradient(kWeighted);
    const float* weights = nullptr;
    if constexpr (kWeighted) {
      CAFFE2_ENFORCE(input(0).shape() == Shape{this->rows()}, describe_input(0), " has shape ",
                     input(0).shape().text(), "; (", this->rows(), ",) is needed");
      weights = input(0).template data<float>();
    }
    const int64_t width = dy.shape().product(1, dy.rank());
    Tensor& dx = output(0, with_rows(dy.shape(), this->rows()), DataType::kFloat);
    float* out = dx.mutable_data<float>();
    if constexpr (kind == SegmentKind::kUnsorted) group_rows();
    for_rows(dy, [&](int64_t j, const float* grad, int64_t, float count) {
      const float factor = kWeighted ? weights[j] : reducer == Reducer::kMean ? 1 / count : 1;
      for (int64_t i = 0; i < width; i++) out[j * width + i] = factor * grad[i];
    });
  }
};

// Inputs: SCALARS, dY, LENGTHS, DATA and, of sparse operators, INDICES; outputs dX and dSCALARS.
template <bool sparse>
class WeightedGradientOperator : public SegmentGradientBase {
 public:
  using SegmentGradientBase::SegmentGradientBase;

 protected:
  void run() override {
    const Tensor &weights = input(0), &dy = input(1), &data = input(3);
    find_segments(SegmentKind::kLengths, 2, weights.rank() == 1 ? weights.size() : -1);
    check_gradient(1);
    CAFFE2_ENFORCE(weights.shape() == Shape{rows()}, describe_input(0), " has shape ",
                   weights.shape().text(), "; (", rows(), ",) is needed");
    const int64_t width = dy.shape().product(1, dy.rank());
    CAFFE2_ENFORCE(data.rank() >= 1 && with_rows(data.shape(), segments()) == dy.shape() &&
                       (sparse || data.dim(0) == rows()),
                   describe_input(3), " has shape ", data.shape().text(), "; ", describe_input(1),
                   " has shape ", dy.shape().text(), " and there are ", rows(), " rows");
    const int64_t* indices = nullptr;
    if constexpr (sparse) {
      indices = find_indices(4, data.dim(0));
      CAFFE2_ENFORCE(input(4).size() == rows(), describe_input(4), " has shape ",
                     input(4).shape().text(), "; (", rows(), ",) is needed");
    }
    Tensor& dx = output(0, with_rows(dy.shape(), rows()), DataType::kFloat);
    Tensor& dw = output(1, {rows()}, DataType::kFloat);
    const float *w = weights.data<float>(), *x = data.data<float>();
    float *out = dx.mutable_data<float>(), *out_w = dw.mutable_data<float>();
    for_rows(dy, [&](int64_t j, const float* grad, int64_t, float) {
      const float* in = x + (sparse ? indices[j] : j) * width;
      double sum = 0;
      for (int64_t i = 0; i < width; i++) {
        out[j * width + i] = w[j] * grad[i];
        sum += static_cast<double>(in[i]) * grad[i];
      }
      out_w[j] = static_cast<float>(sum);
    });
  }
};

// From X and Y, too; where both are equal the maximum takes the whole gradient, every time.
template <SegmentKind kind, Reducer reducer, int X, int Y, int dY, int Segments>
class ForwardGradientOperator : public SegmentGradientBase {
 public:
  using SegmentGradientBase::SegmentGradientBase;

 protected:
  void run() override {
    const Tensor &x = input(X), &y = input(Y), &dy = input(dY);
    CAFFE2_ENFORCE(x.rank() >= 1, describe_input(X), " is a scalar; rows are needed");
    find_segments(kind, Segments, x.dim(0));
    check_gradient(dY);
    const Shape wanted = with_rows(x.shape(), segments());
    for (const int i : {Y, dY}) {
      // In the step of a recurrent net, dY has dimensions of size 1 besides.
      const bool wide = i == dY && dy.size() == wanted.size();
      CAFFE2_ENFORCE(wide || input(i).shape() == wanted, describe_input(i), " has shape ",
                     input(i).shape().text(), "; ", describe_input(X), " has shape ",
                     x.shape().text(), " and there are ", segments(), " segments");
    }
    const int64_t width = dy.shape().product(1, dy.rank());
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    const float *in = x.data<float>(), *reduced = y.data<float>();
    float* out = dx.mutable_data<float>();
    for_rows(dy, [&](int64_t j, const float* grad, int64_t k, float count) {
      for (int64_t i = 0; i < width; i++) {
        const float from = in[j * width + i], to = reduced[k * width + i];
        float slope = 1;
        if constexpr (reducer == Reducer::kMean) slope = 1 / count;
        if constexpr (reducer == Reducer::kMax) slope = from == to ? 1 : 0;
        if constexpr (reducer == Reducer::kLogSumExp) slope = std::exp(from - to);
        if constexpr (reducer == Reducer::kLogMeanExp) slope = std::exp(from - to) / count;
        out[j * width + i] = slope * grad[i];
      }
    });
  }
};

template <Reducer reducer>
using RangeOperator = SegmentOperator<SegmentKind::kSorted, reducer, false>;
template <Reducer reducer>
using RangeGradient = ForwardGradientOperator<SegmentKind::kSorted, reducer, 0, 1, 2, 3>;

}  // namespace

// clang-format off
REGISTER_CPU_OPERATOR(LengthsSum, SegmentOperator<SegmentKind::kLengths, Reducer::kSum, false>)
REGISTER_CPU_OPERATOR(LengthsMean, SegmentOperator<SegmentKind::kLengths, Reducer::kMean, false>)
REGISTER_CPU_OPERATOR(LengthsWeightedSum, SegmentOperator<SegmentKind::kLengths, Reducer::kWeightedSum, false>)
REGISTER_CPU_OPERATOR(SparseLengthsSum, SegmentOperator<SegmentKind::kLengths, Reducer::kSum, true>)
REGISTER_CPU_OPERATOR(SparseLengthsMean, SegmentOperator<SegmentKind::kLengths, Reducer::kMean, true>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSum, SegmentOperator<SegmentKind::kLengths, Reducer::kWeightedSum, true>)
REGISTER_CPU_OPERATOR(SortedSegmentSum, SegmentOperator<SegmentKind::kSorted, Reducer::kSum, false>)
REGISTER_CPU_OPERATOR(SortedSegmentMean, SegmentOperator<SegmentKind::kSorted, Reducer::kMean, false>)
REGISTER_CPU_OPERATOR(SortedSegmentWeightedSum, SegmentOperator<SegmentKind::kSorted, Reducer::kWeightedSum, false>)
REGISTER_CPU_OPERATOR(SparseSortedSegmentSum, SegmentOperator<SegmentKind::kSorted, Reducer::kSum, true>)
REGISTER_CPU_OPERATOR(SparseSortedSegmentMean, SegmentOperator<SegmentKind::kSorted, Reducer::kMean, true>)
REGISTER_CPU_OPERATOR(SparseSortedSegmentWeightedSum, SegmentOperator<SegmentKind::kSorted, Reducer::kWeightedSum, true>)
REGISTER_CPU_OPERATOR(UnsortedSegmentSum, SegmentOperator<SegmentKind::kUnsorted, Reducer::kSum, false>)
REGISTER_CPU_OPERATOR(UnsortedSegmentMean, SegmentOperator<SegmentKind::kUnsorted, Reducer::kMean, false>)
REGISTER_CPU_OPERATOR(UnsortedSegmentWeightedSum, SegmentOperator<SegmentKind::kUnsorted, Reducer::kWeightedSum, false>)
REGISTER_CPU_OPERATOR(SparseUnsortedSegmentSum, SegmentOperator<SegmentKind::kUnsorted, Reducer::kSum, true>)
REGISTER_CPU_OPERATOR(SparseUnsortedSegmentMean, SegmentOperator<SegmentKind::kUnsorted, Reducer::kMean, true>)
REGISTER_CPU_OPERATOR(SparseUnsortedSegmentWeightedSum, SegmentOperator<SegmentKind::kUnsorted, Reducer::kWeightedSum, true>)
REGISTER_CPU_OPERATOR(LengthsMax, SegmentOperator<SegmentKind::kLengths, Reducer::kMax, false>)
REGISTER_CPU_OPERATOR(SparseLengthsPositionalWeightedSum, SegmentOperator<SegmentKind::kLengths, Reducer::kPositional, true>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeSum, RangeOperator<Reducer::kSum>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeMean, RangeOperator<Reducer::kMean>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeMax, RangeOperator<Reducer::kMax>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeLogSumExp, RangeOperator<Reducer::kLogSumExp>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeLogMeanExp, RangeOperator<Reducer::kLogMeanExp>)

REGISTER_CPU_OPERATOR(LengthsSumGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kSum>)
REGISTER_CPU_OPERATOR(LengthsMeanGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kMean>)
REGISTER_CPU_OPERATOR(LengthsWeightedSumGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kWeightedSum>)
REGISTER_CPU_OPERATOR(SparseLengthsSumGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kSum>)
REGISTER_CPU_OPERATOR(SparseLengthsMeanGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kMean>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSumGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kWeightedSum>)
REGISTER_CPU_OPERATOR(SortedSegmentSumGradient, SpreadOperator<SegmentKind::kSorted, Reducer::kSum>)
REGISTER_CPU_OPERATOR(SortedSegmentMeanGradient, SpreadOperator<SegmentKind::kSorted, Reducer::kMean>)
REGISTER_CPU_OPERATOR(SortedSegmentWeightedSumGradient, SpreadOperator<SegmentKind::kSorted, Reducer::kWeightedSum>)
REGISTER_CPU_OPERATOR(SparseSortedSegmentSumGradient, SpreadOperator<SegmentKind::kSorted, Reducer::kSum>)
REGISTER_CPU_OPERATOR(SparseSortedSegmentMeanGradient, SpreadOperator<SegmentKind::kSorted, Reducer::kMean>)
REGISTER_CPU_OPERATOR(SparseSortedSegmentWeightedSumGradient, SpreadOperator<SegmentKind::kSorted, Reducer::kWeightedSum>)
REGISTER_CPU_OPERATOR(UnsortedSegmentSumGradient, SpreadOperator<SegmentKind::kUnsorted, Reducer::kSum>)
REGISTER_CPU_OPERATOR(UnsortedSegmentMeanGradient, SpreadOperator<SegmentKind::kUnsorted, Reducer::kMean>)
REGISTER_CPU_OPERATOR(UnsortedSegmentWeightedSumGradient, SpreadOperator<SegmentKind::kUnsorted, Reducer::kWeightedSum>)
REGISTER_CPU_OPERATOR(SparseUnsortedSegmentSumGradient, SpreadOperator<SegmentKind::kUnsorted, Reducer::kSum>)
REGISTER_CPU_OPERATOR(SparseUnsortedSegmentMeanGradient, SpreadOperator<SegmentKind::kUnsorted, Reducer::kMean>)
REGISTER_CPU_OPERATOR(SparseUnsortedSegmentWeightedSumGradient, SpreadOperator<SegmentKind::kUnsorted, Reducer::kWeightedSum>)
REGISTER_CPU_OPERATOR(LengthsIndicesInGradientSumGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kSum>)
REGISTER_CPU_OPERATOR(LengthsIndicesInGradientMeanGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kMean>)
REGISTER_CPU_OPERATOR(SparseLengthsIndicesInGradientSumGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kSum>)
REGISTER_CPU_OPERATOR(SparseLengthsIndicesInGradientMeanGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kMean>)
REGISTER_CPU_OPERATOR(SparseLengthsIndicesInGradientWeightedSumGradient, SpreadOperator<SegmentKind::kLengths, Reducer::kWeightedSum>)
REGISTER_CPU_OPERATOR(LengthsWeightedSumWithMainInputGradient, WeightedGradientOperator<false>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSumWithMainInputGradient, WeightedGradientOperator<true>)
REGISTER_CPU_OPERATOR(SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient, WeightedGradientOperator<true>)
REGISTER_CPU_OPERATOR(LengthsMaxWithMainInputAndForwardOutputGradient, ForwardGradientOperator<SegmentKind::kLengths, Reducer::kMax, 3, 0, 1, 2>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeSumGradient, RangeGradient<Reducer::kSum>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeMeanGradient, RangeGradient<Reducer::kMean>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeMaxGradient, RangeGradient<Reducer::kMax>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeLogSumExpGradient, RangeGradient<Reducer::kLogSumExp>)
REGISTER_CPU_OPERATOR(SortedSegmentRangeLogMeanExpGradient, RangeGradient<Reducer::kLogMeanExp>)
// clang-format on

}  // namespace caffe2
