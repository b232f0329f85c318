// Segments said in other ways, and rows packed by segment.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

// Operators that take lengths in input 0 and write int32 numbers.
class LengthsBase : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void find() {
    find_segments(SegmentKind::kLengths, 0, -1);
    CAFFE2_ENFORCE(rows() <= INT32_MAX, describe_input(0), " sums to ", rows(),
                   ", more than int32 can hold");
  }
  int32_t length(int64_t k) const { return static_cast<int32_t>(offset(k + 1) - offset(k)); }
  int32_t start(int64_t k) const { return static_cast<int32_t>(offset(k)); }
  int32_t* numbers(const Shape& shape) {
    return output(0, shape, DataType::kInt32).mutable_data<int32_t>();
  }
};

class LengthsToSegmentIdsOperator : public LengthsBase {
 public:
  using LengthsBase::LengthsBase;

 protected:
  void run() override {
    find();
    int32_t* out = numbers({rows()});
    for (int64_t k = 0; k < segments(); k++) {
      out = std::fill_n(out, length(k), static_cast<int32_t>(k));
    }
  }
};

class LengthsRangeFillOperator : public LengthsBase {
 public:
  using LengthsBase::LengthsBase;

 protected:
  void run() override {
    find();
    int32_t* out = numbers({rows()});
    for (int64_t k = 0; k < segments(); k++) {
      for (int32_t i = 0; i < length(k); i++) *out++ = i;
    }
  }
};

class LengthsToRangesOperator : public LengthsBase {
 public:
  using LengthsBase::LengthsBase;

 protected:
  void run() override {
    find();
    int32_t* out = numbers({segments(), 2});
    for (int64_t k = 0; k < segments(); k++) {
      *out++ = start(k);
      *out++ = length(k);
    }
  }
};

class LengthsToOffsetsOperator : public LengthsBase {
 public:
  explicit LengthsToOffsetsOperator(const OperatorContext& context)
      : LengthsBase(context), last_(args().boolean("include_last_offset")) {}

 protected:
  void run() override {
    find();
    int32_t* out = numbers({segments() + last_});
    for (int64_t k = 0; k < segments() + last_; k++) out[k] = start(k);
  }

 private:
  const bool last_;
};

class LengthsToShapeOperator : public LengthsBase {
 public:
  using LengthsBase::LengthsBase;

 protected:
  void run() override {
    find();
    CAFFE2_ENFORCE(segments() > 0, describe_input(0), " is empty");
    for (int64_t k = 1; k < segments(); k++) {
      CAFFE2_ENFORCE(length(k) == length(0), describe_input(0), " holds ", length(0), " and ",
                     length(k), "; all must be equal");
    }
    int32_t* out = numbers({2});
    out[0] = static_cast<int32_t>(segments());
    out[1] = length(0);
  }
};

// Sorted numbers of segments, of which some may be missing.
template <bool ranges>
class SegmentIdsOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& given = input(0);
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(0), " has shape ", given.shape().text(),
                   "; one dimension is needed");
    if (given.type() == DataType::kInt32) {
      count(given.data<int32_t>(), given.size());
    } else {
      count(given.data<int64_t>(), given.size());
    }
  }

 private:
  template <class T>
  void count(const T* ids, int64_t n) {
    CAFFE2_ENFORCE(n <= INT32_MAX, describe_input(0), " holds more than int32 can count");
    for (int64_t j = 0; j < n; j++) {
      const int64_t least = j == 0 ? 0 : ids[j - 1];
      CAFFE2_ENFORCE(ids[j] >= least, describe_input(0), " holds ", ids[j], " at position ", j,
                     " after ", least, "; it must be sorted");
    }
    int64_t segments = n == 0 ? 0 : int64_t{ids[n - 1]} + 1;
    if (has_input(1)) {
      const Tensor& data = input(1);
      CAFFE2_ENFORCE(data.rank() >= 1 && segments <= data.dim(0), describe_input(1), " has shape ",
                     data.shape().text(), ", but ", describe_input(0), " holds ", segments - 1);
      segments = data.dim(0);
    }
    const Shape shape = ranges ? Shape{segments, 2} : Shape{segments};
    int32_t* out = output(0, shape, DataType::kInt32).template mutable_data<int32_t>();
    int64_t j = 0;
    for (int64_t k = 0; k < segments; k++) {
      const int64_t first = j;
      while (j < n && ids[j] == k) j++;
      if (ranges) *out++ = static_cast<int32_t>(first);
      *out++ = static_cast<int32_t>(j - first);
    }
  }
};

class LengthsTileOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor& data = input(0);
    find_segments(SegmentKind::kLengths, 1, -1);
    CAFFE2_ENFORCE(data.rank() >= 1 && data.dim(0) == segments(), describe_input(0), " has shape ",
                   data.shape().text(), ", but there are ", segments(), " lengths");
    Tensor& y = output(0, with_rows(data.shape(), rows()), data.type());
    const int64_t width = data.shape().product(1, data.rank());
    for (int64_t k = 0; k < segments(); k++) {
      View view;
      view.add(offset(k + 1) - offset(k), 0, width);
      view.add(width, 1, 1);
      copy_view(view, data, k * width, y, offset(k) * width, parallel());
    }
  }
};

// Between rows one after the other and rows packed by segment.
class PackBase : public SegmentBase {
 public:
  explicit PackBase(const OperatorContext& context)
      : SegmentBase(context), max_length_(args().integer("max_length")) {}

 protected:
  // Where each segment begins, and how many there are; lengths may be cut to `most` in what counts.
  void find(int64_t most) {
    const Tensor& given = input(0);
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(0), " has shape ", given.shape().text(),
                   "; one dimension is needed");
    count_ = given.size();
    starts_ = scratch<int64_t>(count_ + 1);
    starts_[0] = longest_ = 0;
    for (int64_t k = 0; k < count_; k++) {
      int64_t length =
          given.type() == DataType::kInt32 ? given.data<int32_t>()[k] : given.data<int64_t>()[k];
      CAFFE2_ENFORCE(length >= 0, describe_input(0), " holds ", length, " at position ", k,
                     "; lengths are not negative");
      longest_ = std::max(longest_, length);
      if (most >= 0) length = std::min(length, most);
      CAFFE2_ENFORCE(!__builtin_add_overflow(starts_[k], length, &starts_[k + 1]),
                     describe_input(0), " sums to more than 64 bits hold");
    }
  }
  int64_t length(int64_t k) const { return starts_[k + 1] - starts_[k]; }
  View rows_of(int64_t rows, int64_t width) const {
    View view;
    view.add(rows * width, 1, 1);
    return view;
  }

  const int64_t max_length_;
  int64_t count_ = 0, longest_ = 0;
  int64_t* starts_ = nullptr;
};

class PackSegmentsOperator : public PackBase {
 public:
  explicit PackSegmentsOperator(const OperatorContext& context)
      : PackBase(context), minus_infinity_(args().boolean("pad_minf")) {
    CAFFE2_ENFORCE(context.def.output.size() == 1 || args().boolean("return_presence_mask"),
                   "the output presence_mask needs the argument return_presence_mask");
  }

