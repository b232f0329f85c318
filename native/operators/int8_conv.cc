// Convolution, fully connected layers and pooling of Int8 tensors, channels last.
#include <vector>

#include "core/registry.h"
#include "operators/int8.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

// Sums of products of numbers of 9 bits stay below 2^31.
constexpr int64_t kLongest = INT32_MAX / (255 * 255) - 1;

int32_t dot(const int16_t* a, const int16_t* b, int64_t n) {
  int32_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += static_cast<int32_t>(a[i]) * b[i];
  return sum;
}

// y[r][c] = a[r] * b[c] + bias[c], for rows [begin, end) of `depth` values.
void multiply(const int16_t* a, const int16_t* b, const int32_t* bias, int64_t begin, int64_t end,
              int64_t columns, int64_t depth, const Requantization& to, uint8_t* y,
              int64_t stride) {
  for (int64_t r = begin; r < end; r++) {
    for (int64_t c = 0; c < columns; c++) {
      y[r * stride + c] = to(dot(a + r * depth, b + c * depth, depth) + bias[c]);
    }
  }
}

// Weights and bias of a layer.
class Int8LayerOperator : public Int8Operator {
 public:
  Int8LayerOperator(const OperatorContext& context, bool relu)
      : Int8Operator(context), relu_(relu) {}

 protected:
  int32_t lowest() const { return relu_ ? zero_ : 0; }
  int16_t* shorts(int64_t n) {
    return static_cast<int16_t*>(scratch(static_cast<size_t>(n) * sizeof(int16_t)));
  }
  // Values without their zero point.
  static void center(const uint8_t* from, int64_t n, int32_t zero_point, int16_t* to) {
    for (int64_t i = 0; i < n; i++) to[i] = static_cast<int16_t>(from[i] - zero_point);
  }
  void require_depth(int64_t depth) const {
    CAFFE2_ENFORCE(depth <= kLongest, "each output is a sum of ", depth, " products; at most ",
                   kLongest, " are allowed");
  }

 private:
  const bool relu_;
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
    const int64_t depth = filter.product(1, 4), per_group = filters / group_;
    require_depth(depth);
    const int32_t* bias = this->bias(2, filters);
    const Requantization to = requantization(*x, *w, lowest());
    const int64_t places = window.out[0] * window.out[1];
    Tensor y = bytes({in[0], window.out[0], window.out[1], filters});
    int16_t* weights = shorts(w->values.size());
    int16_t* patches = shorts(checked_multiply(places, depth));
    center(w->values.template data<uint8_t>(), w->values.size(), w->zero_point, weights);
    auto* out = y.mutable_data<uint8_t>();
    for (int64_t n = 0; n < in[0]; n++) {
      const uint8_t* image = x->values.template data<uint8_t>() + n * in.product(1, 4);
      uint8_t* map = out + n * places * filters;
      for (int64_t g = 0; g < group_; g++) {
        const int64_t first = g * per_group;
        const uint8_t* part = image + g * (channels / group_);
        const int64_t step = rows_per_range(depth * per_group);
        for_ranges(parallel(), places, step, [&](int64_t begin, int64_t end) {
          gather(window, in, part, channels / group_, x->zero_point, begin, end, patches);
          multiply(patches, weights + first * depth, bias + first, begin, end, per_group, depth, to,
                   map + first, filters);
        });
      }
    }
    give(std::move(y));
  }

 private:
  // What each window sees, as rows; 0 outside of the image.
  static void gather(const Window& window, const Shape& in, const uint8_t* image, int64_t width,
                     int32_t zero_point, int64_t begin, int64_t end, int16_t* patches) {
    int16_t* to = patches + begin * window.kernel[0] * window.kernel[1] * width;
    for (int64_t place = begin; place < end; place++) {
      const int64_t top = place / window.out[1] * window.stride[0] - window.pad_begin[0];
      const int64_t left = place % window.out[1] * window.stride[1] - window.pad_begin[1];
      for (int64_t a = 0; a < window.kernel[0]; a++) {
        const int64_t i = top + a * window.dilation[0];
        for (int64_t b = 0; b < window.kernel[1]; b++, to += width) {
          const int64_t j = left + b * window.dilation[1];
          if (i < 0 || i >= in[1] || j < 0 || j >= in[2]) {
            std::fill_n(to, width, int16_t{0});
          } else {
            center(image + (i * in[2] + j) * in[3], width, zero_point, to);
          }
        }
      }
    }
  }

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
    require_depth(depth);
    const int32_t* bias = this->bias(2, columns);
    const Requantization to = requantization(*x, *w, lowest());
    Shape shape;
    for (int i = 0; i < axis_; i++) shape.append(in[i]);
    shape.append(columns);
    Tensor y = bytes(shape);
    int16_t *a = shorts(rows * depth), *b = shorts(columns * depth);
    center(x->values.template data<uint8_t>(), rows * depth, x->zero_point, a);
    auto* out = y.mutable_data<uint8_t>();
    for_ranges(parallel(), columns, rows_per_range(depth), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * depth, count = end - begin;
      center(w->values.template data<uint8_t>() + first, count * depth, w->zero_point, b + first);
      multiply(a, b + first, bias + begin, 0, rows, count, depth, to, out + begin, columns);
    });
    give(std::move(y));
  }

 private:
  const int axis_;
};

