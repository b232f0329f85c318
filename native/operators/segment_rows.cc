// Rows of segments: padded, split, chosen, packed for recurrent nets; and rows parted by keys.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/segments.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// Rows of input 0 that belong to segments.
class RowsBase : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  // The segments of input i, which hold all rows of input 0, a tensor of `least` dimensions.
  void find_rows(int i, int least = 1) {
    require_dimensions(0, least);
    find_segments(SegmentKind::kLengths, i, input(0).dim(0));
  }
  void require_dimensions(int i, int least) const {
    CAFFE2_ENFORCE(input(i).rank() >= least, describe_input(i), " has shape ",
                   input(i).shape().text(), "; needed dimensions: at least ", least);
  }
  int64_t length(int64_t k) const { return offset(k + 1) - offset(k); }
  int64_t longest() const {
    int64_t most = 0;
    for (int64_t k = 0; k < segments(); k++) most = std::max(most, length(k));
    return most;
  }
};

class LengthsPadOperator : public RowsBase {
 public:
  explicit LengthsPadOperator(const OperatorContext& context)
      : RowsBase(context),
        value_(args().real("padding_value")),
        target_(args().integer("target_length")) {}

 protected:
  void run() override {
    find_rows(1);
    CAFFE2_ENFORCE(longest() <= target_, describe_input(1), " holds ", longest(),
                   "; target_length = ", target_);
    const Tensor& data = input(0);
    if (data.type() == DataType::kInt32 || data.type() == DataType::kInt64) {
      CAFFE2_ENFORCE(value_ >= -0x1p31f && value_ < 0x1p31f, "padding_value = ", value_,
                     ", which is no int32");
    }
    Tensor& y = output(0, with_rows(data.shape(), segments() * target_), data.type());
    switch (data.type()) {
      case DataType::kFloat:
        return pad<float>(y);
      case DataType::kDouble:
        return pad<double>(y);
      case DataType::kInt32:
        return pad<int32_t>(y);
      default:
        return pad<int64_t>(y);
    }
  }

 private:
  template <class T>
  void pad(Tensor& y) const {
    const int64_t width = y.shape().product(1, y.rank());
    const T* from = input(0).data<T>();
    T* to = y.mutable_data<T>();
    for (int64_t k = 0; k < segments(); k++) {
      to = std::copy_n(from + offset(k) * width, length(k) * width, to);
      to = std::fill_n(to, (target_ - length(k)) * width, static_cast<T>(value_));
    }
  }

  const float value_;
  const int64_t target_;
};

class LengthsSplitOperator : public RowsBase {
 public:
  explicit LengthsSplitOperator(const OperatorContext& context)
      : RowsBase(context), n_split_(args().has("n_split") ? args().integer("n_split") : 0) {
    CAFFE2_ENFORCE(context.def.input.size() == 2 || n_split_ >= 1,
                   "argument 'n_split' is missing, and so is the input");
  }

 protected:
  void run() override {
    find_segments(SegmentKind::kLengths, 0, -1);
    int64_t count = n_split_;
    if (has_input(1)) {
      CAFFE2_ENFORCE(input(1).size() == 1, describe_input(1), " has shape ",
                     input(1).shape().text(), "; one value is needed");
      count = input(1).data<int32_t>()[0];
    }
    CAFFE2_ENFORCE(count >= 1, "n_split is ", count, "; it is at least 1");
    int32_t* out = output(0, {segments() * count}, DataType::kInt32).mutable_data<int32_t>();
    for (int64_t k = 0; k < segments(); k++) {
      for (int64_t i = 0; i < count; i++) {
        *out++ = static_cast<int32_t>(length(k) / count + (i < length(k) % count));
      }
    }
  }

 private:
  const int64_t n_split_;
};

class LengthsGatherOperator : public RowsBase {
 public:
  using RowsBase::RowsBase;

 protected:
  void run() override {
    find_rows(1);
    const int64_t* chosen = find_indices(2, segments());
    int64_t total = 0;
    for (int64_t j = 0; j < input(2).size(); j++) total += length(chosen[j]);
    const Tensor& items = input(0);
    Tensor& y = output(0, with_rows(items.shape(), total), items.type());
    const int64_t width = items.shape().product(1, items.rank());
    by_size(items.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      T* to = mutable_elements<T>(y);
      for (int64_t j = 0; j < input(2).size(); j++) {
        const int64_t k = chosen[j];
        to = std::copy_n(elements<T>(items) + offset(k) * width, length(k) * width, to);
      }
    });
  }
};

