// Tables whose rows are kept in 8, 4 or 2 bits per value, each row with its scale and bias.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/registry.h"
#include "operators/half.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

inline float value_of(float value) { return value; }
inline float value_of(uint16_t half) { return half_to_float(half); }

inline uint8_t level(float scaled, float top) {
  // A value that is not a number is 0, as is everything below.
  return scaled > 0 ? static_cast<uint8_t>(std::min(std::nearbyint(scaled), top)) : 0;
}

// How the rows of a fused table are written: the bits of a value, those it takes, and whether
// scale and bias are float16. Rounded ones have that precision, whatever their type is.
template <int kBits, int kStored, bool kHalf, bool kRounded>
struct Format {
  using Scale = std::conditional_t<kHalf, uint16_t, float>;
  static constexpr int kPerByte = 8 / kStored;
  static constexpr int64_t kTail = 2 * sizeof(Scale);
  static constexpr float kTop = (1 << kBits) - 1;

  static Scale to_scale(float value) {
    if constexpr (kHalf) {
      return float_to_half(value);
    } else {
      return value;
    }
  }

  // One row; the tail lies behind (columns / kPerByte) bytes.
  template <class T>
  static void write(const T* in, int64_t columns, uint8_t* out) {
    float low = 0, high = 0;
    for (int64_t i = 0; i < columns; i++) {
      const float value = value_of(in[i]);
      low = i == 0 ? value : std::min(low, value);
      high = i == 0 ? value : std::max(high, value);
    }
    float scale, factor;
    if constexpr (kRounded) {
      low = half_to_float(float_to_half(low));
      scale = half_to_float(float_to_half((high - low) / kTop));
      if (scale == 0) scale = 1;
      factor = 1 / scale;
    } else {
      scale = (high - low) / kTop;
      factor = kTop / (high - low + 1e-8f);
    }
    for (int64_t i = 0; i < columns; i += kPerByte) {
      unsigned byte = 0;
      for (int p = 0; p < kPerByte; p++) {
        byte |= level((value_of(in[i + p]) - low) * factor, kTop) << (p * kStored);
      }
      *out++ = static_cast<uint8_t>(byte);
    }
    const Scale tail[2] = {to_scale(scale), to_scale(low)};
    std::memcpy(out, tail, kTail);
  }

  struct Row {
    const uint8_t* bytes;
    float scale, bias;
    float level(int64_t i) const {
      if constexpr (kPerByte == 1) return bytes[i];
      constexpr int kMask = (1 << kStored) - 1;
      return static_cast<float>(bytes[i / kPerByte] >> (i % kPerByte * kStored) & kMask);
    }
  };
  static Row read(const uint8_t* row, int64_t bytes) {
    Scale tail[2];
    std::memcpy(tail, row + bytes - kTail, kTail);
    return {row, value_of(tail[0]), value_of(tail[1])};
  }
};

using Fused8 = Format<8, 8, false, false>;
using Fused8Half = Format<8, 8, true, true>;
using Fused4 = Format<4, 4, true, true>;
using Fused2 = Format<2, 2, true, true>;
using Fake4 = Format<4, 8, false, true>;
using Fake2 = Format<2, 8, false, true>;

// The shape of `like` with another last dimension.
Shape with_columns(const Shape& like, int64_t columns) {
  Shape shape;
  for (int i = 0; i + 1 < like.rank(); i++) shape.append(like[i]);
  shape.append(columns);
  return shape;
}

template <class T, class F>
class FuseOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() >= 1, describe_input(0), " is a scalar; rows are needed");
    const int64_t columns = x.dim(x.rank() - 1), rows = x.shape().product(0, x.rank() - 1);
    CAFFE2_ENFORCE(columns % F::kPerByte == 0, describe_input(0), " has shape ", x.shape().text(),
                   "; rows have a multiple of ", F::kPerByte, " values");
    const int64_t bytes = columns / F::kPerByte + F::kTail;
    Tensor& y = output(0, with_columns(x.shape(), bytes), DataType::kUInt8);
    const T* in = elements<T>(x);
    uint8_t* out = y.mutable_data<uint8_t>();
    for_ranges(parallel(), rows, rows_per_block(columns), [&](int64_t r, int64_t end) {
      for (; r < end; r++) F::write(in + r * columns, columns, out + r * bytes);
    });
  }
};

