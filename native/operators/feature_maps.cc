// Features of examples, one blob or a few for each feature, merged into lists of (id, value).
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/records.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

// A source has one feature that is present or not (single), or any number of features with ids.
// The values of a feature are one (scalar), a list, or a map, which is a list of keys and values.
enum class Values { kScalar, kList, kMap };

// Where the blobs of a source are among its inputs; -1: it has none of these.
struct Parts {
  int count, lengths, keys, value_lengths, map_keys, values, presence;
};

constexpr Parts merge_parts(bool single, Values values) {
  if (single) {
    if (values == Values::kScalar) return {2, -1, -1, -1, -1, 0, 1};
    if (values == Values::kList) return {3, -1, -1, 0, -1, 1, 2};
    return {4, -1, -1, 0, 1, 2, 3};
  }
  if (values == Values::kScalar) return {3, 0, 1, -1, -1, 2, -1};
  if (values == Values::kList) return {4, 0, 1, 2, -1, 3, -1};
  return {5, 0, 1, 2, 3, 4, -1};
}

constexpr Parts gradient_parts(bool single, Values values) {
  if (values == Values::kScalar) {
    return single ? Parts{1, -1, -1, -1, -1, -1, 0} : Parts{1, 0, -1, -1, -1, -1, -1};
  }
  return single ? Parts{2, -1, -1, 0, -1, -1, 1} : Parts{2, 0, -1, 1, -1, -1, -1};
}

class FeatureOperator : public Operator {
 public:
  FeatureOperator(const OperatorContext& context, const Parts& parts)
      : Operator(context), parts_(parts) {}

 protected:
  struct Feature {
    int source;
    int64_t place, start, length;  // place: among the features of the source
    bool kept;
  };

  int sources() const { return sources_; }
  int64_t examples() const { return examples_; }
  int64_t total(int source) const { return totals_[source]; }  // values of a source
  int64_t feature_count(int source) const { return counts_[source]; }
  // How many features that count, and how many values they have.
  int64_t kept_features() const { return kept_features_; }
  int64_t kept_values() const { return kept_values_; }
  const Parts& parts() const { return parts_; }
  int at(int source, int part) const { return source * parts_.count + part; }

  void require(int i, DataType type) const {
    const Tensor& x = input(i);
    CAFFE2_ENFORCE(x.type() == type && x.rank() == 1, describe_input(i), " has type ",
                   type_name(x.type()), " and shape ", x.shape().text(), "; ", type_name(type),
                   " with one dimension is needed");
  }

  // Reads and checks the first `inputs` inputs.
  void find_features(int inputs) {
    CAFFE2_ENFORCE(inputs > 0 && inputs % parts_.count == 0, "it has ", inputs,
                   " inputs for sources; each source has ", parts_.count);
    sources_ = inputs / parts_.count;
    totals_.assign(sources_, 0);
    counts_.assign(sources_, 0);
    kept_features_ = kept_values_ = 0;
    const int first = parts_.presence >= 0 ? parts_.presence : parts_.lengths;
    examples_ = input(first).size();
    for (int k = 0; k < sources_; k++) {
      if (parts_.presence >= 0) require(at(k, parts_.presence), DataType::kBool);
      if (parts_.lengths >= 0) require(at(k, parts_.lengths), DataType::kInt32);
      if (parts_.value_lengths >= 0) require(at(k, parts_.value_lengths), DataType::kInt32);
      if (parts_.keys >= 0) require(at(k, parts_.keys), DataType::kInt64);
      CAFFE2_ENFORCE(input(at(k, first)).size() == examples_, describe_input(at(k, first)),
                     " has shape ", input(at(k, first)).shape().text(), ", but ",
                     describe_input(first), " has ", input(first).shape().text());
      counts_[k] = examples_;
      if (parts_.lengths >= 0) counts_[k] = sum(at(k, parts_.lengths));
      totals_[k] = counts_[k];
      if (parts_.value_lengths >= 0) {
        const int i = at(k, parts_.value_lengths);
        CAFFE2_ENFORCE(input(i).size() == counts_[k], describe_input(i), " has shape ",
                       input(i).shape().text(), "; there are ", counts_[k], " features");
        totals_[k] = sum(i);
      }
    }
    if (parts_.presence < 0) {
      kept_features_ = std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
      kept_values_ = std::accumulate(totals_.begin(), totals_.end(), int64_t{0});
      return;
    }
    visit([&](const Feature& f) {
      if (!f.kept) return;
      kept_features_++;
      kept_values_ += f.length;
    });
  }