 protected:
  void run() override {
    const Tensor& rows = input(1);
    find(-1);
    CAFFE2_ENFORCE(rows.rank() >= 1 && rows.dim(0) == starts_[count_], describe_input(1),
                   " has shape ", rows.shape().text(), ", but ", describe_input(0), " sums to ",
                   starts_[count_]);
    const bool floats = rows.type() == DataType::kFloat || rows.type() == DataType::kDouble ||
                        rows.type() == DataType::kFloat16;
    CAFFE2_ENFORCE(!minus_infinity_ || floats, describe_input(1), " is ", type_name(rows.type()),
                   "; pad_minf needs floats");
    const int64_t length = max_length_ >= 0 ? max_length_ : longest_;
    Shape shape{count_, length};
    for (int i = 1; i < rows.rank(); i++) shape.append(rows.dim(i));
    Tensor& packed = output(0, shape, rows.type());
    bool* mask = nullptr;
    if (outputs() == 2) {
      Tensor& presence = output(1, {count_, length}, DataType::kBool);
      clear(presence);
      mask = presence.mutable_data<bool>();
    }
    fill(packed);
    const int64_t width = rows.shape().product(1, rows.rank());
    for (int64_t k = 0; k < count_; k++) {
      const int64_t kept = std::min(this->length(k), length);
      copy_view(rows_of(kept, width), rows, starts_[k] * width, packed, k * length * width,
                parallel());
      if (mask != nullptr) std::fill_n(mask + k * length, kept, true);
    }
  }

 private:
  void fill(Tensor& packed) const {
    if (!minus_infinity_) return clear(packed);
    if (packed.type() == DataType::kFloat) {
      std::fill_n(packed.mutable_data<float>(), packed.size(),
                  -std::numeric_limits<float>::infinity());
    } else if (packed.type() == DataType::kDouble) {
      std::fill_n(packed.mutable_data<double>(), packed.size(),
                  -std::numeric_limits<double>::infinity());
    } else {
      std::fill_n(mutable_elements<uint16_t>(packed), packed.size(), uint16_t{0xfc00});
    }
  }

  const bool minus_infinity_;
};

class UnpackSegmentsOperator : public PackBase {
 public:
  using PackBase::PackBase;

 protected:
  void run() override {
    const Tensor& packed = input(1);
    CAFFE2_ENFORCE(packed.rank() >= 2 && packed.dim(0) == input(0).size(), describe_input(1),
                   " has shape ", packed.shape().text(), "; ", describe_input(0), " has shape ",
                   input(0).shape().text());
    const int64_t length = packed.dim(1);
    CAFFE2_ENFORCE(max_length_ < 0 || max_length_ == length, describe_input(1), " has shape ",
                   packed.shape().text(), "; argument 'max_length' = ", max_length_,
                   " is not its second dimension");
    find(length);
    CAFFE2_ENFORCE(max_length_ >= 0 || longest_ <= length, describe_input(0), " holds ", longest_,
                   ", but ", describe_input(1), " has shape ", packed.shape().text());
    Shape shape{starts_[count_]};
    for (int i = 2; i < packed.rank(); i++) shape.append(packed.dim(i));
    Tensor& rows = output(0, shape, packed.type());
    const int64_t width = packed.shape().product(2, packed.rank());
    for (int64_t k = 0; k < count_; k++) {
      copy_view(rows_of(this->length(k), width), packed, k * length * width, rows,
                starts_[k] * width, parallel());
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(LengthsToSegmentIds, LengthsToSegmentIdsOperator)
REGISTER_CPU_OPERATOR(LengthsRangeFill, LengthsRangeFillOperator)
REGISTER_CPU_OPERATOR(LengthsToRanges, LengthsToRangesOperator)
REGISTER_CPU_OPERATOR(LengthsToOffsets, LengthsToOffsetsOperator)
REGISTER_CPU_OPERATOR(LengthsToShape, LengthsToShapeOperator)
REGISTER_CPU_OPERATOR(SegmentIdsToLengths, SegmentIdsOperator<false>)
REGISTER_CPU_OPERATOR(SegmentIdsToRanges, SegmentIdsOperator<true>)
REGISTER_CPU_OPERATOR(LengthsTile, LengthsTileOperator)
REGISTER_CPU_OPERATOR(PackSegments, PackSegmentsOperator)
REGISTER_CPU_OPERATOR(UnpackSegments, UnpackSegmentsOperator)

}  // namespace caffe2
