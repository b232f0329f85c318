// Sparse values made dense and back: by an id, by a number in the row, by a mask, by ranges.
#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/registry.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

// Operators that take lengths as int32 or int64, and look up numbers.
class SparseBase : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  // The values of an input of integers as int64.
  const int64_t* wide(int i) {
    const Tensor& given = input(i);
    if (given.type() == DataType::kInt64) return given.data<int64_t>();
    auto* values = scratch<int64_t>(given.size());
    std::copy_n(given.data<int32_t>(), given.size(), values);
    return values;
  }
  void require_rank(int i, int rank) const {
    CAFFE2_ENFORCE(input(i).rank() == rank, describe_input(i), " has shape ",
                   input(i).shape().text(), "; needed dimensions: ", rank);
  }
  // The lengths of input i, which sum to n; of 32 or 64 bits.
  const int64_t* lengths_of(int i, int64_t n) {
    require_rank(i, 1);
    const int64_t* lengths = wide(i);
    int64_t left = n;
    for (int64_t k = 0; k < input(i).size(); k++) {
      CAFFE2_ENFORCE(lengths[k] >= 0, describe_input(i), " holds ", lengths[k], " at position ", k,
                     "; lengths are not negative");
      CAFFE2_ENFORCE(lengths[k] <= left, describe_input(i), " sums to more than the ", n,
                     " values that there are");
      left -= lengths[k];
    }
    CAFFE2_ENFORCE(left == 0, describe_input(i), " sums to ", n - left, ", but there are ", n,
                   " values");
    return lengths;
  }
};

// Ids and the columns that they have.
class MaskBase : public SparseBase {
 public:
  explicit MaskBase(const OperatorContext& context)
      : SparseBase(context), most_skipped_(args().integer("max_skipped_indices")) {
    for (const int64_t id : args().integers("mask")) {
      CAFFE2_ENFORCE(id >= 0 && columns_.emplace(id, columns_.size()).second,
                     "argument 'mask' = ", id, ", which is negative or there twice");
    }
    CAFFE2_ENFORCE(!columns_.empty(), "argument 'mask' is empty");
  }

 protected:
  int64_t columns() const { return static_cast<int64_t>(columns_.size()); }

  // places_[j] = row * columns + column of index j, or -1. Input `lengths` may be missing.
  void find_places(int lengths) {
    require_rank(0, 1);
    const int64_t n = input(0).size();
    const int64_t* ids = wide(0);
    has_rows_ = has_input(lengths);
    const int64_t* sizes = has_rows_ ? lengths_of(lengths, n) : &n;
    batch_ = has_rows_ ? input(lengths).size() : 1;
    places_ = scratch<int64_t>(n);
    int64_t skipped = 0, j = 0;
    for (int64_t row = 0; row < batch_; row++) {
      for (const int64_t end = j + sizes[row]; j < end; j++) {
        const auto found = columns_.find(ids[j]);
        places_[j] = found == columns_.end() ? -1 : row * columns() + found->second;
        skipped += ids[j] < 0;
      }
    }
    CAFFE2_ENFORCE(skipped <= most_skipped_, describe_input(0), " holds ", skipped,
                   " negative ids; allowed are ", most_skipped_);
  }
  // (rows, columns), without lengths (columns).
  Shape places_shape() const {
    Shape shape;
    if (has_rows_) shape.append(batch_);
    shape.append(columns());
    return shape;
  }
  int64_t places() const { return batch_ * columns(); }
  int64_t place(int64_t j) const { return places_[j]; }

 private:
  const int64_t most_skipped_;
  std::unordered_map<int64_t, int64_t> columns_;
  bool has_rows_ = false;
  int64_t batch_ = 0;
  int64_t* places_ = nullptr;
};

class SparseToDenseMaskOperator : public MaskBase {
 public:
  explicit SparseToDenseMaskOperator(const OperatorContext& context) : MaskBase(context) {
    CAFFE2_ENFORCE(context.def.output.size() < 2 || args().boolean("return_presence_mask"),
                   "output 1 (presence_mask) needs the argument return_presence_mask");
  }

