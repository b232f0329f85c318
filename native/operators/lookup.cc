// Rows in another order, taken out, and found by value.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/registry.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

// Y[j] = X[indices[j]], or the other way round for the gradient; indices are a permutation.
template <int X, int Indices, bool back>
class BatchPermutationOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor& x = input(X);
    CAFFE2_ENFORCE(x.rank() >= 1 && input(Indices).shape() == Shape{x.dim(0)},
                   describe_input(Indices), " has shape ", input(Indices).shape().text(),
                   "; one number is needed for each row of ", describe_input(X), ", shape ",
                   x.shape().text());
    const int64_t* indices = find_indices(Indices, x.dim(0));
    std::vector<bool> seen(x.dim(0));
    for (int64_t j = 0; j < x.dim(0); j++) {
      CAFFE2_ENFORCE(!seen[indices[j]], describe_input(Indices), " holds ", indices[j],
                     " twice; it is no permutation");
      seen[indices[j]] = true;
    }
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const int64_t width = x.shape().product(1, x.rank());
    const float* from = x.data<float>();
    float* to = y.mutable_data<float>();
    for_ranges(parallel(), x.dim(0), rows_per_block(width), [&](int64_t j, int64_t end) {
      for (; j < end; j++) {
        const int64_t source = back ? j : indices[j], target = back ? indices[j] : j;
        std::copy_n(from + source * width, width, to + target * width);
      }
    });
  }
};

class RemoveDataBlocksOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor& data = input(0);
    CAFFE2_ENFORCE(data.rank() >= 1, describe_input(0), " is a scalar; rows are needed");
    const int64_t rows = data.dim(0), width = data.shape().product(1, data.rank());
    const int64_t* indices = find_indices(1, rows);
    std::vector<bool> removed(rows);
    for (int64_t j = 0; j < input(1).size(); j++) removed[indices[j]] = true;
    const int64_t kept = std::count(removed.begin(), removed.end(), false);
    Tensor& y = output(0, with_rows(data.shape(), kept), data.type());
    by_size(data.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(data);
      T* to = mutable_elements<T>(y);
      for (int64_t j = 0; j < rows; j++) {
        if (!removed[j]) to = std::copy_n(from + j * width, width, to);
      }
    });
  }
};

// The last place of each value.
class FindOperator : public Operator {
 public:
  explicit FindOperator(const OperatorContext& context)
      : Operator(context), missing_(args().int32("missing_value")) {}

 protected:
  void run() override {
    const Tensor &index = input(0), &query = input(1);
    CAFFE2_ENFORCE(index.type() == query.type(), describe_input(1), " is ", type_name(query.type()),
                   "; ", describe_input(0), " is ", type_name(index.type()));
    CAFFE2_ENFORCE(index.size() <= INT32_MAX, describe_input(0), " has ", index.size(),
                   " values, more than int32 can count");
    if (index.type() == DataType::kInt32) {
      find<int32_t>(index, query);
    } else {
      find<int64_t>(index, query);
    }
  }

 private:
  template <class T>
  void find(const Tensor& index, const Tensor& query) {
    std::unordered_map<T, int32_t> places;
    const T* values = index.data<T>();
    for (int64_t j = 0; j < index.size(); j++) places[values[j]] = static_cast<int32_t>(j);
    int32_t* out = output(0, query.shape(), DataType::kInt32).template mutable_data<int32_t>();
    const T* wanted = query.data<T>();
    for (int64_t j = 0; j < query.size(); j++) {
      const auto found = places.find(wanted[j]);
      out[j] = found == places.end() ? missing_ : found->second;
    }
  }

  const int32_t missing_;
};

// One-hot rows of segments: as many ones in a row as the segment has numbers.
class SegmentOneHotOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor& size = input(2);
    CAFFE2_ENFORCE(size.size() == 1, describe_input(2), " has shape ", size.shape().text(),
                   "; one value is needed");
    const int64_t width = size.data<int64_t>()[0];
    const int64_t* indices = find_indices(1, width);
    find_segments(SegmentKind::kLengths, 0, input(1).size());
    Tensor& y = output(0, {segments(), width}, DataType::kFloat);
    clear(y);
    float* out = y.mutable_data<float>();
    for (int64_t k = 0; k < segments(); k++) {
      for (int64_t p = offset(k); p < offset(k + 1); p++) out[k * width + indices[p]] = 1;
    }
  }
};

// Inputs: data (rows, columns), lengths (columns), and the values of all columns in turn.
class BatchOneHotOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor &data = input(0), &values = input(2);
    CAFFE2_ENFORCE(data.rank() == 2 && input(1).shape() == Shape{data.dim(1)}, describe_input(1),
                   " has shape ", input(1).shape().text(),
                   "; one length is needed for each column "
                   "of ",
                   describe_input(0), ", shape ", data.shape().text());
    CAFFE2_ENFORCE(values.rank() == 1 && values.type() == data.type(), describe_input(2), " is ",
                   type_name(values.type()), " of shape ", values.shape().text(),
                   "; one dimension and the type of ", describe_input(0), " are needed");
    find_segments(SegmentKind::kLengths, 1, values.size());
    if (data.type() == DataType::kInt32) {
      compare<int32_t>(data, values);
    } else {
      compare<int64_t>(data, values);
    }
  }

 private:
  template <class T>
  void compare(const Tensor& data, const Tensor& values) {
    const int64_t rows = data.dim(0), columns = data.dim(1), width = values.size();
    T* out = output(0, {rows, width}, data.type()).template mutable_data<T>();
    const T *in = data.data<T>(), *wanted = values.data<T>();
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t k = 0; k < columns; k++) {
        for (int64_t p = offset(k); p < offset(k + 1); p++) {
          out[i * width + p] = in[i * columns + k] == wanted[p];
        }
      }
    }
  }
};

}  // namespace

using Permute = BatchPermutationOperator<0, 1, false>;
using PermuteBack = BatchPermutationOperator<1, 0, true>;
REGISTER_CPU_OPERATOR(BatchPermutation, Permute)
REGISTER_CPU_OPERATOR(BatchPermutationGradient, PermuteBack)
REGISTER_CPU_OPERATOR(RemoveDataBlocks, RemoveDataBlocksOperator)
REGISTER_CPU_OPERATOR(Find, FindOperator)
REGISTER_CPU_OPERATOR(SegmentOneHot, SegmentOneHotOperator)
REGISTER_CPU_OPERATOR(BatchOneHot, BatchOneHotOperator)

}  // namespace caffe2