  // Calls f for each feature, by example and then by source.
  template <class F>
  void visit(const F& f) const {
    visit_examples([](int64_t) {}, f);
  }
  template <class Begin, class F>
  void visit_examples(const Begin& begin, const F& f) const {
    std::vector<int64_t> place(sources_, 0), start(sources_, 0);
    for (int64_t example = 0; example < examples_; example++) {
      begin(example);
      for (int k = 0; k < sources_; k++) {
        const int64_t n =
            parts_.lengths < 0 ? 1 : input(at(k, parts_.lengths)).template data<int32_t>()[example];
        for (int64_t j = 0; j < n; j++, place[k]++) {
          Feature feature{k, place[k], start[k], 1, true};
          if (parts_.value_lengths >= 0) {
            feature.length = input(at(k, parts_.value_lengths)).template data<int32_t>()[place[k]];
          }
          if (parts_.presence >= 0) {
            feature.kept = input(at(k, parts_.presence)).template data<bool>()[example];
          }
          start[k] += feature.length;
          f(feature);
        }
      }
    }
  }

 private:
  int64_t sum(int i) const {
    const int32_t* lengths = input(i).data<int32_t>();
    int64_t found = 0;
    for (int64_t j = 0; j < input(i).size(); j++) {
      CAFFE2_ENFORCE(lengths[j] >= 0, describe_input(i), " holds ", lengths[j], " at position ", j,
                     "; lengths are not negative");
      found += lengths[j];
    }
    return found;
  }

  const Parts parts_;
  int sources_ = 0;
  int64_t examples_ = 0, kept_features_ = 0, kept_values_ = 0;
  std::vector<int64_t> totals_, counts_;
};

template <bool kSingle, Values kValues>
class MergeOperator : public FeatureOperator {
 public:
  explicit MergeOperator(const OperatorContext& context)
      : FeatureOperator(context, merge_parts(kSingle, kValues)) {
    if (kSingle) ids_ = args().integers("feature_ids");
  }

 protected:
  void run() override {
    find_features(inputs());
    CAFFE2_ENFORCE(!kSingle || static_cast<int>(ids_.size()) == sources(),
                   "argument 'feature_ids' has ", ids_.size(), " ids for ", sources(), " features");
    for (int k = 0; k < sources(); k++) {
      if (!kSingle) {
        const int keys = at(k, parts().keys);
        CAFFE2_ENFORCE(input(keys).size() == feature_count(k), describe_input(keys), " has shape ",
                       input(keys).shape().text(), "; there are ", feature_count(k), " features");
      }
      if (kValues == Values::kMap) require_values(k, parts().map_keys);
      require_values(k, parts().values);
    }
    int next = 0;
    Tensor& lengths = output(next++, {examples()}, DataType::kInt32);
    Tensor& keys = output(next++, {kept_features()}, DataType::kInt64);
    Tensor* value_lengths =
        kValues == Values::kScalar ? nullptr : &output(next++, {kept_features()}, DataType::kInt32);
    Tensor* map_keys = kValues == Values::kMap
                           ? &output(next++, {kept_values()}, input(parts().map_keys).type())
                           : nullptr;
    Tensor& values = output(next++, {kept_values()}, input(parts().values).type());

    int32_t* count = lengths.mutable_data<int32_t>() - 1;
    int64_t* key = keys.mutable_data<int64_t>();
    int32_t* length = value_lengths ? value_lengths->mutable_data<int32_t>() : nullptr;
    int64_t to = 0;
    visit_examples(
        [&](int64_t) { *++count = 0; },
        [&](const Feature& f) {
          if (!f.kept) return;
          ++*count;
          *key++ = kSingle ? ids_[f.source]
                           : input(at(f.source, parts().keys)).template data<int64_t>()[f.place];
          if (length) *length++ = static_cast<int32_t>(f.length);
          if (map_keys) {
            copy_rows(input(at(f.source, parts().map_keys)), f.start, f.length, *map_keys, to, {});
          }
          copy_rows(input(at(f.source, parts().values)), f.start, f.length, values, to, {});
          to += f.length;
        });
  }

 private:
  void require_values(int source, int part) const {
    const int i = at(source, part);
    require(i, input(part).type());
    CAFFE2_ENFORCE(input(i).size() == total(source), describe_input(i), " has shape ",
                   input(i).shape().text(), "; there are ", total(source), " values");
  }

  std::vector<int64_t> ids_;
};

// The last input is the gradient of the merged values; an output for each source.
template <bool kSingle, Values kValues>
class MergeGradientOperator : public FeatureOperator {
 public:
  explicit MergeGradientOperator(const OperatorContext& context)
      : FeatureOperator(context, gradient_parts(kSingle, kValues)) {}