 protected:
  void run() override {
    find_places(3);
    const Tensor &values = input(1), &missing = input(2);
    const int64_t n = input(0).size();
    CAFFE2_ENFORCE(values.rank() >= 1 && values.dim(0) == n, describe_input(1), " has shape ",
                   values.shape().text(), "; ", n, " rows are needed");
    Shape one, shape = places_shape();
    for (int i = 1; i < values.rank(); i++) {
      one.append(values.dim(i));
      shape.append(values.dim(i));
    }
    CAFFE2_ENFORCE(missing.shape() == one && missing.type() == values.type(), describe_input(2),
                   " is ", type_name(missing.type()), " of shape ", missing.shape().text(),
                   "; needed is ", type_name(values.type()), " of shape ", one.text());
    Tensor& y = output(0, shape, values.type());
    bool* present = nullptr;
    if (outputs() == 2) {
      present = output(1, places_shape(), DataType::kBool).mutable_data<bool>();
      std::fill_n(present, places(), false);
    }
    const int64_t width = one.size();
    by_size(values.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T *from = elements<T>(values), *fill = elements<T>(missing);
      T* to = mutable_elements<T>(y);
      for (int64_t p = 0; p < places(); p++) std::copy_n(fill, width, to + p * width);
      for (int64_t j = 0; j < n; j++) {
        if (place(j) < 0) continue;
        std::copy_n(from + j * width, width, to + place(j) * width);
        if (present != nullptr) present[place(j)] = true;
      }
    });
  }
};

class SparseToDenseMaskGradientOperator : public MaskBase {
 public:
  using MaskBase::MaskBase;

 protected:
  void run() override {
    find_places(2);
    const Tensor& dy = input(1);
    const Shape front = places_shape();
    bool fits = dy.rank() >= front.rank();
    for (int i = 0; fits && i < front.rank(); i++) fits = dy.dim(i) == front[i];
    CAFFE2_ENFORCE(fits, describe_input(1), " has shape ", dy.shape().text(), "; ", front.text(),
                   " and more are needed");
    const int64_t n = input(0).size(), width = dy.shape().product(front.rank(), dy.rank());
    Shape shape{n};
    for (int i = front.rank(); i < dy.rank(); i++) shape.append(dy.dim(i));
    auto* last = scratch<int64_t>(places());
    for (int64_t j = 0; j < n; j++) {
      if (place(j) >= 0) last[place(j)] = j;
    }
    Tensor& dx = output(0, shape, dy.type());
    clear(dx);
    by_size(dy.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(dy);
      T* to = mutable_elements<T>(dx);
      for (int64_t j = 0; j < n; j++) {
        if (place(j) < 0 || last[place(j)] != j) continue;
        std::copy_n(from + place(j) * width, width, to + j * width);
      }
    });
  }
};

// Values and the rows of a matrix in which they lie; calls f(j, place) for each.
class MatrixPlaces : public SparseBase {
 public:
  using SparseBase::SparseBase;

 protected:
  void find(int64_t columns) {
    columns_ = columns;
    count_ = input(1).size();
    indices_ = find_indices(1, columns);
    lengths_ = lengths_of(0, count_);
  }
  template <class F>
  void for_places(const F& f) const {
    int64_t j = 0;
    for (int64_t row = 0; row < input(0).size(); row++) {
      for (const int64_t end = j + lengths_[row]; j < end; j++) f(j, row * columns_ + indices_[j]);
    }
  }
  int64_t count_ = 0;

 private:
  int64_t columns_ = 0;
  const int64_t *lengths_ = nullptr, *indices_ = nullptr;
};

class BatchSparseToDenseOperator : public MatrixPlaces {
 public:
  explicit BatchSparseToDenseOperator(const OperatorContext& context)
      : MatrixPlaces(context),
        columns_(args().integer("dense_last_dim")),
        missing_(args().real("default_value")) {}

 protected:
  void run() override {
    int64_t columns = columns_;
    if (has_input(3)) {
      require_rank(3, 2);
      columns = input(3).dim(1);
      CAFFE2_ENFORCE(columns_ <= 0 || columns_ == columns, describe_input(3), " has ", columns,
                     " columns, but dense_last_dim = ", columns_);
    } else {
      CAFFE2_ENFORCE(columns >= 1, "dense_last_dim = ", columns, "; it is at least 1");
    }
    find(columns);
    CAFFE2_ENFORCE(input(2).shape() == Shape{count_}, describe_input(2), " has shape ",
                   input(2).shape().text(), "; (", count_, ",) is needed");
    Tensor& y = output(0, {input(0).size(), columns}, DataType::kFloat);
    const float* values = input(2).data<float>();
    float* out = y.mutable_data<float>();
    std::fill_n(out, y.size(), missing_);
    for_places([&](int64_t j, int64_t place) { out[place] = values[j]; });
  }

 private:
  const int64_t columns_;
  const float missing_;
};

class BatchDenseToSparseOperator : public MatrixPlaces {
 public:
  using MatrixPlaces::MatrixPlaces;

