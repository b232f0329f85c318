// Rows put before and behind each segment, taken away again, and turned around.
#include <algorithm>
#include <string>

#include "core/registry.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

// Segments come as lengths in input 1; without it all rows are one.
class PaddingBase : public SegmentBase {
 public:
  explicit PaddingBase(const OperatorContext& context)
      : SegmentBase(context), before_(args().int32("padding_width")) {
    const int end = args().int32("end_padding_width");
    behind_ = end < 0 ? before_ : end;
  }

 protected:
  // Checks that every segment has at least `least` rows.
  void find(int64_t least) {
    const Tensor& rows = input(0);
    CAFFE2_ENFORCE(rows.rank() >= 1, describe_input(0), " is a scalar; rows are needed");
    width_ = rows.shape().product(1, rows.rank());
    if (has_input(1)) {
      const Tensor& given = input(1);
      CAFFE2_ENFORCE(given.rank() == 1, describe_input(1), " has shape ", given.shape().text(),
                     "; one dimension is needed");
      count_ = given.size();
      starts_ = offsets_of(1, given.data<int32_t>(), count_);
    } else {
      count_ = 1;
      starts_ = scratch<int64_t>(2);
      starts_[0] = 0;
      starts_[1] = rows.dim(0);
    }
    CAFFE2_ENFORCE(starts_[count_] == rows.dim(0), "the segments have ", starts_[count_],
                   " rows, but ", describe_input(0), " has shape ", rows.shape().text());
    for (int64_t k = 0; k < count_; k++) {
      CAFFE2_ENFORCE(length(k) >= least, "segment ", k, " has ", length(k), " rows; ", least,
                     " at least are needed");
    }
  }
  int64_t length(int64_t k) const { return starts_[k + 1] - starts_[k]; }
  int64_t padding() const { return int64_t{before_} + behind_; }

  // Writes the lengths of segments that are longer by `more`, where somebody wants them.
  void write_lengths(int64_t more) {
    if (outputs() < 2) return;
    for (int64_t k = 0; k < count_; k++) {
      CAFFE2_ENFORCE(length(k) + more <= INT32_MAX, "the length of segment ", k,
                     " does not fit into int32");
    }
    int32_t* out = output(1, {count_}, DataType::kInt32).mutable_data<int32_t>();
    for (int64_t k = 0; k < count_; k++) out[k] = static_cast<int32_t>(length(k) + more);
  }
  void move(const Tensor& from, int64_t from_row, Tensor& to, int64_t to_row, int64_t rows) {
    View view;
    view.add(rows * width_, 1, 1);
    copy_view(view, from, from_row * width_, to, to_row * width_, parallel());
  }

  const int before_;
  int behind_ = 0;
  int64_t width_ = 0, count_ = 0;
  int64_t* starts_ = nullptr;
};

class AddPaddingOperator : public PaddingBase {
 public:
  using PaddingBase::PaddingBase;

 protected:
  void run() override {
    find(0);
    const Tensor& rows = input(0);
    for (int i = 2; i < inputs(); i++) {
      bool fits = input(i).type() == rows.type() && input(i).rank() == rows.rank() - 1;
      for (int d = 1; fits && d < rows.rank(); d++) fits = input(i).dim(d - 1) == rows.dim(d);
      CAFFE2_ENFORCE(fits, describe_input(i), " is ", type_name(input(i).type()), " of shape ",
                     input(i).shape().text(), ", which is no row of ", describe_input(0), ", ",
                     type_name(rows.type()), " of shape ", rows.shape().text());
    }
    const int64_t added = checked_multiply(count_, padding());
    Tensor& out = output(0, with_rows(rows.shape(), rows.dim(0) + added), rows.type());
    write_lengths(padding());
    if (!has_input(2)) clear(out);
    int64_t place = 0;
    for (int64_t k = 0; k < count_; k++) {
      place = pad(2, before_, out, place);
      move(rows, starts_[k], out, place, length(k));
      place = pad(has_input(3) ? 3 : 2, behind_, out, place + length(k));
    }
  }

 private:
  int64_t pad(int i, int64_t times, Tensor& out, int64_t place) {
    if (has_input(i)) {
      for (int64_t j = 0; j < times; j++) move(input(i), 0, out, place + j, 1);
    }
    return place + times;
  }
};

class RemovePaddingOperator : public PaddingBase {
 public:
  using PaddingBase::PaddingBase;

