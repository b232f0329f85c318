// Convolution, fully connected layers and pooling of Int8 tensors, channels last.
#include <utility>

#include "core/registry.h"
#include "operators/int8.h"
#include "operators/packed_weights.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

using kernels::ConvShape;
using kernels::Int8Pool;

// Sums of products of numbers of 9 bits stay below 2^31.
constexpr int64_t kLongest = INT32_MAX / (255 * 255) - 1;

// Weights and bias of a layer.
class Int8LayerOperator : public Int8Operator {
 public:
  Int8LayerOperator(const OperatorContext& context, bool relu)
      : Int8Operator(context), relu_(relu) {}

 protected:
  // Y of this shape from X, W and b (inputs 0 to 2), as a convolution.
  void compute(const ConvShape& s, const Shape& y_shape) {
    const auto x = quantized(0), w = quantized(1);
    const int64_t depth = s.kh * s.kw * (s.c / s.group);
    CAFFE2_ENFORCE(depth <= kLongest, "each output is a sum of ", depth, " products; at most ",
                   kLongest, " are allowed");
    kernels::Int8Conv conv;
    conv.shape = s;
    conv.x_zero = x->zero_point, conv.w_zero = w->zero_point;
    conv.bias = bias(2, s.k, x->scale * w->scale);
    conv.to = requantization(*x, *w, relu_ ? zero_ : 0);
    Tensor y = bytes(y_shape);
    if (y.size() > 0) {
      const void* packed = packed_weights(s, *w);
      void* buffer = scratch(int8_kernels().conv_scratch_bytes(s, parallel().threads));
      int8_kernels().conv(conv, x->values.data<uint8_t>(), packed, y.mutable_data<uint8_t>(),
                          buffer, parallel());
    }
    give(std::move(y));
  }

 private:
  const void* packed_weights(const ConvShape& s, const Int8Tensor& w) {
    const void* known = packed_.find(w.values, s, w.zero_point);
    if (known) return known;
    return packed_.pack(w.values, s, w.zero_point, engine().allocator(),
                        int8_kernels().conv_packed_bytes(s), [&](void* out) {
                          int8_kernels().conv_pack(s, w.zero_point, w.values.data<uint8_t>(), out,
                                                   parallel());
                        });
  }

  const bool relu_;
  PackedWeights packed_;
};

template <bool relu>
class Int8ConvOperator : public Int8LayerOperator {
 public:
  explicit Int8ConvOperator(const OperatorContext& context)
      : Int8LayerOperator(context, relu), window_(args()), group_(args().integer("group")) {
    CAFFE2_ENFORCE(window_.channels_last(), "argument 'order' must be NHWC");
  }

 protected:
  void run() override {
    const auto x = quantized(0), w = quantized(1);
    require_rank(*x, 4, describe_input(0));
    require_rank(*w, 4, describe_input(1));
    const Shape &in = x->values.shape(), &filter = w->values.shape();
    const int64_t sizes[2] = {in[1], in[2]};
    const Window window = window_.resolve(4, sizes, describe_input(0));
    const int64_t channels = in[3], filters = filter[0];
    const bool fits =
        channels % group_ == 0 && filters % group_ == 0 &&
        filter == Shape{filters, window.kernel[0], window.kernel[1], channels / group_};
    CAFFE2_ENFORCE(fits, describe_input(1), " has shape ", filter.text(), "; kernel ",
                   window.kernel[0], " x ", window.kernel[1], ", ", channels, " channels and ",
                   group_, " groups do not fit");
    ConvShape s;
    s.n = in[0], s.h = in[1], s.w = in[2], s.c = channels;
    s.k = filters;
    s.kh = window.kernel[0], s.kw = window.kernel[1];
    s.stride_h = window.stride[0], s.stride_w = window.stride[1];
    s.dilation_h = window.dilation[0], s.dilation_w = window.dilation[1];
    s.pad_t = window.pad_begin[0], s.pad_l = window.pad_begin[1];
    s.pad_b = window.reach_end[0], s.pad_r = window.reach_end[1];
    s.group = group_;
    require_countable(s, describe_input(0));
    compute(s, {in[0], window.out[0], window.out[1], filters});
  }

 private:
  const WindowArguments window_;
  const int64_t group_;
};

template <bool relu>
class Int8FCOperator : public Int8LayerOperator {
 public:
  explicit Int8FCOperator(const OperatorContext& context)
      : Int8LayerOperator(context, relu), axis_(args().int32("axis")) {}

