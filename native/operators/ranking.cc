// The largest and smallest elements, and distinct ones.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"
#include "operators/view.h"

namespace caffe2 {
namespace {

// order = places of the `count` largest of n elements, which lie `step` apart, the largest first. A
// NaN is behind all numbers; of equal elements the first comes first.
void sort_largest(const float* x, int64_t step, int64_t* order, int64_t count, int64_t n) {
  std::iota(order, order + n, 0);
  std::partial_sort(order, order + count, order + n, [&](int64_t a, int64_t b) {
    const float left = x[a * step], right = x[b * step];
    if (left > right || (std::isnan(right) && !std::isnan(left))) return true;
    if (left < right || (std::isnan(left) && !std::isnan(right))) return false;
    return a < b;
  });
}

// A tensor as (outer, size, inner), where size is that of an axis.
class AlongAxis : public Operator {
 public:
  explicit AlongAxis(const OperatorContext& context)
      : Operator(context), axis_(args().int32("axis")) {}

 protected:
  void find(int i) {
    const Tensor& x = input(i);
    place_ = canonical_axis(axis_, x.rank(), describe_input(i));
    outer_ = x.shape().product(0, place_);
    size_ = x.dim(place_);
    inner_ = x.shape().product(place_ + 1, x.rank());
  }
  // The shape of input i with another size of the axis; without the axis for -1.
  Shape with_size(int i, int64_t size) const {
    Shape shape;
    for (int d = 0; d < input(i).rank(); d++) {
      if (d != place_) shape.append(input(i).dim(d));
      if (d == place_ && size >= 0) shape.append(size);
    }
    return shape;
  }
  int place_ = 0;
  int64_t outer_ = 0, size_ = 0, inner_ = 0;

 private:
  const int axis_;
};

class TopKOperator : public AlongAxis {
 public:
  explicit TopKOperator(const OperatorContext& context)
      : AlongAxis(context), k_(args().integer("k")) {}

 protected:
  void run() override {
    find(0);
    int64_t k = k_;
    if (has_input(1)) {
      CAFFE2_ENFORCE(input(1).size() == 1, describe_input(1), " has shape ",
                     input(1).shape().text(), "; one value is needed");
      k = input(1).data<int64_t>()[0];
    }
    CAFFE2_ENFORCE(k >= 1, "k is ", k, "; it is at least 1");
    const int64_t found = std::min(k, size_);
    const float* x = input(0).data<float>();
    auto* order = scratch<int64_t>(size_);
    const Shape shape = with_size(0, k);
    Tensor& values = output(0, shape, DataType::kFloat);
    Tensor& indices = output(1, shape, DataType::kInt64);
    int64_t* flat = nullptr;
    if (outputs() == 3) {
      flat = output(2, {shape.size()}, DataType::kInt64).mutable_data<int64_t>();
      std::fill_n(flat, shape.size(), -1);
    }
    clear(values);
    float* value = values.mutable_data<float>();
    int64_t* index = indices.mutable_data<int64_t>();
    std::fill_n(index, indices.size(), -1);
    for (int64_t o = 0; o < outer_; o++) {
      for (int64_t i = 0; i < inner_; i++) {
        const int64_t from = o * size_ * inner_ + i, to = o * k * inner_ + i;
        sort_largest(x + from, inner_, order, found, size_);
        for (int64_t j = 0; j < found; j++) {
          value[to + j * inner_] = x[from + order[j] * inner_];
          index[to + j * inner_] = order[j];
          if (flat != nullptr) flat[to + j * inner_] = from + order[j] * inner_;
        }
      }
    }
  }

 private:
  const int64_t k_;
};

// Inputs: dValues, Indices, X.
class TopKGradientOperator : public AlongAxis {
 public:
  using AlongAxis::AlongAxis;

 protected:
  void run() override {
    find(2);
    const Tensor &dy = input(0), &indices = input(1);
    CAFFE2_ENFORCE(dy.rank() == input(2).rank() && dy.shape() == with_size(2, dy.dim(place_)),
                   describe_input(0), " has shape ", dy.shape().text(), "; ", describe_input(2),
                   " has shape ", input(2).shape().text());
    require_same_shape(describe_input(0), dy, describe_input(1), indices);
    const int64_t* index = indices.data<int64_t>();
    for (int64_t j = 0; j < indices.size(); j++) {
      CAFFE2_ENFORCE(index[j] >= -1 && index[j] < size_, describe_input(1), " holds ", index[j],
                     " at position ", j, "; allowed is [-1, ", size_, ")");
    }
    const int64_t k = dy.dim(place_);
    Tensor& dx = output(0, input(2).shape(), DataType::kFloat);
    clear(dx);
    const float* grad = dy.data<float>();
    float* out = dx.mutable_data<float>();
    for (int64_t j = 0; j < dy.size(); j++) {
      if (index[j] < 0) continue;
      const int64_t o = j / (k * inner_), i = j % inner_;
      out[(o * size_ + index[j]) * inner_ + i] = grad[j];
    }
  }
};

// Input 1 says for each row of input 0 how many elements of it are meant.
class RowCounts : public Operator {
 public:
  using Operator::Operator;