// Operators that read fused rows.
template <class F>
class FusedBase : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void find_table() {
    const Tensor& data = input(0);
    CAFFE2_ENFORCE(data.rank() >= 1 && data.dim(data.rank() - 1) >= F::kTail, describe_input(0),
                   " has shape ", data.shape().text(), "; scale and bias take ", F::kTail,
                   " bytes of a row");
    bytes_ = data.dim(data.rank() - 1);
    columns_ = (bytes_ - F::kTail) * F::kPerByte;
  }
  void find_matrix() {
    CAFFE2_ENFORCE(input(0).rank() == 2, describe_input(0), " has shape ", input(0).shape().text(),
                   "; two dimensions are needed");
    find_table();
  }
  typename F::Row table_row(int64_t r) const {
    return F::read(input(0).template data<uint8_t>() + r * bytes_, bytes_);
  }
  int64_t columns_ = 0;

 private:
  int64_t bytes_ = 0;
};

template <class T, class F>
class OpenOperator : public FusedBase<F> {
 public:
  using FusedBase<F>::FusedBase;

 protected:
  void run() override {
    this->find_table();
    const Tensor& x = this->input(0);
    const int64_t rows = x.shape().product(0, x.rank() - 1), columns = this->columns_;
    Tensor& y = this->output(0, with_columns(x.shape(), columns),
                             std::is_same_v<T, float> ? DataType::kFloat : DataType::kFloat16);
    T* out = mutable_elements<T>(y);
    for_ranges(this->parallel(), rows, rows_per_block(columns), [&](int64_t r, int64_t end) {
      for (; r < end; r++) {
        const auto row = this->table_row(r);
        for (int64_t i = 0; i < columns; i++) {
          const float value = row.level(i) * row.scale + row.bias;
          if constexpr (std::is_same_v<T, float>) {
            out[r * columns + i] = value;
          } else {
            out[r * columns + i] = float_to_half(value);
          }
        }
      }
    });
  }
};

class GatherFusedOperator : public FusedBase<Fused8> {
 public:
  using FusedBase::FusedBase;

 protected:
  void run() override {
    find_matrix();
    const int64_t* indices = find_indices(1, input(0).dim(0));
    const int64_t count = input(1).size();
    Tensor& y = output(0, {count, columns_}, DataType::kFloat);
    float* out = y.mutable_data<float>();
    for_ranges(parallel(), count, rows_per_block(columns_), [&](int64_t k, int64_t end) {
      for (; k < end; k++) {
        const auto row = table_row(indices[k]);
        for (int64_t i = 0; i < columns_; i++) {
          out[k * columns_ + i] = row.level(i) * row.scale + row.bias;
        }
      }
    });
  }
};

// Rows with scale and bias in input 3 (4 with weights).
struct Apart {
  struct Row {
    const uint8_t* bytes;
    float scale, bias;
    float level(int64_t i) const { return bytes[i]; }
  };
};

// The row that each number of input i stands for, by the mapping in a later input; -1 for one that
// was pruned. `rows`: how many there are, or -1.
template <class Base>
class Pruned : public Base {
 public:
  using Base::Base;

 protected:
  const int64_t* find_places(int i, int mapping, int64_t rows) {
    const Tensor& given = this->input(mapping);
    CAFFE2_ENFORCE(given.rank() == 1, this->describe_input(mapping), " has shape ",
                   given.shape().text(), "; one dimension is needed");
    const int32_t* places = given.template data<int32_t>();
    if (rows >= 0 && given.size() == 1 && places[0] == 0) return this->find_indices(i, rows);
    const int64_t* indices = this->find_indices(i, given.size());
    const int64_t count = this->input(i).size();
    auto* found = this->template scratch<int64_t>(count);
    for (int64_t p = 0; p < count; p++) {
      found[p] = places[indices[p]];
      CAFFE2_ENFORCE(found[p] >= -1 && (rows < 0 || found[p] < rows), this->describe_input(mapping),
                     " holds ", found[p], " at position ", indices[p],
                     "; it is no row of the table, and -1 stands for none");
    }
    return found;
  }
};

