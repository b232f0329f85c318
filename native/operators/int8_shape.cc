// Operators that put the values of Int8 tensors elsewhere.
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/int8.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class Int8FlattenOperator : public Int8Operator {
 public:
  explicit Int8FlattenOperator(const OperatorContext& context)
      : Int8Operator(context), axis_(args().int32("axis")) {}

 protected:
  void run() override {
    const auto x = quantized(0);
    const Shape& in = x->values.shape();
    CAFFE2_ENFORCE(axis_ <= in.rank(), "argument 'axis' is ", axis_, ", but ", describe_input(0),
                   " has shape ", in.text());
    const Shape shape{in.product(0, axis_), in.product(axis_, in.rank())};
    give_like(*x, Tensor(x->values.storage(), shape, DataType::kUInt8));
  }

 private:
  const int axis_;
};

class Int8ResizeNearestOperator : public Int8Operator {
 public:
  explicit Int8ResizeNearestOperator(const OperatorContext& context)
      : Int8Operator(context),
        height_scale_(args().real("height_scale")),
        width_scale_(args().real("width_scale")) {}

 protected:
  void run() override {
    const auto x = quantized(0);
    require_rank(*x, 4, describe_input(0));
    const Shape& in = x->values.shape();
    CAFFE2_ENFORCE(in.product(1, 4) > 0, describe_input(0), " has shape ", in.text(),
                   "; only the batch may be empty");
    const int64_t height = scaled(in[1], height_scale_), width = scaled(in[2], width_scale_);
    Tensor y = bytes({in[0], height, width, in[3]});
    auto* columns = scratch<int64_t>(width);
    for (int64_t j = 0; j < width; j++) columns[j] = nearest(j, width_scale_, in[2]) * in[3];
    const uint8_t* images = x->values.data<uint8_t>();
    uint8_t* rows = y.mutable_data<uint8_t>();
    const int64_t size = width * in[3];
    for_ranges(parallel(), in[0] * height, rows_per_range(size), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const int64_t i = r / height * in[1] + nearest(r % height, height_scale_, in[1]);
        const uint8_t* row = images + i * in[2] * in[3];
        uint8_t* out = rows + r * size;
        for (int64_t j = 0; j < width; j++) out = std::copy_n(row + columns[j], in[3], out);
      }
    });
    give_like(*x, std::move(y));
  }

 private:
  static int64_t scaled(int64_t size, float scale) {
    const float length = static_cast<float>(size) * scale;
    CAFFE2_ENFORCE(length < static_cast<float>(INT32_MAX), "it makes ", length, " of ", size,
                   " elements; less is allowed");
    return static_cast<int64_t>(length);
  }
  static int64_t nearest(int64_t i, float scale, int64_t size) {
    return std::min(static_cast<int64_t>(static_cast<float>(i) / scale), size - 1);
  }

  const float height_scale_, width_scale_;
};

class Int8ChannelShuffleOperator : public Int8Operator {
 public:
  explicit Int8ChannelShuffleOperator(const OperatorContext& context)
      : Int8Operator(context), group_(args().integer("group")) {}

 protected:
  void run() override {
    const auto x = quantized(0);
    require_rank(*x, 4, describe_input(0));
    const Shape& in = x->values.shape();
    const int64_t channels = in[3], each = channels / group_, places = in.product(0, 3);
    CAFFE2_ENFORCE(channels % group_ == 0, describe_input(0), " has ", channels, " channels, not ",
                   group_, " groups of one size");
    Tensor y = bytes(in);
    const auto* from = x->values.data<uint8_t>();
    auto* to = y.mutable_data<uint8_t>();
    for (int64_t place = 0; place < places; place++, from += channels) {
      for (int64_t i = 0; i < each; i++) {
        for (int64_t g = 0; g < group_; g++) *to++ = from[g * each + i];
      }
    }
    give_like(*x, std::move(y));
  }

 private:
  const int64_t group_;
};

class Int8ConcatOperator : public Int8Operator {
 public:
  explicit Int8ConcatOperator(const OperatorContext& context)
      : Int8Operator(context), axis_(args().int32("axis")) {
    const std::string order = args().text("order");
    if (!args().has("axis") && (order == "NHWC" || order == "nhwc")) axis_ = 3;
  }

 protected:
  void run() override {
    const auto first = quantized(0);
    const Shape& like = first->values.shape();
    const int axis = canonical_axis(axis_, like.rank(), describe_input(0));
    const int64_t outer = like.product(0, axis), inner = like.product(axis + 1, like.rank());
    int64_t sum = 0;
    for (int i = 0; i < inputs(); i++) {
      const auto x = quantized(i);
      const Shape& shape = x->values.shape();
      bool fits = shape.rank() == like.rank() && x->zero_point == first->zero_point &&
                  x->scale == first->scale;
      for (int d = 0; fits && d < like.rank(); d++) fits = d == axis || shape[d] == like[d];
      CAFFE2_ENFORCE(fits, describe_input(i), " has shape ", shape.text(), ", scale ", x->scale,
                     " and zero point ", x->zero_point, "; ", describe_input(0), " has ",
                     like.text(), ", ", first->scale, " and ", first->zero_point,
                     ", and only axis ", axis, " may differ");
      sum += shape[axis];
    }
    Shape shape;
    for (int d = 0; d < like.rank(); d++) shape.append(d == axis ? sum : like[d]);
    Tensor y = bytes(shape);
    int32_t* sizes = nullptr;
    if (outputs() > 1) {
      sizes = output(1, {inputs()}, DataType::kInt32).mutable_data<int32_t>();
    }
    auto* out = y.mutable_data<uint8_t>();
    for (int i = 0; i < inputs(); i++) {
      const auto x = quantized(i);
      const int64_t size = x->values.dim(axis);
      const auto* in = x->values.data<uint8_t>();
      for (int64_t o = 0; o < outer; o++) {
        std::copy_n(in + o * size * inner, size * inner, out + o * sum * inner);
      }
      out += size * inner;
      if (sizes != nullptr) sizes[i] = static_cast<int32_t>(size);
    }
    give_like(*first, std::move(y));
  }

 private:
  int axis_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Int8Flatten, Int8FlattenOperator)
REGISTER_CPU_OPERATOR(Int8ResizeNearest, Int8ResizeNearestOperator)
REGISTER_CPU_OPERATOR(Int8ChannelShuffle, Int8ChannelShuffleOperator)
REGISTER_CPU_OPERATOR(Int8Concat, Int8ConcatOperator)

}  // namespace caffe2
