// Elements put elsewhere: transposes, slices, repetitions and their gradients.
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/int8.h"
#include "operators/moving.h"
#include "operators/shapes.h"
#include "operators/view.h"

namespace caffe2 {
namespace {

// How far apart neighbours along each axis are in memory.
std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.rank());
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; i--) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::vector<int64_t> integers_in(const Tensor& tensor, const Operand& what) {
  CAFFE2_ENFORCE(tensor.rank() == 1, what, " has shape ", tensor.shape().text(),
                 "; one dimension is needed");
  std::vector<int64_t> values(tensor.size());
  if (tensor.type() == DataType::kInt32) {
    std::copy_n(tensor.data<int32_t>(), tensor.size(), values.begin());
  } else {
    std::copy_n(tensor.data<int64_t>(), tensor.size(), values.begin());
  }
  return values;
}

class PermuteOperator : public MovingOperator {
 public:
  using MovingOperator::MovingOperator;

 protected:
  // Which axis of the input each axis of the output is.
  virtual std::vector<int64_t> axes(const Shape& shape) const = 0;

  void run() override {
    const Tensor& x = source();
    const std::vector<int64_t> axes = this->axes(x.shape());
    Shape shape;
    for (const int64_t axis : axes) shape.append(x.dim(static_cast<int>(axis)));
    const std::vector<int64_t> from = strides_of(x.shape()), to = strides_of(shape);
    View view;
    for (int i = 0; i < shape.rank(); i++) view.add(shape[i], from[axes[i]], to[i]);
    copy_view(view, x, 0, target(shape, x.type()), 0, parallel());
  }
};

class TransposeOperator : public PermuteOperator {
 public:
  explicit TransposeOperator(const OperatorContext& context)
      : PermuteOperator(context), axes_(args().integers("axes")) {}

 protected:
  std::vector<int64_t> axes(const Shape& shape) const override {
    std::vector<int64_t> axes = axes_;
    if (axes.empty()) {
      for (int i = shape.rank() - 1; i >= 0; i--) axes.push_back(i);
    }
    std::vector<int64_t> sorted = axes;
    std::sort(sorted.begin(), sorted.end());
    bool each = static_cast<int>(axes.size()) == shape.rank();
    for (int i = 0; each && i < shape.rank(); i++) each = sorted[i] == i;
    CAFFE2_ENFORCE(each, "argument 'axes' is no order of the dimensions of ", describe_input(0),
                   ", which has shape ", shape.text());
    return axes;
  }

 private:
  const std::vector<int64_t> axes_;
};

template <bool channels_last>
class OrderOperator : public PermuteOperator {
 public:
  using PermuteOperator::PermuteOperator;

 protected:
  std::vector<int64_t> axes(const Shape& shape) const override {
    CAFFE2_ENFORCE(shape.rank() >= 3, describe_input(0), " has shape ", shape.text(),
                   "; 3 dimensions at least are needed");
    std::vector<int64_t> axes{0};
    if (!channels_last) axes.push_back(shape.rank() - 1);
    for (int i = channels_last ? 2 : 1; i < shape.rank() - !channels_last; i++) axes.push_back(i);
    if (channels_last) axes.push_back(1);
    return axes;
  }
};

// The part of X that Slice takes: its shape, and the view between it and X.
class SliceBase : public MovingOperator {
 public:
  explicit SliceBase(const OperatorContext& context)
      : MovingOperator(context),
        starts_(args().integers("starts")),
        ends_(args().integers("ends")) {
    given_ = args().has("starts") && args().has("ends");
  }

