// Lists of ids and other features of examples: merged, split, bucketed and padded.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/records.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

// Inputs lengths, values for each list.
class MergeIdListsOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    CAFFE2_ENFORCE(inputs() > 0 && inputs() % 2 == 0, "it has ", inputs(),
                   " inputs; lengths and values are needed for each list");
    const int64_t n = input(0).size();
    const int lists = inputs() / 2;
    std::vector<const int64_t*> offsets;
    for (int k = 0; k < lists; k++) {
      const Tensor &lengths = input(2 * k), &values = input(2 * k + 1);
      CAFFE2_ENFORCE(lengths.rank() == 1 && lengths.size() == n, describe_input(2 * k),
                     " has shape ", lengths.shape().text(), "; (", n, ",) is needed");
      CAFFE2_ENFORCE(values.rank() == 1 && values.type() == input(1).type(),
                     describe_input(2 * k + 1), " has type ", type_name(values.type()),
                     " and shape ", values.shape().text(), "; ", type_name(input(1).type()),
                     " with one dimension is needed");
      offsets.push_back(offsets_of(2 * k, lengths.data<int32_t>(), n));
      CAFFE2_ENFORCE(offsets[k][n] == values.size(), describe_input(2 * k), " sums to ",
                     offsets[k][n], ", but there are ", values.size(), " values");
    }
    dispatch<int32_t, int64_t>(input(1).type(), [&](auto kind) {
      using T = decltype(kind);
      std::vector<T> merged, own;
      std::vector<int32_t> counts(n);
      for (int64_t i = 0; i < n; i++) {
        own.clear();
        for (int k = 0; k < lists; k++) {
          const T* values = input(2 * k + 1).template data<T>();
          own.insert(own.end(), values + offsets[k][i], values + offsets[k][i + 1]);
        }
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
        counts[i] = static_cast<int32_t>(own.size());
        merged.insert(merged.end(), own.begin(), own.end());
      }
      Tensor& lengths = output(0, {n}, DataType::kInt32);
      Tensor& values = output(1, {static_cast<int64_t>(merged.size())}, TypeOf<T>::value);
      std::copy(counts.begin(), counts.end(), lengths.template mutable_data<int32_t>());
      std::copy(merged.begin(), merged.end(), values.template mutable_data<T>());
    });
  }
};

class KeySplitOperator : public Operator {
 public:
  explicit KeySplitOperator(const OperatorContext& context)
      : Operator(context), limit_(args().integer("categorical_limit")) {
    CAFFE2_ENFORCE(limit_ == static_cast<int64_t>(def().output.size()),
                   "argument 'categorical_limit' is ", limit_, "; there are ", def().output.size(),
                   " outputs");
  }

 protected:
  void run() override {
    const Tensor& keys = input(0);
    const int64_t* key = keys.data<int64_t>();
    std::vector<int64_t> counts(limit_, 0);
    for (int64_t i = 0; i < keys.size(); i++) {
      CAFFE2_ENFORCE(key[i] >= 0 && key[i] < limit_, describe_input(0), " holds ", key[i],
                     "; categorical_limit is ", limit_);
      counts[key[i]]++;
    }
    std::vector<Tensor*> made;
    for (int k = 0; k < outputs(); k++) {
      made.push_back(&output(k, {counts[k]}, DataType::kInt32));
    }
    std::vector<int32_t*> next;
    for (Tensor* each : made) next.push_back(each->mutable_data<int32_t>());
    for (int64_t i = 0; i < keys.size(); i++) *next[key[i]]++ = static_cast<int32_t>(i);
  }

 private:
  const int64_t limit_;
};

class NGramFromCategoricalOperator : public Operator {
 public:
  explicit NGramFromCategoricalOperator(const OperatorContext& context)
      : Operator(context), columns_(args().integers("col_ids")) {
    const std::vector<int64_t> limits = args().integers("categorical_limits");
    const std::vector<int64_t> values = args().integers("vals");
    CAFFE2_ENFORCE(limits.size() == columns_.size() &&
                       std::accumulate(limits.begin(), limits.end(), int64_t{0}) ==
                           static_cast<int64_t>(values.size()),
                   "argument 'categorical_limits' has ", limits.size(), " limits for ",
                   columns_.size(), " columns and ", values.size(), " vals");
    int64_t base = 1, at = 0;
    for (int64_t limit : limits) {
      places_.emplace_back();
      for (int64_t k = 0; k < limit; k++) places_.back()[values[at + k]] = k;
      bases_.push_back(base);
      base = checked_multiply(base, limit);
      at += limit;
    }
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    for (int64_t column : columns_) {
      CAFFE2_ENFORCE(column < x.dim(1), "argument 'col_ids' holds ", column, "; ",
                     describe_input(0), " has shape ", x.shape().text());
    }
    Tensor& y = output(0, {x.dim(0)}, DataType::kInt64);
    int64_t* out = y.mutable_data<int64_t>();
    for (int64_t i = 0; i < x.dim(0); i++) {
      out[i] = 0;
      for (size_t k = 0; k < columns_.size(); k++) {
        const float value = x.data<float>()[i * x.dim(1) + columns_[k]];
        if (!(std::fabs(value) < 2147483648.f)) continue;
        const auto found = places_[k].find(static_cast<int64_t>(value));
        if (found != places_[k].end()) out[i] += bases_[k] * found->second;
      }
    }
  }