class LengthsTopKOperator : public RowsBase {
 public:
  explicit LengthsTopKOperator(const OperatorContext& context)
      : RowsBase(context), k_(args().integer("k")) {}

 protected:
  void run() override {
    CAFFE2_ENFORCE(input(0).rank() == 1, describe_input(0), " has shape ", input(0).shape().text(),
                   "; one dimension is needed");
    find_rows(1);
    auto* order = scratch<int32_t>(longest());
    Tensor& values = output(0, {segments(), k_}, DataType::kFloat);
    Tensor& indices = output(1, {segments(), k_}, DataType::kInt32);
    clear(values);
    float* value = values.mutable_data<float>();
    int32_t* index = indices.mutable_data<int32_t>();
    std::fill_n(index, indices.size(), -1);
    for (int64_t s = 0; s < segments(); s++, value += k_, index += k_) {
      const float* x = input(0).data<float>() + offset(s);
      const int64_t found = std::min(k_, length(s));
      std::iota(order, order + length(s), 0);
      // A NaN is behind all numbers; of equal elements the first comes first.
      std::partial_sort(order, order + found, order + length(s), [&](int32_t a, int32_t b) {
        if (x[a] > x[b] || (std::isnan(x[b]) && !std::isnan(x[a]))) return true;
        if (x[a] < x[b] || (std::isnan(x[a]) && !std::isnan(x[b]))) return false;
        return a < b;
      });
      for (int64_t j = 0; j < found; j++) {
        value[j] = x[order[j]];
        index[j] = order[j];
      }
    }
  }

 private:
  const int64_t k_;
};

// Inputs: LENGTHS, TopKIndices, dTopKValue.
class LengthsTopKGradientOperator : public RowsBase {
 public:
  explicit LengthsTopKGradientOperator(const OperatorContext& context)
      : RowsBase(context), k_(args().integer("k")) {}

 protected:
  void run() override {
    find_segments(SegmentKind::kLengths, 0, -1);
    for (const int i : {1, 2}) {
      CAFFE2_ENFORCE(input(i).shape() == (Shape{segments(), k_}), describe_input(i), " has shape ",
                     input(i).shape().text(), "; (", segments(), ", ", k_, ") is needed");
    }
    const int32_t* index = input(1).data<int32_t>();
    for (int64_t j = 0; j < segments() * k_; j++) {
      CAFFE2_ENFORCE(index[j] >= -1 && index[j] < length(j / k_), describe_input(1), " holds ",
                     index[j], "; segment ", j / k_, " has ", length(j / k_), " elements");
    }
    Tensor& dx = output(0, {rows()}, DataType::kFloat);
    clear(dx);
    const float* grad = input(2).data<float>();
    float* out = dx.mutable_data<float>();
    for (int64_t j = 0; j < segments() * k_; j++) {
      if (index[j] >= 0) out[offset(j / k_) + index[j]] = grad[j];
    }
  }

 private:
  const int64_t k_;
};

class LengthsToWeightsOperator : public Operator {
 public:
  explicit LengthsToWeightsOperator(const OperatorContext& context)
      : Operator(context), power_(args().real("power")) {}

 protected:
  void run() override {
    CAFFE2_ENFORCE(input(0).rank() == 1, describe_input(0), " has shape ", input(0).shape().text(),
                   "; one dimension is needed");
    if (input(0).type() == DataType::kInt32) {
      spread(input(0).data<int32_t>());
    } else {
      spread(input(0).data<int64_t>());
    }
  }

 private:
  template <class T>
  void spread(const T* lengths) {
    const int64_t n = input(0).size();
    int64_t total = 0;
    for (int64_t k = 0; k < n; k++) {
      CAFFE2_ENFORCE(lengths[k] >= 0, describe_input(0), " holds ", lengths[k], " at position ", k,
                     "; lengths are not negative");
      CAFFE2_ENFORCE(!__builtin_add_overflow(total, lengths[k], &total), describe_input(0),
                     " sums to more than int64 can hold");
    }
    float* out = output(0, {total}, DataType::kFloat).template mutable_data<float>();
    for (int64_t k = 0; k < n; k++) {
      const double weight = 1 / std::pow(static_cast<double>(lengths[k]), double{power_});
      out = std::fill_n(out, lengths[k], static_cast<float>(weight));
    }
  }