 protected:
  void find(const Tensor& x, bool from_inputs) {
    if (from_inputs) {
      CAFFE2_ENFORCE(has_input(2), "it has an input starts and no input ends");
      CAFFE2_ENFORCE(input(1).type() == input(2).type(), describe_input(1), " and ",
                     describe_input(2), " have different types");
      for (int i = 1; i <= 2; i++) {
        const DataType type = input(i).type();
        CAFFE2_ENFORCE(type == DataType::kInt32 || type == DataType::kInt64, describe_input(i),
                       " has type ", type_name(type), "; integers are needed");
      }
      starts_ = integers_in(input(1), describe_input(1));
      ends_ = integers_in(input(2), describe_input(2));
    } else {
      CAFFE2_ENFORCE(given_, "it needs 'starts' and 'ends', as arguments or as inputs");
    }
    const int count = static_cast<int>(starts_.size());
    CAFFE2_ENFORCE(starts_.size() == ends_.size() && count <= x.rank(), "there are ", count,
                   " starts and ", ends_.size(), " ends, but ", describe_input(0), " has shape ",
                   x.shape().text());
    const std::vector<int64_t> strides = strides_of(x.shape());
    shape_ = Shape();
    start_ = 0;
    for (int i = 0; i < x.rank(); i++) {
      const int64_t size = x.dim(i);
      const int64_t first = i < count ? place(starts_[i], size) : 0;
      const int64_t last = i < count ? place(ends_[i], size) : size;
      CAFFE2_ENFORCE(0 <= first && first <= last, "[", starts_[i], ", ", ends_[i],
                     ") cannot be taken of dimension ", i, " of ", describe_input(0), ", shape ",
                     x.shape().text());
      shape_.append(last - first);
      start_ += first * strides[i];
    }
  }

  // Between the part, dense, and its place in X.
  View view(const Tensor& x, bool into_x) const {
    const std::vector<int64_t> whole = strides_of(x.shape()), dense = strides_of(shape_);
    View view;
    for (int i = 0; i < shape_.rank(); i++) {
      view.add(shape_[i], into_x ? dense[i] : whole[i], into_x ? whole[i] : dense[i]);
    }
    return view;
  }

  Shape shape_;
  int64_t start_ = 0;  // in elements
  std::vector<int64_t> starts_, ends_;
  bool given_ = false;

 private:
  // Negative ones count from behind the end; what is behind the end is the end.
  static int64_t place(int64_t i, int64_t size) { return std::min(i < 0 ? i + size + 1 : i, size); }
};

class SliceOperator : public SliceBase {
 public:
  using SliceBase::SliceBase;

 protected:
  void run() override {
    const Tensor& x = source();
    find(x, has_input(1));
    copy_view(view(x, false), x, start_, target(shape_, x.type()), 0, parallel());
  }
};

// Also takes one dimension, from start_idx to end_idx.
class Int8SliceOperator : public Int8Moving<SliceOperator> {
 public:
  explicit Int8SliceOperator(const OperatorContext& context) : Int8Moving(context) {
    if (given_ || !args().has("dim")) return;
    const auto before = static_cast<size_t>(args().integer("dim"));
    starts_.assign(before, 0);
    ends_.assign(before, -1);
    starts_.push_back(args().integer("start_idx"));
    ends_.push_back(args().integer("end_idx"));
    given_ = true;
  }
};

class SliceGradientOperator : public SliceBase {
 public:
  using SliceBase::SliceBase;

 protected:
  void run() override {
    CAFFE2_ENFORCE(inputs() != 3, "it takes 2 inputs or 4");
    const int last = inputs() - 1;
    const Tensor &x = input(0), &dy = input(last);
    find(x, last == 3);
    CAFFE2_ENFORCE(dy.shape() == shape_ && dy.type() == x.type(), describe_input(last), " is ",
                   type_name(dy.type()), " of shape ", dy.shape().text(), "; needed is ",
                   type_name(x.type()), " of shape ", shape_.text());
    Tensor& dx = output(0, x.shape(), x.type());
    clear(dx);
    copy_view(view(x, true), dy, 0, dx, start_, parallel());
  }
};

// How often, and along which axis: arguments or inputs.
class TileBase : public Operator {
 public:
  using Operator::Operator;

 protected:
  int64_t tiles() const {
    const int64_t tiles = number(1, "tiles");
    CAFFE2_ENFORCE(tiles >= 0, "tiles is ", tiles, "; it is not negative");
    return tiles;
  }
  int axis(int rank) const {
    const int64_t axis = number(2, "axis");
    CAFFE2_ENFORCE(axis >= -rank && axis < rank, "axis is ", axis, ", but ", describe_input(0),
                   " has ", rank, " dimensions");
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }

 private:
  int64_t number(int i, const char* name) const {
    if (!has_input(i)) {
      CAFFE2_ENFORCE(args().has(name), "argument '", name, "' is missing; it is no input either");
      return args().integer(name);
    }
    const Tensor& given = input(i);
    CAFFE2_ENFORCE(given.size() == 1, describe_input(i), " has shape ", given.shape().text(),
                   "; one value is needed");
    return given.type() == DataType::kInt32 ? given.data<int32_t>()[0] : given.data<int64_t>()[0];
  }
};

class TileOperator : public TileBase {
 public:
  using TileBase::TileBase;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const int axis = this->axis(x.rank());
    const int64_t tiles = this->tiles();
    const int64_t outer = x.shape().product(0, axis);
    const int64_t inner = x.shape().product(axis, x.rank());
    Shape shape;
    for (int i = 0; i < x.rank(); i++) {
      shape.append(i == axis ? checked_multiply(x.dim(i), tiles) : x.dim(i));
    }
    Tensor& y = output(0, shape, x.type());
    View view;
    view.add(outer, inner, inner * tiles);
    view.add(tiles, 0, inner);
    view.add(inner, 1, 1);
    copy_view(view, x, 0, y, 0, parallel());
  }
};

// Adds up `terms` runs of `count` values that follow each other.
template <class T>
void sum_runs(const T* in, int64_t terms, int64_t count, T* out) {
  std::copy_n(in, count, out);
  for (int64_t k = 1; k < terms; k++) {
    for (int64_t i = 0; i < count; i++) out[i] += in[k * count + i];
  }
}

class TileGradientOperator : public TileBase {
 public:
  using TileBase::TileBase;

 protected:
  void run() override {
    const Tensor& dy = input(0);
    const int axis = this->axis(dy.rank());
    const int64_t tiles = this->tiles();
    CAFFE2_ENFORCE(tiles > 0 && dy.dim(axis) % tiles == 0, describe_input(0), " has shape ",
                   dy.shape().text(), ", which are not ", tiles, " tiles along axis ", axis);
    Shape shape;
    for (int i = 0; i < dy.rank(); i++) shape.append(i == axis ? dy.dim(i) / tiles : dy.dim(i));
    const int64_t inner = shape.product(axis, shape.rank());
    const int64_t outer = shape.product(0, axis);
    Tensor& dx = output(0, shape, dy.type());
    by_summed_type(dy.type(), [&](auto zero) {
      using T = decltype(zero);
      const T* in = elements<T>(dy);
      T* out = mutable_elements<T>(dx);
      for_ranges(parallel(), outer, rows_per_block(inner * tiles), [&](int64_t i, int64_t end) {
        for (; i < end; i++) sum_runs(in + i * inner * tiles, tiles, inner, out + i * inner);
      });
    });
  }
};

// Y = X repeated to a shape; each axis of Y walks along X or stands still.
class RepeatOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void repeat(const Tensor& x, const Shape& shape, const View& view) {
    copy_view(view, x, 0, output(0, shape, x.type()), 0, parallel());
  }
};

class NumpyTileOperator : public RepeatOperator {
 public:
  using RepeatOperator::RepeatOperator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const std::vector<int64_t> repeats = integers_in(input(1), describe_input(1));
    CAFFE2_ENFORCE(static_cast<int>(repeats.size()) == x.rank(), describe_input(1), " holds ",
                   repeats.size(), " numbers, but ", describe_input(0), " has shape ",
                   x.shape().text());
    Shape shape;
    for (int i = 0; i < x.rank(); i++) {
      CAFFE2_ENFORCE(repeats[i] >= 0, describe_input(1), " holds ", repeats[i],
                     "; it is not negative");
      shape.append(checked_multiply(x.dim(i), repeats[i]));
    }
    Tensor::bytes_for(shape, x.type());  // before strides: the size fits into 64 bits
    const std::vector<int64_t> from = strides_of(x.shape()), to = strides_of(shape);
    View view;
    for (int i = 0; i < x.rank(); i++) {
      view.add(repeats[i], 0, to[i] * x.dim(i));
      view.add(x.dim(i), from[i], to[i]);
    }
    repeat(x, shape, view);
  }
};