class Int8PoolOperator : public Int8Operator {
 public:
  Int8PoolOperator(const OperatorContext& context, bool relu)
      : Int8Operator(context), relu_(relu), window_(args()) {
    CAFFE2_ENFORCE(window_.channels_last(), "argument 'order' must be NHWC");
  }

 protected:
  // Calls f(index of the element) for all elements of a window that lie in the image.
  template <class F>
  static void each(const Window& w, const Shape& in, int64_t place, const F& f) {
    const int64_t top = place / w.out[1] * w.stride[0] - w.pad_begin[0];
    const int64_t left = place % w.out[1] * w.stride[1] - w.pad_begin[1];
    for (int64_t a = 0; a < w.kernel[0]; a++) {
      const int64_t i = top + a * w.dilation[0];
      if (i < 0 || i >= in[1]) continue;
      for (int64_t b = 0; b < w.kernel[1]; b++) {
        const int64_t j = left + b * w.dilation[1];
        if (j >= 0 && j < in[2]) f((i * in[2] + j) * in[3]);
      }
    }
  }
  // From an image to channels of a place of the output.
  virtual void pool(const Window& w, const Int8Tensor& x, const uint8_t* image, int64_t place,
                    uint8_t* y) const = 0;
  virtual bool keeps() const = 0;

  void run() override {
    const auto x = quantized(0);
    require_rank(*x, 4, describe_input(0));
    const Shape& in = x->values.shape();
    const int64_t sizes[2] = {in[1], in[2]};
    const Window window = window_.resolve(4, sizes, describe_input(0));
    require_depth(window);
    const int64_t places = window.out[0] * window.out[1], channels = in[3];
    Tensor y = bytes({in[0], window.out[0], window.out[1], channels});
    auto* out = y.mutable_data<uint8_t>();
    const int64_t step = rows_per_range(window.kernel[0] * window.kernel[1] * channels);
    for_ranges(parallel(), in[0] * places, step, [&](int64_t begin, int64_t end) {
      for (int64_t place = begin; place < end; place++) {
        const uint8_t* image = x->values.data<uint8_t>() + place / places * in.product(1, 4);
        pool(window, *x, image, place % places, out + place * channels);
      }
    });
    keeps() ? give_like(*x, std::move(y)) : give(std::move(y));
  }

  const bool relu_;

 private:
  static void require_depth(const Window& w) {
    CAFFE2_ENFORCE(w.kernel[0] * w.kernel[1] <= kLongest, "a window has ", w.kernel[0], " x ",
                   w.kernel[1], " elements; ", kLongest, " are allowed");
  }

  const WindowArguments window_;
};

// Pads count as 0.
template <bool relu>
class Int8AveragePoolOperator : public Int8PoolOperator {
 public:
  explicit Int8AveragePoolOperator(const OperatorContext& context)
      : Int8PoolOperator(context, relu) {}

 protected:
  static constexpr float kLargest = 1 << 24;  // all but 0 becomes 0 or 255

  bool keeps() const override { return false; }
  void pool(const Window& w, const Int8Tensor& x, const uint8_t* image, int64_t place,
            uint8_t* y) const override {
    const Shape& in = x.values.shape();
    const float mean = x.scale / scale_ / static_cast<float>(w.kernel[0] * w.kernel[1]);
    int exponent = 0;
    const float fraction = std::frexp(std::min(mean, kLargest), &exponent);
    const auto multiplier = static_cast<int64_t>(std::ldexp(fraction, 24));
    const int shift = std::clamp(24 - exponent, 0, 62);
    for (int64_t c = 0; c < in[3]; c++) {
      int64_t sum = 0;
      each(w, in, place, [&](int64_t i) { sum += image[i + c] - x.zero_point; });
      y[c] = saturate(shift_right(sum * multiplier, shift) + zero_, relu_ ? zero_ : 0);
    }
  }
};

template <bool relu>
class Int8MaxPoolOperator : public Int8PoolOperator {
 public:
  explicit Int8MaxPoolOperator(const OperatorContext& context) : Int8PoolOperator(context, relu) {}

 protected:
  bool keeps() const override { return true; }
  void pool(const Window& w, const Int8Tensor& x, const uint8_t* image, int64_t place,
            uint8_t* y) const override {
    const Shape& in = x.values.shape();
    std::fill_n(y, in[3], static_cast<uint8_t>(relu_ ? x.zero_point : 0));
    each(w, in, place, [&](int64_t i) {
      for (int64_t c = 0; c < in[3]; c++) y[c] = std::max(y[c], image[i + c]);
    });
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
