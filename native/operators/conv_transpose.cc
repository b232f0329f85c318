// ConvTranspose is the gradient of a convolution by its input, with the parts exchanged: X is the
// gradient of the convolution's output, Y that of its input. So it runs on the kernels of Conv.
#include <algorithm>
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/channels.h"
#include "operators/int8.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

using kernels::ConvAlgorithm;
using kernels::ConvPass;
using kernels::ConvShape;

// Two values: names=[..], or those of name_h and name_w, or name for both; `usual` is as good as
// not given.
std::vector<int64_t> two_of(const Arguments& args, const std::string& name, int64_t usual) {
  const std::vector<int64_t> listed = args.integers(name + "s");
  CAFFE2_ENFORCE(listed.empty() || listed.size() == 2, "argument '", name, "s' has ", listed.size(),
                 " values; 2 are needed");
  if (!listed.empty()) return listed;
  const bool h = args.has(name + "_h"), w = args.has(name + "_w");
  CAFFE2_ENFORCE(h == w, "arguments ", name, "_h, ", name, "_w are given together or not at all");
  const bool single = args.has(name) && args.integer(name) != usual;
  if (h && !single) return {args.integer(name + "_h"), args.integer(name + "_w")};
  CAFFE2_ENFORCE(usual >= 0 || args.has(name), "argument '", name, "' is missing");
  return {args.integer(name), args.integer(name)};
}

std::vector<int64_t> pads_of(const Arguments& args) {
  const std::vector<int64_t> listed = args.integers("pads");
  CAFFE2_ENFORCE(listed.empty() || listed.size() == 4, "argument 'pads' has ", listed.size(),
                 " values; 4 are needed: top, left, bottom, right");
  if (!listed.empty()) return listed;
  std::vector<int64_t> sides;
  for (const char* name : {"pad_t", "pad_l", "pad_b", "pad_r"}) {
    if (args.has(name)) sides.push_back(args.integer(name));
  }
  CAFFE2_ENFORCE(sides.empty() || sides.size() == 4,
                 "arguments pad_t, pad_l, pad_b, pad_r are given together or not at all");
  if (!sides.empty() && args.integer("pad") == 0) return sides;
  return std::vector<int64_t>(4, args.integer("pad"));
}

class ConvTransposeBase : public ChannelOperator {
 public:
  explicit ConvTransposeBase(const OperatorContext& context)
      : ChannelOperator(context),
        kernel_(two_of(args(), "kernel", -1)),
        stride_(two_of(args(), "stride", 1)),
        adj_(two_of(args(), "adj", 0)),
        pads_(pads_of(args())),
        group_(args().integer("group")) {
    for (int a = 0; a < 2; a++) {
      CAFFE2_ENFORCE(adj_[a] < stride_[a], "argument 'adj' is ", adj_[a],
                     "; less than the stride (", stride_[a], ") is allowed");
    }
  }

 protected:
  // The convolution behind it, of X (input 0) and the filter (input 1).
  ConvShape shape(const Tensor& x, const Tensor& w) const {
    for (int i = 0; i < 2; i++) {
      const Shape& given = (i == 0 ? x : w).shape();
      CAFFE2_ENFORCE(given.rank() == 4, describe_input(i), " has shape ", given.text(),
                     "; 4 dimensions are needed");
    }
    const Activations in(x, channels_last(), describe_input(0));
    const Activations filter(w, channels_last(), describe_input(1));
    CAFFE2_ENFORCE(filter.n == in.c && filter.size[0] == kernel_[0] && filter.size[1] == kernel_[1],
                   describe_input(1), " has shape ", w.shape().text(), "; the kernel is ",
                   kernel_[0], " x ", kernel_[1], ", ", describe_input(0), " has ", in.c,
                   " channels");
    CAFFE2_ENFORCE(in.c % group_ == 0, describe_input(0), " has ", in.c,
                   " channels; a multiple of group=", group_, " is needed");
    ConvShape s;
    s.n = in.n, s.c = checked_multiply(filter.c, group_), s.k = in.c;
    s.kh = kernel_[0], s.kw = kernel_[1];
    s.stride_h = stride_[0], s.stride_w = stride_[1];
    s.pad_t = pads_[0], s.pad_l = pads_[1], s.pad_b = pads_[2], s.pad_r = pads_[3];
    s.group = group_;
    int64_t out[2];
    for (int a = 0; a < 2; a++) {
      out[a] = checked_multiply(in.size[a] - 1, stride_[a]) + kernel_[a] + adj_[a] - pads_[a] -
               pads_[a + 2];
    }
    CAFFE2_ENFORCE(out[0] > 0 && out[1] > 0, describe_input(0), " has shape ", x.shape().text(),
                   "; with these pads the output would be ", out[0], " x ", out[1]);
    s.h = out[0], s.w = out[1];
    require_countable(s, describe_input(0));
    return s;
  }