 protected:
  void run() override {
    find(padding());
    const Tensor& rows = input(0);
    const int64_t left = rows.dim(0) - count_ * padding();
    Tensor& out = output(0, with_rows(rows.shape(), left), rows.type());
    write_lengths(-padding());
    int64_t place = 0;
    for (int64_t k = 0; k < count_; k++) {
      move(rows, starts_[k] + before_, out, place, length(k) - padding());
      place += length(k) - padding();
    }
  }
};

// The sums of what AddPadding added: before and behind apart, or in one where there is one output.
class GatherPaddingOperator : public PaddingBase {
 public:
  using PaddingBase::PaddingBase;

 protected:
  void run() override {
    find(padding());
    const Tensor& rows = input(0);
    Shape shape;
    for (int d = 1; d < rows.rank(); d++) shape.append(rows.dim(d));
    Tensor& before = output(0, shape, rows.type());
    Tensor& behind = outputs() == 2 ? output(1, shape, rows.type()) : before;
    clear(before);
    clear(behind);
    by_summed_type(rows.type(), [&](auto zero) {
      using T = decltype(zero);
      const T* in = elements<T>(rows);
      for (int64_t k = 0; k < count_; k++) {
        add(in + starts_[k] * width_, before_, mutable_elements<T>(before));
        add(in + (starts_[k + 1] - behind_) * width_, behind_, mutable_elements<T>(behind));
      }
    });
  }

 private:
  template <class T>
  void add(const T* in, int64_t rows, T* out) const {
    for (int64_t j = 0; j < rows; j++) {
      for (int64_t i = 0; i < width_; i++) out[i] += in[j * width_ + i];
    }
  }
};

class ReversePackedSegsOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &data = input(0), &given = input(1);
    CAFFE2_ENFORCE(data.rank() == 3, describe_input(0), " has shape ", data.shape().text(),
                   "; (length, segments, values) is needed");
    const int64_t longest = data.dim(0), count = data.dim(1), width = data.dim(2);
    CAFFE2_ENFORCE(given.shape() == Shape{count}, describe_input(1), " has shape ",
                   given.shape().text(), "; (", count, ",) is needed");
    auto* lengths = scratch<int64_t>(count);
    for (int64_t k = 0; k < count; k++) {
      lengths[k] =
          given.type() == DataType::kInt32 ? given.data<int32_t>()[k] : given.data<int64_t>()[k];
      CAFFE2_ENFORCE(lengths[k] >= 0 && lengths[k] <= longest, describe_input(1), " holds ",
                     lengths[k], " at position ", k, "; ", describe_input(0), " has shape ",
                     data.shape().text());
    }
    Tensor& y = output(0, data.shape(), data.type());
    for (int64_t k = 0; k < count; k++) {
      for (int64_t j = 0; j < longest; j++) {
        const int64_t source = j < lengths[k] ? lengths[k] - 1 - j : j;
        View view;
        view.add(width, 1, 1);
        copy_view(view, data, (source * count + k) * width, y, (j * count + k) * width, parallel());
      }
    }
  }
};

// 0 behind the end of each sequence; rows are steps.
class SequencePaddingOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &x = input(0), &lengths = input(1);
    CAFFE2_ENFORCE(x.rank() >= 3, describe_input(0), " has shape ", x.shape().text(),
                   "; three dimensions at least are needed");
    const int64_t count = x.dim(1), width = x.shape().product(2, x.rank());
    CAFFE2_ENFORCE(lengths.shape() == Shape{count}, describe_input(1), " has shape ",
                   lengths.shape().text(), "; (", count, ",) is needed");
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const float* in = x.data<float>();
    const int32_t* ends = lengths.data<int32_t>();
    float* out = y.mutable_data<float>();
    for (int64_t i = 0; i < x.dim(0) * count; i++, in += width, out += width) {
      if (i / count >= ends[i % count]) {
        std::fill_n(out, width, 0.0f);
      } else if (in != out) {
        std::copy_n(in, width, out);
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(VariableLengthSequencePadding, SequencePaddingOperator)
REGISTER_CPU_OPERATOR(AddPadding, AddPaddingOperator)
REGISTER_CPU_OPERATOR(RemovePadding, RemovePaddingOperator)
REGISTER_CPU_OPERATOR(GatherPadding, GatherPaddingOperator)
REGISTER_CPU_OPERATOR(ReversePackedSegs, ReversePackedSegsOperator)

}  // namespace caffe2