  const float power_;
};

class PackSequenceOperator : public RowsBase {
 public:
  using RowsBase::RowsBase;

 protected:
  void run() override {
    find_rows(1, 2);
    const Tensor& values = input(0);
    Shape shape{longest(), segments()};
    for (int i = 1; i < values.rank(); i++) shape.append(values.dim(i));
    Tensor& y = output(0, shape, values.type());
    clear(y);
    const int64_t width = values.shape().product(1, values.rank());
    by_size(values.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(values);
      T* to = mutable_elements<T>(y);
      for (int64_t s = 0; s < segments(); s++) {
        for (int64_t t = 0; t < length(s); t++, from += width) {
          std::copy_n(from, width, to + (t * segments() + s) * width);
        }
      }
    });
  }
};

class UnpackSequenceOperator : public RowsBase {
 public:
  using RowsBase::RowsBase;

 protected:
  void run() override {
    require_dimensions(0, 3);
    find_segments(SegmentKind::kLengths, 1, -1);
    const Tensor& values = input(0);
    CAFFE2_ENFORCE(values.dim(1) == segments() && longest() <= values.dim(0), describe_input(0),
                   " has shape ", values.shape().text(), "; there are ", segments(),
                   " sequences of up to ", longest(), " steps");
    Shape shape{rows()};
    for (int i = 2; i < values.rank(); i++) shape.append(values.dim(i));
    Tensor& y = output(0, shape, values.type());
    const int64_t width = values.shape().product(2, values.rank());
    by_size(values.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      T* to = mutable_elements<T>(y);
      for (int64_t s = 0; s < segments(); s++) {
        for (int64_t t = 0; t < length(s); t++) {
          to = std::copy_n(elements<T>(values) + (t * segments() + s) * width, width, to);
        }
      }
    });
  }
};

// Operators that part rows by keys.
class KeysBase : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  // The part of each key of input i, and how many keys it has.
  void find_parts(int i, int64_t parts) {
    const Tensor& keys = input(i);
    part_ = scratch<int32_t>(keys.size());
    counts_.assign(parts, 0);
    for (int64_t j = 0; j < keys.size(); j++) {
      const int64_t rest = key(i, j) % parts;
      part_[j] = static_cast<int32_t>(rest < 0 ? rest + parts : rest);
      counts_[part_[j]]++;
    }
  }
  int64_t key(int i, int64_t j) const {
    const Tensor& keys = input(i);
    return keys.type() == DataType::kInt32 ? keys.data<int32_t>()[j] : keys.data<int64_t>()[j];
  }
  int32_t part(int64_t j) const { return part_[j]; }
  int64_t count(int64_t part) const { return counts_[part]; }

 private:
  int32_t* part_ = nullptr;
  std::vector<int64_t> counts_;
};

// Inputs: lengths where they are, keys and rows. Outputs: the same for each part.
template <bool lengths>
class PartitionOperator : public KeysBase {
 public:
  explicit PartitionOperator(const OperatorContext& context)
      : KeysBase(context), packed_(args().boolean("pack_first_input")) {
    const size_t given = context.def.input.size(), made = context.def.output.size();
    CAFFE2_ENFORCE(made % given == 0, "it has ", made, " outputs; needed is a multiple of the ",
                   given, " inputs");
  }

 protected:
  void run() override {
    const Tensor& keys = input(lengths);
    const int64_t parts = outputs() / inputs(), n = keys.size();
    if constexpr (lengths) {
      CAFFE2_ENFORCE(keys.rank() == 1, describe_input(1), " has shape ", keys.shape().text(),
                     "; one dimension is needed");
      find_segments(SegmentKind::kLengths, 0, n);
    }
    for (int i = lengths + 1; i < inputs(); i++) {
      bool fits = input(i).rank() >= keys.rank();
      for (int d = 0; fits && d < keys.rank(); d++) fits = input(i).dim(d) == keys.dim(d);
      CAFFE2_ENFORCE(fits, describe_input(i), " has shape ", input(i).shape().text(),
                     "; it begins with that of the keys, ", keys.shape().text());
    }
    find_parts(lengths, parts);
    std::vector<Tensor*> made;
    for (int o = 0; o < outputs(); o++) {
      const int i = o % inputs();
      Shape shape{lengths && i == 0 ? segments() : count(o / inputs())};
      for (int d = keys.rank(); i > lengths && d < input(i).rank(); d++) {
        shape.append(input(i).dim(d));
      }
      made.push_back(&output(o, shape, input(i).type()));
    }
    for (int o = 0; o < outputs(); o++) {
      const int i = o % inputs();
      if (lengths && i == 0) {
        write_lengths(o / inputs(), made[o]->template mutable_data<int32_t>());
      } else {
        write_rows(i, o / inputs(), *made[o]);
      }
    }
    for (int64_t p = 0; packed_ && p < parts; p++) pack(p, parts, *made[p * inputs() + lengths]);
  }