  Shape output_shape(const Tensor& x, const ConvShape& s) const {
    const int64_t size[2] = {s.h, s.w};
    return activation_shape(x, channels_last(), s.c, size);
  }

  ConvAlgorithm algorithm(const ConvShape& s, ConvPass pass) const {
    return kernels().conv_algorithm(s, pass, kernels::Layout::kPlain);
  }
  int64_t scratch_bytes(const ConvShape& s, ConvPass pass) const {
    return kernels().conv_scratch_bytes(s, pass, algorithm(s, pass), parallel().threads);
  }

  float* buffer_if_last(int64_t values) { return channels_last() ? buffer(values) : nullptr; }
  const float* first(const Tensor& x, int64_t n, int64_t c, int64_t points, float* copy) {
    if (!copy) return x.data<float>();
    to_channels_first(n, c, points, x.data<float>(), copy, parallel());
    return copy;
  }

 private:
  const std::vector<int64_t> kernel_, stride_, adj_, pads_;
  const int64_t group_;
};

// Inputs X, filter, bias.
class ConvTransposeOperator : public ConvTransposeBase {
 public:
  using ConvTransposeBase::ConvTransposeBase;

 protected:
  void run() override {
    const Tensor &x = input(0), &w = input(1);
    const ConvShape s = shape(x, w);
    const int64_t points = s.h * s.w;
    if (has_input(2)) {
      CAFFE2_ENFORCE(input(2).shape() == Shape{s.c}, describe_input(2), " has shape ",
                     input(2).shape().text(), "; (", s.c, ",) is needed");
    }
    Tensor& y = output(0, output_shape(x, s), DataType::kFloat);
    if (y.size() == 0) return;  // the kernels of Conv need a batch
    float *x_copy = buffer_if_last(x.size()), *w_copy = buffer_if_last(w.size());
    float *result = buffer_if_last(y.size()), *ones = buffer(s.c);
    void* work = scratch(scratch_bytes(s, ConvPass::kBackwardData));
    const float* in = first(x, s.n, s.k, s.oh() * s.ow(), x_copy);
    const float* filter = first(w, s.k, s.c / s.group, s.kh * s.kw, w_copy);
    float* out = result ? result : y.mutable_data<float>();
    kernels().conv_backward_data(s, algorithm(s, ConvPass::kBackwardData), in, filter, out, work,
                                 parallel());
    if (has_input(2)) {
      std::fill_n(ones, s.c, 1.f);
      kernels().channel_affine({s.n, s.c, points}, out, nullptr, ones, input(2).data<float>(), out,
                               parallel());
    }
    if (result) to_channels_last(s.n, s.c, points, result, y.mutable_data<float>(), parallel());
  }
};

// X (N, H, W, C), filter (C, kernel_h, kernel_w, M / group) and bias as Int8.
class Int8ConvTransposeOperator : public Int8On<ConvTransposeBase> {
 public:
  explicit Int8ConvTransposeOperator(const OperatorContext& context) : Int8On(context) {
    CAFFE2_ENFORCE(channels_last(), "argument 'order' must be NHWC");
  }

 protected:
  void run() override {
    const auto x = quantized(0), w = quantized(1);
    const ConvShape s = shape(x->values, w->values);
    CAFFE2_ENFORCE(checked_multiply(s.k, s.kh * s.kw) <= kMostProducts, "each output is a sum of ",
                   s.k * s.kh * s.kw, " products; at most ", kMostProducts, " are allowed");
    const int32_t* bias = this->bias(2, s.c, x->scale * w->scale);
    const kernels::Requantization to = requantization(*x, *w, 0);
    Tensor y = bytes(output_shape(x->values, s));
    const int64_t values = checked_multiply(checked_multiply(s.h, s.w), s.c);
    auto* sums = scratch<int32_t>(values);
    const auto* in = x->values.data<uint8_t>();
    auto* out = y.mutable_data<uint8_t>();
    for (int64_t n = 0; n < s.n; n++, in += s.oh() * s.ow() * s.k) {
      for (int64_t i = 0; i < values; i++) sums[i] = bias != nullptr ? bias[i % s.c] : 0;
      scatter(s, in, x->zero_point, w->values.data<uint8_t>(), w->zero_point, sums);
      int8_kernels().requantize(to, values, sums, out + n * values, parallel());
    }
    give(std::move(y));
  }