 protected:
  void run() override {
    require_rank(2, 2);
    const Tensor& dense = input(2);
    find(dense.dim(1));
    CAFFE2_ENFORCE(dense.dim(0) == input(0).size(), describe_input(2), " has shape ",
                   dense.shape().text(), "; ", input(0).size(), " rows are needed");
    float* out = output(0, {count_}, DataType::kFloat).mutable_data<float>();
    const float* in = dense.data<float>();
    for_places([&](int64_t j, int64_t place) { out[j] = in[place]; });
  }
};

// Inputs: masks and data in turn.
class BooleanUnmaskOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    CAFFE2_ENFORCE(inputs() % 2 == 0, "it has ", inputs(), " inputs; needed are masks and data");
    const Tensor &mask = input(0), &data = input(1);
    for (int i = 0; i < inputs(); i += 2) {
      const Tensor &one = input(i), &values = input(i + 1);
      CAFFE2_ENFORCE(
          one.rank() == 1 && one.shape() == mask.shape() && one.type() == DataType::kBool,
          describe_input(i), " is ", type_name(one.type()), " of shape ", one.shape().text(),
          "; masks are bool, 1-d and of one length");
      CAFFE2_ENFORCE(values.rank() == 1 && values.type() == data.type(), describe_input(i + 1),
                     " is ", type_name(values.type()), " of shape ", values.shape().text(),
                     "; data is 1-d and of one type");
    }
    const int64_t n = mask.size();
    std::vector<int64_t> taken(inputs() / 2, 0);
    auto* source = scratch<int>(n);
    for (int64_t j = 0; j < n; j++) {
      int i = 0;
      while (i < inputs() && !input(i).data<bool>()[j]) i += 2;
      CAFFE2_ENFORCE(i < inputs(), "all masks are false at position ", j);
      source[j] = i / 2;
      taken[i / 2]++;
    }
    for (int k = 0; k < inputs() / 2; k++) {
      CAFFE2_ENFORCE(input(2 * k + 1).size() == taken[k], describe_input(2 * k + 1), " has ",
                     input(2 * k + 1).size(), " elements; its mask takes ", taken[k]);
    }
    Tensor& y = output(0, {n}, data.type());
    std::fill(taken.begin(), taken.end(), 0);
    by_size(data.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      T* to = mutable_elements<T>(y);
      for (int64_t j = 0; j < n; j++) {
        to[j] = elements<T>(input(2 * source[j] + 1))[taken[source[j]]++];
      }
    });
  }
};

class BooleanMaskLengthsOperator : public SparseBase {
 public:
  using SparseBase::SparseBase;

 protected:
  void run() override {
    require_rank(1, 1);
    const int64_t* lengths = lengths_of(0, input(1).size());
    Tensor& y = output(0, input(0).shape(), input(0).type());
    if (y.type() == DataType::kInt32) {
      count(lengths, y.mutable_data<int32_t>());
    } else {
      count(lengths, y.mutable_data<int64_t>());
    }
  }

 private:
  template <class T>
  void count(const int64_t* lengths, T* out) const {
    const bool* mask = input(1).data<bool>();
    for (int64_t k = 0; k < input(0).size(); k++) {
      out[k] = static_cast<T>(std::count(mask, mask + lengths[k], true));
      mask += lengths[k];
    }
  }
};

// Input 1 holds starts and lengths of ranges of input 0, (examples, ranges, 2).
class RangesBase : public SparseBase {
 public:
  using SparseBase::SparseBase;

 protected:
  void find() {
    require_rank(0, 1);
    CAFFE2_ENFORCE(input(1).rank() == 3 && input(1).dim(2) == 2, describe_input(1), " has shape ",
                   input(1).shape().text(), "; (examples, ranges, 2) is needed");
    ranges_ = wide(1);
    const int64_t size = input(0).size();
    for (int64_t r = 0; r < input(1).size() / 2; r++) {
      CAFFE2_ENFORCE(
          start(r) >= 0 && start(r) <= size && length(r) >= 0 && length(r) <= size - start(r),
          describe_input(1), " holds the range ", start(r), ", ", length(r), "; ",
          describe_input(0), " has ", size, " elements");
    }
  }
  int64_t examples() const { return input(1).dim(0); }
  int64_t ranges() const { return input(1).dim(1); }  // of each example
  int64_t start(int64_t r) const { return ranges_[2 * r]; }
  int64_t length(int64_t r) const { return ranges_[2 * r + 1]; }

 private:
  const int64_t* ranges_ = nullptr;
};

class GatherRangesOperator : public RangesBase {
 public:
  using RangesBase::RangesBase;