// Inputs: DATA, WEIGHTS of weighted reducers, INDICES, LENGTHS; and scale_bias where it is apart,
// or the mapping of a pruned table.
template <class F, bool weighted, bool mean, bool pruned = false>
class LookupOperator
    : public Pruned<std::conditional_t<std::is_same_v<F, Apart>, FusedBase<Fused8>, FusedBase<F>>> {
  static constexpr bool kApart = std::is_same_v<F, Apart>;
  using Base = Pruned<std::conditional_t<kApart, FusedBase<Fused8>, FusedBase<F>>>;

 public:
  using Base::Base;

 protected:
  void run() override {
    const Tensor& data = this->input(0);
    if constexpr (kApart) {
      CAFFE2_ENFORCE(data.rank() == 2, this->describe_input(0), " has shape ", data.shape().text(),
                     "; two dimensions are needed");
      const Tensor& ends = this->input(3 + weighted);
      CAFFE2_ENFORCE(ends.shape() == (Shape{data.dim(0), 2}), this->describe_input(3 + weighted),
                     " has shape ", ends.shape().text(), "; (", data.dim(0), ", 2) is needed");
      this->columns_ = data.dim(1);
    } else {
      this->find_matrix();
    }
    const int64_t* indices = pruned ? this->find_places(1 + weighted, 3 + weighted, data.dim(0))
                                    : this->find_indices(1 + weighted, data.dim(0));
    const int64_t count = this->input(1 + weighted).size(), columns = this->columns_;
    this->find_segments(SegmentKind::kLengths, 2 + weighted, count);
    const float* weights = nullptr;
    if constexpr (weighted) {
      const Tensor& given = this->input(1);
      // With scale_bias apart further weights are not used, as old nets have them.
      const bool fits =
          given.rank() == 1 && (kApart ? given.size() >= count : given.size() == count);
      CAFFE2_ENFORCE(fits, this->describe_input(1), " has shape ", given.shape().text(), "; (",
                     count, ",) is needed");
      weights = given.template data<float>();
    }
    const int64_t segments = this->segments();
    Tensor& y = this->output(0, {segments, columns}, DataType::kFloat);
    float* out = y.template mutable_data<float>();
    const int64_t mean_rows = segments > 0 ? count / segments + 1 : 1;
    const auto reduce = [&](int64_t k, int64_t end) {
      for (; k < end; k++) {
        float* sum = out + k * columns;
        std::fill_n(sum, columns, 0.0f);
        const int64_t begin = this->offset(k), stop = this->offset(k + 1);
        const float share = mean && stop > begin ? 1 / static_cast<float>(stop - begin) : 1.0f;
        for (int64_t p = begin; p < stop; p++) {
          if (pruned && indices[p] < 0) continue;
          const auto row = find_row(indices[p]);
          const float weight = weighted ? weights[p] * share : share;
          const float scale = weight * row.scale, bias = weight * row.bias;
          for (int64_t i = 0; i < columns; i++) sum[i] += scale * row.level(i) + bias;
        }
      }
    };
    for_ranges(this->parallel(), segments, rows_per_block(columns * mean_rows), reduce);
  }

 private:
  auto find_row(int64_t r) const {
    if constexpr (kApart) {
      const float* ends = this->input(3 + weighted).template data<float>() + 2 * r;
      const auto* bytes = this->input(0).template data<uint8_t>() + r * this->columns_;
      return Apart::Row{bytes, ends[0], ends[1]};
    } else {
      return this->table_row(r);
    }
  }
};

// Inputs INDICES, LENGTHS, the mapping and WEIGHTS; outputs them without what was pruned.
class SparseLookupOperator : public Pruned<SegmentBase> {
 public:
  explicit SparseLookupOperator(const OperatorContext& context) : Pruned(context) {
    CAFFE2_ENFORCE(context.def.output.size() == context.def.input.size() - 1, "it has ",
                   context.def.input.size(), " inputs and ", context.def.output.size(),
                   " outputs; weights are read and written, or neither");
  }

 protected:
  void run() override {
    const int64_t* places = find_places(0, 2, -1);
    const int64_t count = input(0).size();
    find_segments(SegmentKind::kLengths, 1, count);
    const float* weights = nullptr;
    if (has_input(3)) {
      CAFFE2_ENFORCE(input(3).shape() == Shape{count}, describe_input(3), " has shape ",
                     input(3).shape().text(), "; (", count, ",) is needed");
      weights = input(3).data<float>();
    }
    const int64_t kept = std::count_if(places, places + count, [](int64_t p) { return p >= 0; });
    Tensor& numbers = output(0, {kept}, input(0).type());
    int32_t* lengths = output(1, {segments()}, DataType::kInt32).mutable_data<int32_t>();
    float* out = nullptr;
    if (weights != nullptr) out = output(2, {kept}, DataType::kFloat).mutable_data<float>();
    if (numbers.type() == DataType::kInt64) {
      write(places, weights, numbers.mutable_data<int64_t>(), lengths, out);
    } else {
      write(places, weights, numbers.mutable_data<int32_t>(), lengths, out);
    }
  }