 private:
  const std::vector<int64_t> columns_;
  std::vector<int64_t> bases_;
  std::vector<std::unordered_map<int64_t, int64_t>> places_;
};

// Inputs feature, indices, boundaries, lengths.
class BatchBucketizeOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor &x = input(0), &indices = input(1), &boundaries = input(2), &lengths = input(3);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    for (int i = 1; i < 4; i++) {
      CAFFE2_ENFORCE(input(i).rank() == 1, describe_input(i), " has shape ",
                     input(i).shape().text(), "; one dimension is needed");
    }
    const int64_t n = indices.size();
    CAFFE2_ENFORCE(lengths.size() == n, describe_input(3), " has shape ", lengths.shape().text(),
                   ", but ", describe_input(1), " has ", indices.shape().text());
    const int64_t* offsets = offsets_of(3, lengths.data<int32_t>(), n);
    CAFFE2_ENFORCE(offsets[n] == boundaries.size(), describe_input(3), " sums to ", offsets[n],
                   ", but there are ", boundaries.size(), " boundaries");
    const int32_t* column = indices.data<int32_t>();
    const float* limits = boundaries.data<float>();
    for (int64_t k = 0; k < n; k++) {
      CAFFE2_ENFORCE(column[k] >= 0 && column[k] < x.dim(1), describe_input(1), " holds ",
                     column[k], "; ", describe_input(0), " has ", x.dim(1), " columns");
      CAFFE2_ENFORCE(std::is_sorted(limits + offsets[k], limits + offsets[k + 1]),
                     describe_input(2), " does not rise for column ", column[k]);
    }
    Tensor& y = output(0, {x.dim(0), n}, DataType::kInt32);
    int32_t* out = y.mutable_data<int32_t>();
    for (int64_t i = 0; i < x.dim(0); i++) {
      for (int64_t k = 0; k < n; k++) {
        const float* first = limits + offsets[k];
        const float value = x.data<float>()[i * x.dim(1) + column[k]];
        out[i * n + k] =
            static_cast<int32_t>(std::lower_bound(first, limits + offsets[k + 1], value) - first);
      }
    }
  }
};

class DenseVectorToIdListOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    const float* in = x.data<float>();
    const int64_t found = x.size() - std::count(in, in + x.size(), 0.f);
    Tensor& lengths = output(0, {x.dim(0)}, DataType::kInt32);
    Tensor& ids = output(1, {found}, DataType::kInt32);
    int32_t *length = lengths.mutable_data<int32_t>(), *id = ids.mutable_data<int32_t>();
    for (int64_t i = 0; i < x.dim(0); i++) {
      length[i] = 0;
      for (int64_t j = 0; j < x.dim(1); j++) {
        if (in[i * x.dim(1) + j] == 0) continue;
        length[i]++;
        *id++ = static_cast<int32_t>(j);
      }
    }
  }
};

// Inputs lengths, features...; outputs lengths, features...
class PadEmptySamplesOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    CAFFE2_ENFORCE(outputs() == inputs(), "it has ", outputs() - 1, " outputs for ", inputs() - 1,
                   " features");
    const Tensor& lengths = input(0);
    CAFFE2_ENFORCE(lengths.rank() == 1, describe_input(0), " has shape ", lengths.shape().text(),
                   "; one dimension is needed");
    const int64_t n = lengths.size();
    const int32_t* length = lengths.data<int32_t>();
    const int64_t* offsets = offsets_of(0, length, n);
    for (int i = 1; i < inputs(); i++) {
      CAFFE2_ENFORCE(input(i).rank() > 0 && input(i).dim(0) == offsets[n], describe_input(i),
                     " has shape ", input(i).shape().text(), ", but ", describe_input(0),
                     " sums to ", offsets[n]);
    }
    const int64_t rows = offsets[n] + std::count(length, length + n, 0);
    Tensor& padded = output(0, {n}, DataType::kInt32);
    std::vector<Tensor*> made{nullptr};
    for (int i = 1; i < inputs(); i++) {
      made.push_back(&output(i, with_rows(input(i).shape(), rows), input(i).type()));
    }
    int32_t* out = padded.mutable_data<int32_t>();
    for (int64_t k = 0; k < n; k++) out[k] = std::max(length[k], 1);
    for (int i = 1; i < inputs(); i++) {
      clear(*made[i]);
      int64_t to = 0;
      for (int64_t k = 0; k < n; k++) {
        const int64_t count = offsets[k + 1] - offsets[k];
        copy_rows(input(i), offsets[k], count, *made[i], to, {});
        to += std::max<int64_t>(count, 1);
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(MergeIdLists, MergeIdListsOperator)
REGISTER_CPU_OPERATOR(KeySplit, KeySplitOperator)
REGISTER_CPU_OPERATOR(NGramFromCategorical, NGramFromCategoricalOperator)
REGISTER_CPU_OPERATOR(BatchBucketize, BatchBucketizeOperator)
REGISTER_CPU_OPERATOR(DenseVectorToIdList, DenseVectorToIdListOperator)
REGISTER_CPU_OPERATOR(PadEmptySamples, PadEmptySamplesOperator)

}  // namespace caffe2