 protected:
  void find() {
    const Tensor &x = input(0), &counts = input(1);
    CAFFE2_ENFORCE(x.rank() >= 1, describe_input(0), " is a scalar; rows are needed");
    rows_ = x.shape().product(0, x.rank() - 1);
    columns_ = x.dim(x.rank() - 1);
    CAFFE2_ENFORCE(counts.size() == rows_, describe_input(1), " has shape ", counts.shape().text(),
                   "; ", rows_, " values are needed");
    counts_ = counts.data<int64_t>();
    total_ = 0;
    for (int64_t r = 0; r < rows_; r++) {
      CAFFE2_ENFORCE(counts_[r] >= 1 && counts_[r] <= columns_, describe_input(1), " holds ",
                     counts_[r], " at position ", r, "; allowed is [1, ", columns_, "]");
      total_ += counts_[r];
    }
  }
  int64_t rows_ = 0, columns_ = 0, total_ = 0;
  const int64_t* counts_ = nullptr;
};

class FlexibleTopKOperator : public RowCounts {
 public:
  using RowCounts::RowCounts;

 protected:
  void run() override {
    find();
    auto* order = scratch<int64_t>(columns_);
    float* value = output(0, {total_}, DataType::kFloat).mutable_data<float>();
    int64_t* index = output(1, {total_}, DataType::kInt64).mutable_data<int64_t>();
    const float* x = input(0).data<float>();
    for (int64_t r = 0; r < rows_; r++, x += columns_) {
      sort_largest(x, 1, order, counts_[r], columns_);
      for (int64_t j = 0; j < counts_[r]; j++) {
        *value++ = x[order[j]];
        *index++ = order[j];
      }
    }
  }
};

// Inputs: X, K, dValues, Indices.
class FlexibleTopKGradientOperator : public RowCounts {
 public:
  using RowCounts::RowCounts;

 protected:
  void run() override {
    find();
    for (const int i : {2, 3}) {
      CAFFE2_ENFORCE(input(i).shape() == Shape{total_}, describe_input(i), " has shape ",
                     input(i).shape().text(), "; (", total_, ",) is needed");
    }
    const int64_t* index = input(3).data<int64_t>();
    for (int64_t j = 0; j < total_; j++) {
      CAFFE2_ENFORCE(index[j] >= 0 && index[j] < columns_, describe_input(3), " holds ", index[j],
                     " at position ", j, "; allowed is [0, ", columns_, ")");
    }
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    clear(dx);
    const float* grad = input(2).data<float>();
    float* out = dx.mutable_data<float>();
    for (int64_t r = 0; r < rows_; r++, out += columns_) {
      for (int64_t j = 0; j < counts_[r]; j++) out[*index++] = *grad++;
    }
  }
};

template <bool largest>
class ArgOperator : public AlongAxis {
 public:
  explicit ArgOperator(const OperatorContext& context)
      : AlongAxis(context), keep_(args().boolean("keepdims")) {}

 protected:
  void run() override {
    find(0);
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(size_ > 0 || outer_ * inner_ == 0, describe_input(0), " has shape ",
                   x.shape().text(), ", without elements along axis ", place_);
    int64_t* out =
        output(0, with_size(0, keep_ ? 1 : -1), DataType::kInt64).template mutable_data<int64_t>();
    switch (x.type()) {
      case DataType::kFloat:
        return find_best(x.data<float>(), out);
      case DataType::kDouble:
        return find_best(x.data<double>(), out);
      case DataType::kInt32:
        return find_best(x.data<int32_t>(), out);
      default:
        return find_best(x.data<int64_t>(), out);
    }
  }

 private:
  template <class T>
  static bool better(T a, T b) {
    return b == b && (largest ? !(a <= b) : !(a >= b));  // a NaN is better than all numbers
  }

  template <class T>
  void find_best(const T* x, int64_t* out) const {
    const int64_t rows = outer_ * inner_;
    for_ranges(parallel(), rows, rows_per_block(size_), [&](int64_t row, int64_t end) {
      for (; row < end; row++) {
        const T* in = x + row / inner_ * size_ * inner_ + row % inner_;
        int64_t best = 0;
        for (int64_t j = 1; j < size_; j++) {
          if (better(in[j * inner_], in[best * inner_])) best = j;
        }
        out[row] = best;
      }
    });
  }

  const bool keep_;
};

class UniqueOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& given = input(0);
    CAFFE2_ENFORCE(given.rank() == 1 && given.size() <= INT32_MAX, describe_input(0), " has shape ",
                   given.shape().text(), "; one dimension is needed");
    if (given.type() == DataType::kInt32) {
      find(given.data<int32_t>(), given.size());
    } else {
      find(given.data<int64_t>(), given.size());
    }
  }

 private:
  template <class T>
  void find(const T* in, int64_t n) {
    std::vector<T> sorted(in, in + n);
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    Tensor& distinct = output(0, {static_cast<int64_t>(sorted.size())}, TypeOf<T>::value);
    int32_t* places = nullptr;
    if (outputs() == 2) {
      places = output(1, {n}, DataType::kInt32).template mutable_data<int32_t>();
    }
    std::copy(sorted.begin(), sorted.end(), distinct.template mutable_data<T>());
    for (int64_t j = 0; places != nullptr && j < n; j++) {
      const auto place = std::lower_bound(sorted.begin(), sorted.end(), in[j]);
      places[j] = static_cast<int32_t>(place - sorted.begin());
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(TopK, TopKOperator)
REGISTER_CPU_OPERATOR(TopKGradient, TopKGradientOperator)
REGISTER_CPU_OPERATOR(FlexibleTopK, FlexibleTopKOperator)
REGISTER_CPU_OPERATOR(FlexibleTopKGradient, FlexibleTopKGradientOperator)
REGISTER_CPU_OPERATOR(ArgMax, ArgOperator<true>)
REGISTER_CPU_OPERATOR(ArgMin, ArgOperator<false>)
REGISTER_CPU_OPERATOR(Unique, UniqueOperator)

}  // namespace caffe2