 private:
  template <class T>
  void write(const int64_t* places, const float* weights, T* numbers, int32_t* lengths,
             float* out) const {
    for (int64_t k = 0; k < segments(); k++) {
      lengths[k] = 0;
      for (int64_t p = offset(k); p < offset(k + 1); p++) {
        if (places[p] < 0) continue;
        *numbers++ = static_cast<T>(places[p]);
        lengths[k]++;
        if (weights != nullptr) *out++ = weights[p];
      }
    }
  }
};

class RowwiseQuantizeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() >= 1, describe_input(0), " is a scalar; rows are needed");
    const int64_t rows = x.dim(0), columns = x.shape().product(1, x.rank());
    Tensor& y = output(0, x.shape(), DataType::kUInt8);
    Tensor& ends = output(1, {rows, 2}, DataType::kFloat);
    const float* in = x.data<float>();
    uint8_t* out = y.mutable_data<uint8_t>();
    float* scale_bias = ends.mutable_data<float>();
    for_ranges(parallel(), rows, rows_per_block(columns), [&](int64_t r, int64_t end) {
      for (; r < end; r++) {
        const float* row = in + r * columns;
        float low = 0, high = 0;
        if (columns > 0) {
          low = *std::min_element(row, row + columns);
          high = *std::max_element(row, row + columns);
        }
        const float scale = high == low ? 1 : (high - low) / 255, factor = 1 / scale;
        for (int64_t i = 0; i < columns; i++) {
          out[r * columns + i] = level((row[i] - low) * factor, 255);
        }
        scale_bias[2 * r] = scale;
        scale_bias[2 * r + 1] = low;
      }
    });
  }
};

class RowwiseOpenOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &x = input(0), &ends = input(1);
    CAFFE2_ENFORCE(x.rank() >= 1, describe_input(0), " is a scalar; rows are needed");
    const int64_t rows = x.dim(0), columns = x.shape().product(1, x.rank());
    CAFFE2_ENFORCE(ends.shape() == (Shape{rows, 2}), describe_input(1), " has shape ",
                   ends.shape().text(), "; (", rows, ", 2) is needed");
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const uint8_t* in = x.data<uint8_t>();
    const float* scale_bias = ends.data<float>();
    float* out = y.mutable_data<float>();
    for_ranges(parallel(), rows, rows_per_block(columns), [&](int64_t r, int64_t end) {
      for (; r < end; r++) {
        const float scale = scale_bias[2 * r], bias = scale_bias[2 * r + 1];
        for (int64_t i = r * columns; i < (r + 1) * columns; i++) out[i] = in[i] * scale + bias;
      }
    });
  }
};

}  // namespace