 protected:
  void run() override {
    const auto x = quantized(0), w = quantized(1);
    const Shape& in = x->values.shape();
    CAFFE2_ENFORCE(axis_ <= in.rank(), "argument 'axis' is ", axis_, ", but ", describe_input(0),
                   " has shape ", in.text());
    const int64_t rows = in.product(0, axis_), depth = in.product(axis_, in.rank());
    const Shape& filter = w->values.shape();
    CAFFE2_ENFORCE(filter.rank() >= 1 && filter.product(1, filter.rank()) == depth,
                   describe_input(1), " has shape ", filter.text(), "; ", depth,
                   " values for each output are needed, as ", describe_input(0), " has shape ",
                   in.text());
    const int64_t columns = filter[0];
    Shape shape;
    for (int i = 0; i < axis_; i++) shape.append(in[i]);
    shape.append(columns);
    ConvShape s;  // each row is a pixel
    s.w = rows, s.c = depth, s.k = columns;
    compute(s, shape);
  }

 private:
  const int axis_;
};

class Int8PoolOperator : public Int8Operator {
 public:
  explicit Int8PoolOperator(const OperatorContext& context)
      : Int8Operator(context), window_(args()) {
    CAFFE2_ENFORCE(window_.channels_last(), "argument 'order' must be NHWC");
  }

 protected:
  virtual void pool(const Int8Tensor& x, Int8Pool& p, Tensor y) = 0;

  void run() override {
    const auto x = quantized(0);
    require_rank(*x, 4, describe_input(0));
    const Shape& in = x->values.shape();
    const int64_t sizes[2] = {in[1], in[2]};
    const Window window = window_.resolve(4, sizes, describe_input(0));
    CAFFE2_ENFORCE(window.kernel[0] * window.kernel[1] <= kLongest, "a window has ",
                   window.kernel[0], " x ", window.kernel[1], " elements; ", kLongest,
                   " are allowed");
    Int8Pool p;
    kernels::PoolShape& s = p.shape;
    s.planes = in[0], s.h = in[1], s.w = in[2];
    s.oh = window.out[0], s.ow = window.out[1];
    s.kh = window.kernel[0], s.kw = window.kernel[1];
    s.stride_h = window.stride[0], s.stride_w = window.stride[1];
    s.dilation_h = window.dilation[0], s.dilation_w = window.dilation[1];
    s.pad_t = window.pad_begin[0], s.pad_l = window.pad_begin[1];
    p.channels = in[3];
    pool(*x, p, bytes({in[0], s.oh, s.ow, in[3]}));
  }

 private:
  const WindowArguments window_;
};

// Pads count as 0.
template <bool relu>
class Int8AveragePoolOperator : public Int8PoolOperator {
 public:
  using Int8PoolOperator::Int8PoolOperator;

 protected:
  static constexpr float kLargest = 1 << 24;  // all but 0 becomes 0 or 255

  void pool(const Int8Tensor& x, Int8Pool& p, Tensor y) override {
    const float mean = x.scale / scale_ / static_cast<float>(p.shape.kh * p.shape.kw);
    int exponent = 0;
    const float fraction = std::frexp(std::min(mean, kLargest), &exponent);
    p.multiplier = static_cast<int64_t>(std::ldexp(fraction, 24));
    p.shift = std::clamp(24 - exponent, 0, 62);
    p.x_zero = x.zero_point;
    p.zero_point = zero_;
    p.low = relu ? zero_ : 0;
    int8_kernels().average_pool(p, x.values.data<uint8_t>(), y.mutable_data<uint8_t>(), parallel());
    give(std::move(y));
  }
};

template <bool relu>
class Int8MaxPoolOperator : public Int8PoolOperator {
 public:
  using Int8PoolOperator::Int8PoolOperator;

 protected:
  void pool(const Int8Tensor& x, Int8Pool& p, Tensor y) override {
    p.low = relu ? x.zero_point : 0;
    int8_kernels().max_pool(p, x.values.data<uint8_t>(), y.mutable_data<uint8_t>(), parallel());
    give_like(x, std::move(y));
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Int8Conv, Int8ConvOperator<false>)
REGISTER_CPU_OPERATOR(Int8ConvRelu, Int8ConvOperator<true>)
REGISTER_CPU_OPERATOR(Int8FC, Int8FCOperator<false>)
REGISTER_CPU_OPERATOR(Int8FCRelu, Int8FCOperator<true>)
REGISTER_CPU_OPERATOR(Int8AveragePool, Int8AveragePoolOperator<false>)
REGISTER_CPU_OPERATOR(Int8AveragePoolRelu, Int8AveragePoolOperator<true>)
REGISTER_CPU_OPERATOR(Int8MaxPool, Int8MaxPoolOperator<false>)
REGISTER_CPU_OPERATOR(Int8MaxPoolRelu, Int8MaxPoolOperator<true>)

}  // namespace caffe2
