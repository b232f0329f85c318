// Concat, Split and their kin: tensors joined and cut along an axis.
#include <algorithm>
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"
#include "operators/view.h"

namespace caffe2 {
namespace {

// The axis comes as a number or from the order of an image.
class AlongAxis : public Operator {
 public:
  explicit AlongAxis(const OperatorContext& context)
      : Operator(context), add_axis_(args().boolean("add_axis")) {
    const std::string order = args().text("order");
    axis_ = args().has("axis") ? args().int32("axis") : order == "NCHW" ? 1 : 3;
  }

 protected:
  int axis(int rank) const { return canonical_axis(axis_, rank, describe_input(0)); }

  // Copies `count` of the `whole` slices that one place of the outer axes holds.
  View slices(int64_t outer, int64_t count, int64_t inner, int64_t from_whole,
              int64_t to_whole) const {
    View view;
    view.add(outer, from_whole * inner, to_whole * inner);
    view.add(count * inner, 1, 1);
    return view;
  }

  const bool add_axis_;

 private:
  int axis_;
};

class ConcatOperator : public AlongAxis {
 public:
  using AlongAxis::AlongAxis;
  bool takes_stored() const override { return true; }
  bool joined() const override { return joined_; }

 protected:
  void run() override {
    joined_ = false;
    const Layout layout = joint_layout();
    const Tensor& first = input(0);
    const int rank = first.rank(), axis = this->axis(rank + add_axis_);
    std::vector<int64_t> sizes(inputs(), 1);
    int64_t whole = 0;
    for (int i = 0; i < inputs(); i++) {
      const Tensor& x = input(i);
      bool fits = x.rank() == rank && x.type() == first.type();
      for (int d = 0; fits && d < rank; d++) {
        fits = x.dim(d) == first.dim(d) || (d == axis && !add_axis_);
      }
      CAFFE2_ENFORCE(fits, describe_input(i), " is ", type_name(x.type()), " of shape ",
                     x.shape().text(), " and does not fit to ", describe_input(0), ", ",
                     type_name(first.type()), " of shape ", first.shape().text(), ", along axis ",
                     axis);
      if (!add_axis_) sizes[i] = x.dim(axis);
      CAFFE2_ENFORCE(sizes[i] <= INT32_MAX && !__builtin_add_overflow(whole, sizes[i], &whole),
                     describe_input(i), " has ", sizes[i], " along axis ", axis,
                     ", more than split_info can hold");
    }
    Shape shape;
    for (int d = 0; d < axis; d++) shape.append(first.dim(d));
    shape.append(whole);
    for (int d = add_axis_ ? axis : axis + 1; d < rank; d++) shape.append(first.dim(d));
    const int64_t outer = shape.product(0, axis), inner = shape.product(axis + 1, shape.rank());
    Tensor& y = output(0, shape, first.type(), layout);
    Tensor& split_info = output(1, {inputs()}, DataType::kInt32);
    int32_t* info = split_info.mutable_data<int32_t>();
    for (int i = 0; i < inputs(); i++) info[i] = static_cast<int32_t>(sizes[i]);
    // Without outer axes, the inputs follow each other as they are, blocked or not.
    joined_ = outer == 1 && first.type() != DataType::kString;
    if (joined_ && lies_in_place(y)) return;
    if (overlaps(y)) y = Tensor(engine().allocator(), shape, first.type(), layout);
    if (!layout.plain()) return join_blocks(y);
    int64_t place = 0;
    for (int i = 0; i < inputs(); i++) {
      copy_view(slices(outer, sizes[i], inner, sizes[i], whole), input(i), 0, y, place * inner,
                parallel());
      place += sizes[i];
    }
  }

 private:
  // Blocked inputs stay so when they are joined by channels and no block is partly empty.
  Layout joint_layout() {
    const Layout layout = common_layout();
    if (layout.plain()) return layout;
    const int rank = input(0).rank(), channels = layout.channels_last ? rank - 1 : 1;
    bool joins = !add_axis_ && axis(rank) == channels;
    for (int i = 0; joins && i < inputs(); i++) {
      joins = input(i).rank() == rank && input(i).dim(channels) % layout.block == 0;
    }
    if (joins) return layout;
    for (int i = 0; i < inputs(); i++) plain_input(i);
    return {};
  }

  // Nets that hide their blobs put inputs into the output, where their sizes told them to.
  bool lies_in_place(const Tensor& y) {
    const char* place = begin(y);
    for (int i = 0; i < inputs(); i++) {
      if (begin(input(i)) != place) return false;
      place = end(input(i));
    }
    return true;
  }
  bool overlaps(const Tensor& y) {
    for (int i = 0; i < inputs(); i++) {
      if (begin(input(i)) < end(y) && begin(y) < end(input(i))) return true;
    }
    return false;
  }
  static const char* begin(const Tensor& tensor) {
    return static_cast<const char*>(tensor.storage()->data());
  }
  static const char* end(const Tensor& tensor) {
    return begin(tensor) + Tensor::bytes_for(tensor.shape(), tensor.type(), tensor.layout());
  }