 protected:
  void run() override {
    find();
    int64_t total = 0;
    for (int64_t b = 0; b < examples(); b++) {
      int64_t sum = 0;
      for (int64_t k = 0; k < ranges(); k++) sum += length(b * ranges() + k);
      CAFFE2_ENFORCE(sum <= INT32_MAX, describe_input(1), " sums to ", sum, " in example ", b,
                     ", more than int32 can hold");
      total += sum;
    }
    const Tensor& data = input(0);
    Tensor& y = output(0, {total}, data.type());
    int32_t* lengths = output(1, {examples()}, DataType::kInt32).mutable_data<int32_t>();
    std::fill_n(lengths, examples(), 0);
    by_size(data.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(data);
      T* to = mutable_elements<T>(y);
      for (int64_t r = 0; r < examples() * ranges(); r++) {
        to = std::copy_n(from + start(r), length(r), to);
        lengths[r / ranges()] += static_cast<int32_t>(length(r));
      }
    });
  }
};

class GatherRangesToDenseOperator : public RangesBase {
 public:
  explicit GatherRangesToDenseOperator(const OperatorContext& context)
      : RangesBase(context),
        lengths_(args().integers("lengths")),
        least_(args().integer("min_observation")),
        most_mismatched_(args().real("max_mismatched_ratio")),
        most_empty_(args().real("max_empty_ratio")) {}

 protected:
  void run() override {
    find();
    const auto features = static_cast<int64_t>(lengths_.size());
    CAFFE2_ENFORCE(features == outputs() && features == ranges(), "argument 'lengths' has ",
                   features, " values, but there are ", outputs(), " outputs, and ",
                   describe_input(1), " has shape ", input(1).shape().text());
    const Tensor& data = input(0);
    const int64_t* keys = nullptr;
    if (has_input(2)) {
      CAFFE2_ENFORCE(input(2).shape() == data.shape(), describe_input(2), " has shape ",
                     input(2).shape().text(), "; ", describe_input(0), " has ",
                     data.shape().text());
      keys = input(2).data<int64_t>();
    }
    std::vector<Tensor*> dense;
    for (int64_t f = 0; f < features; f++) check_share(f);
    auto* order = scratch<int64_t>(data.size());
    for (int64_t f = 0; f < features; f++) {
      dense.push_back(&output(static_cast<int>(f), {examples(), lengths_[f]}, data.type()));
    }
    for (Tensor* y : dense) clear(*y);
    for (int64_t r = 0; r < examples() * features; r++) {
      const int64_t size = lengths_[r % features], first = start(r);
      if (length(r) != size) continue;
      std::iota(order, order + size, first);
      if (keys != nullptr) {
        std::sort(order, order + size, [&](int64_t a, int64_t b) {
          return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
        });
      }
      by_size(data.type(), [&](const auto& element) {
        using T = std::decay_t<decltype(element)>;
        T* to = mutable_elements<T>(*dense[r % features]) + r / features * size;
        for (int64_t i = 0; i < size; i++) to[i] = elements<T>(data)[order[i]];
      });
    }
  }

 private:
  void check_share(int64_t feature) const {
    int64_t empty = 0, mismatched = 0;
    for (int64_t b = 0; b < examples(); b++) {
      const int64_t size = length(b * ranges() + feature);
      empty += size == 0;
      mismatched += size != 0 && size != lengths_[feature];
    }
    check_share(feature, "empty", empty, most_empty_);
    check_share(feature, "mismatched", mismatched, most_mismatched_);
  }
  void check_share(int64_t feature, const char* what, int64_t count, float most) const {
    const auto observed = static_cast<double>(std::max(examples(), least_));
    CAFFE2_ENFORCE(static_cast<double>(count) <= most * observed, describe_input(1), " has ", count,
                   " ", what, " ranges of feature ", feature, ", more than ", most, " times ",
                   observed);
  }

  const std::vector<int64_t> lengths_;
  const int64_t least_;
  const float most_mismatched_, most_empty_;
};

}  // namespace

REGISTER_CPU_OPERATOR(SparseToDenseMask, SparseToDenseMaskOperator)
REGISTER_CPU_OPERATOR(SparseToDenseMaskGradient, SparseToDenseMaskGradientOperator)
REGISTER_CPU_OPERATOR(BatchSparseToDense, BatchSparseToDenseOperator)
REGISTER_CPU_OPERATOR(BatchDenseToSparse, BatchDenseToSparseOperator)
REGISTER_CPU_OPERATOR(BooleanUnmask, BooleanUnmaskOperator)
REGISTER_CPU_OPERATOR(BooleanMaskLengths, BooleanMaskLengthsOperator)
REGISTER_CPU_OPERATOR(GatherRanges, GatherRangesOperator)
REGISTER_CPU_OPERATOR(GatherRangesToDense, GatherRangesToDenseOperator)

}  // namespace caffe2