 private:
  // Adds what each element of the input gives to the outputs around it.
  static void scatter(const ConvShape& s, const uint8_t* x, int32_t x_zero, const uint8_t* w,
                      int32_t w_zero, int32_t* sums) {
    const int64_t width = s.c / s.group, per_group = s.k / s.group;
    for (int64_t i = 0; i < s.oh(); i++) {
      for (int64_t j = 0; j < s.ow(); j++, x += s.k) {
        for (int64_t k = 0; k < s.k; k++) {
          const uint8_t* tap = w + k * s.kh * s.kw * width;
          for (int64_t a = 0; a < s.kh; a++) {
            const int64_t row = i * s.stride_h - s.pad_t + a;
            for (int64_t b = 0; b < s.kw; b++, tap += width) {
              const int64_t column = j * s.stride_w - s.pad_l + b;
              if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
              int32_t* to = sums + (row * s.w + column) * s.c + k / per_group * width;
              for (int64_t m = 0; m < width; m++) to[m] += (x[k] - x_zero) * (tap[m] - w_zero);
            }
          }
        }
      }
    }
  }

  static constexpr int64_t kMostProducts = INT32_MAX / (255 * 255) - 1;
};

// Inputs X, filter, dY; outputs d(filter), d(bias) unless no_bias, and dX where wanted.
class ConvTransposeGradientOperator : public ConvTransposeBase {
 public:
  explicit ConvTransposeGradientOperator(const OperatorContext& context)
      : ConvTransposeBase(context), no_bias_(args().boolean("no_bias")) {
    const size_t outputs = context.def.output.size(), least = no_bias_ ? 1 : 2;
    CAFFE2_ENFORCE(outputs == least || outputs == least + 1, "it has ", outputs,
                   " outputs; with no_bias=", no_bias_, " allowed are ", least, " or ", least + 1);
  }

 protected:
  void run() override {
    const Tensor &x = input(0), &w = input(1), &dy = input(2);
    const ConvShape s = shape(x, w);
    const Shape y_shape = output_shape(x, s);
    CAFFE2_ENFORCE(dy.shape() == y_shape, describe_input(2), " has shape ", dy.shape().text(),
                   "; the output of this operator has ", y_shape.text());
    const int dx_index = no_bias_ ? 1 : 2;
    const bool wants_dx = outputs() > dx_index;
    Tensor& dw = output(0, w.shape(), DataType::kFloat);
    Tensor* db = no_bias_ ? nullptr : &output(1, {s.c}, DataType::kFloat);
    Tensor* dx = wants_dx ? &output(dx_index, x.shape(), DataType::kFloat) : nullptr;
    if (s.n == 0) {
      std::fill_n(dw.mutable_data<float>(), dw.size(), 0.f);
      if (db) std::fill_n(db->mutable_data<float>(), s.c, 0.f);
      return;
    }
    const auto by_weights = algorithm(s, ConvPass::kBackwardWeights);
    const auto forward = algorithm(s, ConvPass::kForward);
    float *x_copy = buffer_if_last(x.size()), *w_copy = buffer_if_last(w.size());
    float *dy_copy = buffer_if_last(dy.size()), *dw_first = buffer_if_last(w.size());
    float* dx_first = buffer_if_last(x.size());
    float* packed = static_cast<float*>(scratch(kernels().conv_packed_bytes(s, forward)));
    void* work = scratch(std::max(scratch_bytes(s, ConvPass::kBackwardWeights),
                                  scratch_bytes(s, ConvPass::kForward)));
    float* dwp = dw.mutable_data<float>();
    const int64_t taps = s.kh * s.kw, pixels = s.oh() * s.ow();
    const float* xp = first(x, s.n, s.k, pixels, x_copy);
    const float* dyp = first(dy, s.n, s.c, s.h * s.w, dy_copy);
    kernels().conv_backward_weights(s, by_weights, dyp, xp, dw_first ? dw_first : dwp, work,
                                    parallel());
    if (dw_first) to_channels_last(s.k, s.c / s.group, taps, dw_first, dwp, parallel());
    if (db) {
      kernels().channel_sums({s.n, s.c, s.h * s.w}, dyp, db->mutable_data<float>(), parallel());
    }
    if (dx) {
      const float* wp = first(w, s.k, s.c / s.group, taps, w_copy);
      float* dxp = dx->mutable_data<float>();
      kernels().conv_pack(s, forward, wp, packed, parallel());
      kernels::ConvForward f;
      f.shape = s;
      f.algorithm = forward;
      kernels().conv_forward(f, dyp, packed, dx_first ? dx_first : dxp, work, parallel());
      if (dx_first) to_channels_last(s.n, s.k, pixels, dx_first, dxp, parallel());
    }
  }

 private:
  const bool no_bias_;
};

}  // namespace

REGISTER_CPU_OPERATOR(ConvTranspose, ConvTransposeOperator)
REGISTER_CPU_OPERATOR(Int8ConvTranspose, Int8ConvTransposeOperator)
REGISTER_CPU_OPERATOR(ConvTransposeGradient, ConvTransposeGradientOperator)

}  // namespace caffe2