  void join_blocks(Tensor& y) {
    float* to = y.mutable_stored();
    const int64_t n = y.dim(0);
    for (int64_t image = 0; image < n; image++) {
      for (int i = 0; i < inputs(); i++) {
        const int64_t values = input(i).stored_size() / n;
        if (values > 0) std::copy_n(input(i).stored() + image * values, values, to);
        to += values;
      }
    }
  }

  bool joined_ = false;
};

class SplitBase : public AlongAxis {
 public:
  using AlongAxis::AlongAxis;

 protected:
  // How much of the axis each output gets.
  virtual std::vector<int64_t> sizes(int64_t whole) = 0;

  void run() override {
    const Tensor& x = input(0);
    const int axis = this->axis(x.rank());
    const int64_t whole = x.dim(axis);
    const std::vector<int64_t> parts = sizes(whole);
    const int64_t outer = x.shape().product(0, axis);
    const int64_t inner = x.shape().product(axis + 1, x.rank());
    std::vector<Tensor*> tensors;
    for (int i = 0; i < outputs(); i++) {
      CAFFE2_ENFORCE(!add_axis_ || parts[i] == 1, describe_output(i), " gets ", parts[i],
                     " along axis ", axis, "; with add_axis it is 1");
      Shape shape;
      for (int d = 0; d < x.rank(); d++) {
        if (d != axis) shape.append(x.dim(d));
        if (d == axis && !add_axis_) shape.append(parts[i]);
      }
      tensors.push_back(&output(i, shape, x.type()));
    }
    int64_t place = 0;
    for (int i = 0; i < outputs(); i++) {
      copy_view(slices(outer, parts[i], inner, whole, parts[i]), x, place * inner, *tensors[i], 0,
                parallel());
      place += parts[i];
    }
  }

  std::vector<int64_t> integers_of(int i) const {
    const Tensor& given = input(i);
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(i), " has shape ", given.shape().text(),
                   "; one dimension is needed");
    const int32_t* values = given.data<int32_t>();
    for (int64_t k = 0; k < given.size(); k++) {
      CAFFE2_ENFORCE(values[k] >= 0, describe_input(i), " holds ", values[k],
                     "; sizes are not negative");
    }
    return {values, values + given.size()};
  }
};

class SplitOperator : public SplitBase {
 public:
  explicit SplitOperator(const OperatorContext& context)
      : SplitBase(context), split_(args().integers("split")) {
    CAFFE2_ENFORCE(split_.empty() || context.def.input.size() == 1,
                   "the sizes are given twice: by 'split' and by the second input");
  }

 protected:
  std::vector<int64_t> sizes(int64_t whole) override {
    std::vector<int64_t> sizes = has_input(1) ? integers_of(1) : split_;
    if (sizes.empty() && !has_input(1)) {
      CAFFE2_ENFORCE(whole % outputs() == 0, describe_input(0), " has ", whole,
                     " along the axis, which do not divide among ", outputs(), " outputs");
      sizes.assign(outputs(), whole / outputs());
    }
    CAFFE2_ENFORCE(static_cast<int>(sizes.size()) == outputs(), "there are ", sizes.size(),
                   " sizes for ", outputs(), " outputs");
    int64_t sum = 0;
    for (const int64_t size : sizes) {
      CAFFE2_ENFORCE(!__builtin_add_overflow(sum, size, &sum), "the sizes overflow 64 bits");
    }
    CAFFE2_ENFORCE(sum == whole, "the sizes of the outputs sum to ", sum, ", but ",
                   describe_input(0), " has ", whole, " along the axis");
    return sizes;
  }

 private:
  const std::vector<int64_t> split_;
};

// Each output gets the sum of as many lengths as all others.
class SplitByLengthsOperator : public SplitBase {
 public:
  explicit SplitByLengthsOperator(const OperatorContext& context)
      : SplitBase(context), scaling_(args().boolean("use_scaling_lengths")) {}

 protected:
  std::vector<int64_t> sizes(int64_t whole) override {
    const std::vector<int64_t> lengths = integers_of(1);
    const int64_t count = static_cast<int64_t>(lengths.size()), group = count / outputs();
    CAFFE2_ENFORCE(count % outputs() == 0, describe_input(1), " has ", count,
                   " lengths, which do not divide among ", outputs(), " outputs");
    std::vector<int64_t> sizes(outputs());
    int64_t sum = 0;  // of at most 2^31 numbers below 2^31
    for (int64_t k = 0; k < count; k++) sizes[k / group] += lengths[k], sum += lengths[k];
    if (scaling_ && sum > 0 && whole % sum == 0) {
      for (int64_t& size : sizes) size *= whole / sum;
      sum = whole;
    }
    CAFFE2_ENFORCE(sum == whole, describe_input(1), " sums to ", sum, ", but ", describe_input(0),
                   " has ", whole, " along the axis");
    return sizes;
  }

 private:
  const bool scaling_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Concat, ConcatOperator)
REGISTER_CPU_OPERATOR(DepthConcat, ConcatOperator)
REGISTER_CPU_OPERATOR(Split, SplitOperator)
REGISTER_CPU_OPERATOR(DepthSplit, SplitOperator)
REGISTER_CPU_OPERATOR(SplitByLengths, SplitByLengthsOperator)

}  // namespace caffe2