 private:
  void write_lengths(int part_number, int32_t* out) const {
    for (int64_t k = 0; k < segments(); k++) {
      out[k] = 0;
      for (int64_t j = offset(k); j < offset(k + 1); j++) out[k] += part(j) == part_number;
    }
  }
  void write_rows(int i, int part_number, Tensor& y) const {
    const Tensor& keys = input(lengths);
    const int64_t width = input(i).shape().product(keys.rank(), input(i).rank());
    by_size(y.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      T* to = mutable_elements<T>(y);
      for (int64_t j = 0; j < keys.size(); j++) {
        if (part(j) == part_number) {
          to = std::copy_n(elements<T>(input(i)) + j * width, width, to);
        }
      }
    });
  }
  static void pack(int64_t part_number, int64_t parts, Tensor& keys) {
    if (keys.type() == DataType::kInt32) {
      divide(part_number, parts, keys.size(), keys.mutable_data<int32_t>());
    } else {
      divide(part_number, parts, keys.size(), keys.mutable_data<int64_t>());
    }
  }
  // Rounded down: what is below 0 and no multiple lies one lower.
  template <class T>
  static void divide(int64_t part_number, int64_t parts, int64_t n, T* keys) {
    for (int64_t j = 0; j < n; j++) {
      const bool lower = keys[j] < 0 && part_number != 0;
      keys[j] = static_cast<T>(keys[j] / parts - lower);
    }
  }

  const bool packed_;
};

class GatherByKeyOperator : public KeysBase {
 public:
  using KeysBase::KeysBase;

 protected:
  void run() override {
    const Tensor &keys = input(0), &first = input(1);
    CAFFE2_ENFORCE(keys.rank() == 1, describe_input(0), " has shape ", keys.shape().text(),
                   "; one dimension is needed");
    find_parts(0, inputs() - 1);
    CAFFE2_ENFORCE(first.rank() >= 1, describe_input(1), " is a scalar; rows are needed");
    for (int i = 1; i < inputs(); i++) {
      const Tensor& shard = input(i);
      CAFFE2_ENFORCE(
          shard.type() == first.type() && shard.shape() == with_rows(first.shape(), count(i - 1)),
          describe_input(i), " is ", type_name(shard.type()), " of shape ", shard.shape().text(),
          "; ", count(i - 1), " keys go to it, and ", describe_input(1), " is ",
          type_name(first.type()), " of shape ", first.shape().text());
    }
    Tensor& y = output(0, with_rows(first.shape(), keys.size()), first.type());
    const int64_t width = first.shape().product(1, first.rank());
    std::vector<int64_t> next(inputs() - 1, 0);
    by_size(first.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      T* to = mutable_elements<T>(y);
      for (int64_t j = 0; j < keys.size(); j++) {
        const T* from = elements<T>(input(part(j) + 1)) + next[part(j)]++ * width;
        to = std::copy_n(from, width, to);
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(LengthsPad, LengthsPadOperator)
REGISTER_CPU_OPERATOR(LengthsSplit, LengthsSplitOperator)
REGISTER_CPU_OPERATOR(LengthsGather, LengthsGatherOperator)
REGISTER_CPU_OPERATOR(LengthsTopK, LengthsTopKOperator)
REGISTER_CPU_OPERATOR(LengthsTopKGradient, LengthsTopKGradientOperator)
REGISTER_CPU_OPERATOR(LengthsToWeights, LengthsToWeightsOperator)
REGISTER_CPU_OPERATOR(PackRNNSequence, PackSequenceOperator)
REGISTER_CPU_OPERATOR(UnpackRNNSequence, UnpackSequenceOperator)
REGISTER_CPU_OPERATOR(Partition, PartitionOperator<false>)
REGISTER_CPU_OPERATOR(LengthsPartition, PartitionOperator<true>)
REGISTER_CPU_OPERATOR(GatherByKey, GatherByKeyOperator)

}  // namespace caffe2