 protected:
  void run() override {
    const int last = inputs() - 1;
    find_features(last);
    CAFFE2_ENFORCE(outputs() == sources(), "it has ", outputs(), " outputs for ", sources(),
                   " sources");
    const Tensor& merged = input(last);
    CAFFE2_ENFORCE(merged.rank() == 1 && merged.size() == kept_values(), describe_input(last),
                   " has shape ", merged.shape().text(), "; ", kept_values(),
                   " values were merged");
    std::vector<Tensor*> made;
    for (int k = 0; k < sources(); k++) made.push_back(&output(k, {total(k)}, merged.type()));
    for (Tensor* each : made) clear(*each);
    int64_t from = 0;
    visit([&](const Feature& f) {
      if (!f.kept) return;
      copy_rows(merged, from, f.length, *made[f.source], f.start, {});
      from += f.length;
    });
  }
};

class MergeDenseOperator : public Operator {
 public:
  explicit MergeDenseOperator(const OperatorContext& context)
      : Operator(context), ids_(args().integers("feature_ids")) {}

 protected:
  void run() override {
    const Tensor &x = input(0), &presence = input(1);
    CAFFE2_ENFORCE(x.rank() == 2 && x.shape() == presence.shape(), describe_input(1), " has shape ",
                   presence.shape().text(), ", ", describe_input(0), " ", x.shape().text(),
                   "; they must be matrices of one shape");
    const int64_t rows = x.dim(0), columns = x.dim(1);
    CAFFE2_ENFORCE(static_cast<int64_t>(ids_.size()) == columns, "argument 'feature_ids' has ",
                   ids_.size(), " ids for ", columns, " columns");
    const bool* present = presence.data<bool>();
    const int64_t n = std::count(present, present + presence.size(), true);
    Tensor& lengths = output(0, {rows}, DataType::kInt32);
    Tensor& keys = output(1, {n}, DataType::kInt64);
    Tensor& values = output(2, {n}, x.type());
    int32_t* count = lengths.mutable_data<int32_t>();
    int64_t* key = keys.mutable_data<int64_t>();
    by_size(x.type(), [&](auto kind) {
      using T = decltype(kind);
      const T* from = elements<T>(x);
      T* to = mutable_elements<T>(values);
      for (int64_t r = 0; r < rows; r++) {
        count[r] = 0;
        for (int64_t c = 0; c < columns; c++) {
          if (!present[r * columns + c]) continue;
          count[r]++;
          *key++ = ids_[c];
          *to++ = from[r * columns + c];
        }
      }
    });
  }

 private:
  const std::vector<int64_t> ids_;
};

using MergeSingleScalar = MergeOperator<true, Values::kScalar>;
using MergeSingleList = MergeOperator<true, Values::kList>;
using MergeSingleMap = MergeOperator<true, Values::kMap>;
using MergeMultiScalar = MergeOperator<false, Values::kScalar>;
using MergeMultiList = MergeOperator<false, Values::kList>;
using MergeMultiMap = MergeOperator<false, Values::kMap>;
using MergeSingleScalarGradient = MergeGradientOperator<true, Values::kScalar>;
using MergeSingleListGradient = MergeGradientOperator<true, Values::kList>;
using MergeMultiScalarGradient = MergeGradientOperator<false, Values::kScalar>;
using MergeMultiListGradient = MergeGradientOperator<false, Values::kList>;

}  // namespace

REGISTER_CPU_OPERATOR(MergeDenseFeatureTensors, MergeDenseOperator)
REGISTER_CPU_OPERATOR(MergeSingleScalarFeatureTensors, MergeSingleScalar)
REGISTER_CPU_OPERATOR(MergeSingleListFeatureTensors, MergeSingleList)
REGISTER_CPU_OPERATOR(MergeSingleMapFeatureTensors, MergeSingleMap)
REGISTER_CPU_OPERATOR(MergeMultiScalarFeatureTensors, MergeMultiScalar)
REGISTER_CPU_OPERATOR(MergeMultiListFeatureTensors, MergeMultiList)
REGISTER_CPU_OPERATOR(MergeMultiMapFeatureTensors, MergeMultiMap)
REGISTER_CPU_OPERATOR(MergeSingleScalarFeatureTensorsGradient, MergeSingleScalarGradient)
REGISTER_CPU_OPERATOR(MergeSingleListFeatureTensorsGradient, MergeSingleListGradient)
REGISTER_CPU_OPERATOR(MergeSingleMapFeatureTensorsGradient, MergeSingleListGradient)
REGISTER_CPU_OPERATOR(MergeMultiScalarFeatureTensorsGradient, MergeMultiScalarGradient)
REGISTER_CPU_OPERATOR(MergeMultiListFeatureTensorsGradient, MergeMultiListGradient)
REGISTER_CPU_OPERATOR(MergeMultiMapFeatureTensorsGradient, MergeMultiListGradient)

}  // namespace caffe2