class ExpandOperator : public RepeatOperator {
 public:
  using RepeatOperator::RepeatOperator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const std::vector<int64_t> wanted = integers_in(input(1), describe_input(1));
    const int count = static_cast<int>(wanted.size()), rank = std::max(x.rank(), count);
    const std::vector<int64_t> from = strides_of(x.shape());
    Shape shape;
    for (int i = 0; i < rank; i++) {
      const int64_t size = i < rank - x.rank() ? 1 : x.dim(i - (rank - x.rank()));
      const int64_t other = i < rank - count ? 1 : wanted[i - (rank - count)];
      CAFFE2_ENFORCE(other <= 1 || size == 1 || size == other, describe_input(1), " wants ", other,
                     " in a dimension of ", size, " of ", describe_input(0), ", shape ",
                     x.shape().text());
      shape.append(other > 1 ? other : size);
    }
    Tensor::bytes_for(shape, x.type());
    const std::vector<int64_t> to = strides_of(shape);
    View view;
    for (int i = 0; i < rank; i++) {
      const int own = i - (rank - x.rank());
      view.add(shape[i], own < 0 || x.dim(own) == 1 ? 0 : from[own], to[i]);
    }
    repeat(x, shape, view);
  }
};

class ExpandGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &dy = input(0), &x = input(1);
    const int extra = dy.rank() - x.rank();
    bool fits = extra >= 0 && dy.type() == x.type();
    for (int i = 0; fits && i < x.rank(); i++) {
      fits = x.dim(i) == 1 || x.dim(i) == dy.dim(extra + i);
      fits = fits && (dy.dim(extra + i) > 0 || x.dim(i) == 0);
    }
    for (int i = 0; fits && i < extra; i++) fits = dy.dim(i) > 0;
    CAFFE2_ENFORCE(fits, describe_input(0), " is ", type_name(dy.type()), " of shape ",
                   dy.shape().text(), ", to which ", describe_input(1), ", ", type_name(x.type()),
                   " of shape ", x.shape().text(), ", cannot grow");
    const std::vector<int64_t> strides = strides_of(x.shape());
    std::vector<int64_t> to(dy.rank());
    for (int i = 0; i < x.rank(); i++) to[extra + i] = x.dim(i) == 1 ? 0 : strides[i];
    Tensor& dx = output(0, x.shape(), x.type());
    clear(dx);
    by_summed_type(dy.type(), [&](auto zero) {
      using T = decltype(zero);
      add(dy.shape(), 0, to, elements<T>(dy), mutable_elements<T>(dx));
    });
  }

 private:
  // Adds what lies behind the axes before `axis`, and moves on to what follows it in dY.
  template <class T>
  const T* add(const Shape& shape, int axis, const std::vector<int64_t>& to, const T* dy, T* dx) {
    if (axis == shape.rank()) {
      *dx += *dy;
      return dy + 1;
    }
    for (int64_t i = 0; i < shape[axis]; i++) dy = add(shape, axis + 1, to, dy, dx + i * to[axis]);
    return dy;
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Transpose, TransposeOperator)
REGISTER_CPU_OPERATOR(Int8Transpose, Int8Moving<TransposeOperator>)
REGISTER_CPU_OPERATOR(Int8Slice, Int8SliceOperator)
REGISTER_CPU_OPERATOR(NCHW2NHWC, OrderOperator<true>)
REGISTER_CPU_OPERATOR(NHWC2NCHW, OrderOperator<false>)
REGISTER_CPU_OPERATOR(Slice, SliceOperator)
REGISTER_CPU_OPERATOR(SliceGradient, SliceGradientOperator)
REGISTER_CPU_OPERATOR(Tile, TileOperator)
REGISTER_CPU_OPERATOR(TileGradient, TileGradientOperator)
REGISTER_CPU_OPERATOR(NumpyTile, NumpyTileOperator)
REGISTER_CPU_OPERATOR(Expand, ExpandOperator)
REGISTER_CPU_OPERATOR(ExpandGradient, ExpandGradientOperator)

}  // namespace caffe2