// clang-format off
REGISTER_CPU_OPERATOR(FloatToFused8BitRowwiseQuantized, FuseOperator<float, Fused8>)
REGISTER_CPU_OPERATOR(FloatToFused8BitRowwiseQuantizedHalfScaleBias, FuseOperator<float, Fused8Half>)
REGISTER_CPU_OPERATOR(Fused8BitRowwiseQuantizedToFloat, OpenOperator<float, Fused8>)
REGISTER_CPU_OPERATOR(HalfFloatToFused8BitRowwiseQuantized, FuseOperator<uint16_t, Fused8>)
REGISTER_CPU_OPERATOR(HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias, FuseOperator<uint16_t, Fused8Half>)
REGISTER_CPU_OPERATOR(Fused8BitRowwiseQuantizedToHalfFloat, OpenOperator<uint16_t, Fused8>)
REGISTER_CPU_OPERATOR(Fused8BitRowwiseQuantizedHalfScaleBiasToFloat, OpenOperator<float, Fused8Half>)
REGISTER_CPU_OPERATOR(Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat, OpenOperator<float, Fused8Half>)
REGISTER_CPU_OPERATOR(FloatToFused4BitRowwiseQuantized, FuseOperator<float, Fused4>)
REGISTER_CPU_OPERATOR(FloatToFused4BitFakeRowwiseQuantized, FuseOperator<float, Fake4>)
REGISTER_CPU_OPERATOR(Fused4BitRowwiseQuantizedToFloat, OpenOperator<float, Fused4>)
REGISTER_CPU_OPERATOR(HalfToFused4BitRowwiseQuantized, FuseOperator<uint16_t, Fused4>)
REGISTER_CPU_OPERATOR(HalfToFused4BitFakeRowwiseQuantized, FuseOperator<uint16_t, Fake4>)
REGISTER_CPU_OPERATOR(Fused4BitRowwiseQuantizedToHalf, OpenOperator<uint16_t, Fused4>)
REGISTER_CPU_OPERATOR(FloatToFused2BitRowwiseQuantized, FuseOperator<float, Fused2>)
REGISTER_CPU_OPERATOR(FloatToFused2BitFakeRowwiseQuantized, FuseOperator<float, Fake2>)
REGISTER_CPU_OPERATOR(Fused2BitRowwiseQuantizedToFloat, OpenOperator<float, Fused2>)
REGISTER_CPU_OPERATOR(HalfToFused2BitRowwiseQuantized, FuseOperator<uint16_t, Fused2>)
REGISTER_CPU_OPERATOR(HalfToFused2BitFakeRowwiseQuantized, FuseOperator<uint16_t, Fake2>)
REGISTER_CPU_OPERATOR(Fused2BitRowwiseQuantizedToHalf, OpenOperator<uint16_t, Fused2>)
REGISTER_CPU_OPERATOR(SparseLengthsSumFused8BitRowwise, LookupOperator<Fused8, false, false>)
REGISTER_CPU_OPERATOR(SparseLengthsMeanFused8BitRowwise, LookupOperator<Fused8, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSumFused8BitRowwise, LookupOperator<Fused8, true, false>)
REGISTER_CPU_OPERATOR(SparseLengthsSumFused4BitRowwise, LookupOperator<Fused4, false, false>)
REGISTER_CPU_OPERATOR(SparseLengthsMeanFused4BitRowwise, LookupOperator<Fused4, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSumFused4BitRowwise, LookupOperator<Fused4, true, false>)
REGISTER_CPU_OPERATOR(SparseLengthsSumFused2BitRowwise, LookupOperator<Fused2, false, false>)
REGISTER_CPU_OPERATOR(SparseLengthsMeanFused2BitRowwise, LookupOperator<Fused2, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSumFused2BitRowwise, LookupOperator<Fused2, true, false>)
REGISTER_CPU_OPERATOR(SparseLengthsSum8BitsRowwise, LookupOperator<Apart, false, false>)
REGISTER_CPU_OPERATOR(SparseLengthsMean8BitsRowwise, LookupOperator<Apart, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSum8BitsRowwise, LookupOperator<Apart, true, false>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedMean8BitsRowwise, LookupOperator<Apart, true, true>)
REGISTER_CPU_OPERATOR(SparseLengthsSum8BitRowwiseSparse, LookupOperator<Fused8, false, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsMean8BitRowwiseSparse, LookupOperator<Fused8, false, true, true>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSum8BitRowwiseSparse, LookupOperator<Fused8, true, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsSum4BitRowwiseSparse, LookupOperator<Fused4, false, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsMean4BitRowwiseSparse, LookupOperator<Fused4, false, true, true>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSum4BitRowwiseSparse, LookupOperator<Fused4, true, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsSum2BitRowwiseSparse, LookupOperator<Fused2, false, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsMean2BitRowwiseSparse, LookupOperator<Fused2, false, true, true>)
REGISTER_CPU_OPERATOR(SparseLengthsWeightedSum2BitRowwiseSparse, LookupOperator<Fused2, true, false, true>)
REGISTER_CPU_OPERATOR(SparseLengthsSumSparseLookup, SparseLookupOperator)
REGISTER_CPU_OPERATOR(GatherFused8BitRowwise, GatherFusedOperator)
REGISTER_CPU_OPERATOR(FloatToRowwiseQuantized8Bits, RowwiseQuantizeOperator)
REGISTER_CPU_OPERATOR(Rowwise8BitQuantizedToFloat, RowwiseOpenOperator)
// clang-format on

}  // namespace caffe2
