// Conv and ConvGradient over one to three spatial dimensions.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/conv_volume.h"
#include "operators/packed_weights.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

using kernels::ConvAlgorithm;
using kernels::ConvPass;
using kernels::ConvShape;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The algorithms that an operator may ask for by name; "WINOGRAD" leaves the size of the tile open.
constexpr std::pair<const char*, ConvAlgorithm> kEngines[] = {
    {"DIRECT", ConvAlgorithm::kDirect},        {"IM2COL", ConvAlgorithm::kIm2col},
    {"DEPTHWISE", ConvAlgorithm::kDepthwise},  {"WINOGRAD", ConvAlgorithm::kWinograd4},
    {"WINOGRAD_2", ConvAlgorithm::kWinograd2}, {"WINOGRAD_4", ConvAlgorithm::kWinograd4}};

std::optional<ConvAlgorithm> forced_algorithm(const std::string& engine) {
  for (const auto& [name, algorithm] : kEngines) {
    if (engine == name) return algorithm;
  }
  return std::nullopt;
}

class ConvBase : public Operator {
 public:
  explicit ConvBase(const OperatorContext& context)
      : Operator(context),
        window_(args()),
        group_(args().integer("group")),
        forced_(forced_algorithm(context.def.engine.value_or(""))) {}

 protected:
  // What X (input 0) and the filter (input 1) are.
  struct Geometry {
    Activations in;
    Window window;
    int64_t k;
  };

  Geometry geometry() {
    const Tensor &x = input(0), &w = plain_input(1);
    const bool last = window_.channels_last();
    const Activations in(x, last, describe_input(0), 3);
    CAFFE2_ENFORCE(w.rank() == x.rank(), describe_input(1), " has shape ", w.shape().text(),
                   " but ", describe_input(0), " has shape ", x.shape().text(),
                   "; they must have the same number of dimensions");
    const Window window = window_.resolve(x.rank(), in.size, describe_input(0), in.frames);
    const Activations filter(w, last, describe_input(1), 3);
    const int64_t k = w.dim(0);
    CAFFE2_ENFORCE(in.c > 0 && k > 0, describe_input(0), " and ", describe_input(1),
                   " need at least one channel each");
    CAFFE2_ENFORCE(in.c % group_ == 0 && k % group_ == 0, in.c, " input and ", k,
                   " output channels cannot be divided into ", group_, " groups");
    CAFFE2_ENFORCE(filter.c == in.c / group_, describe_input(1), " has shape ", w.shape().text(),
                   ", which takes ", filter.c, " channels (times ", group_, " groups), but ",
                   describe_input(0), " has shape ", x.shape().text(), ", ", in.c, " channels");
    CAFFE2_ENFORCE(filter.size[0] == window.kernel[0] && filter.size[1] == window.kernel[1] &&
                       filter.frames == window.frames.kernel,
                   describe_input(1), " has shape ", w.shape().text(), ", but the kernel is ",
                   x.rank() == 5 ? std::to_string(window.frames.kernel) + " x " : "",
                   window.kernel[0], " x ", window.kernel[1]);
    return {in, window, k};
  }

  bool is_volume() const { return input(0).rank() == 5; }

  ConvShape shape() {
    const auto [in, window, k] = geometry();
    ConvShape s;
    s.n = in.n, s.c = in.c, s.h = in.size[0], s.w = in.size[1];
    s.k = k;
    s.kh = window.kernel[0], s.kw = window.kernel[1];
    s.stride_h = window.stride[0], s.stride_w = window.stride[1];
    s.dilation_h = window.dilation[0], s.dilation_w = window.dilation[1];
    s.pad_t = window.pad_begin[0], s.pad_l = window.pad_begin[1];
    s.pad_b = window.reach_end[0], s.pad_r = window.reach_end[1];
    s.group = group_;
    require_countable(s, describe_input(0));
    return s;
  }

  VolumeShape volume_shape() {
    const auto [in, window, k] = geometry();
    VolumeShape s{in.n, in.c, k, group_, {}, {}, {}, {}, {}, {}};
    for (int d = 0; d < 3; d++) {
      const WindowAxis axis = d == 0 ? window.frames : window.axis(d - 1);
      s.in[d] = d == 0 ? in.frames : in.size[d - 1];
      s.kernel[d] = axis.kernel;
      s.stride[d] = axis.stride;
      s.dilation[d] = axis.dilation;
      s.pad[d] = axis.pad_begin;
      s.out[d] = axis.out;
    }
    return s;
  }

  VolumeScratch volume_scratch(const VolumeShape& s) {
    return {buffer(checked_multiply(s.column_rows(), s.out_frame())),
            scratch(volume_gemm_bytes(kernels(), s, parallel().threads))};
  }

  Shape volume_output(const VolumeShape& s) const {
    return activation_shape(input(0), channels_last(), s.k, s.out + 1, s.out[0]);
  }

  ConvAlgorithm algorithm(const ConvShape& s, ConvPass pass,
                          kernels::Layout around = kernels::Layout::kPlain) const {
    const ConvAlgorithm usual = kernels().conv_algorithm(s, pass, around);
    if (!forced_) return usual;
    if (def().engine == "WINOGRAD" && usual == ConvAlgorithm::kWinograd2) return usual;
    if (!kernels().conv_supports(s, pass, *forced_)) {
      if (pass != ConvPass::kForward) return usual;
      fail(Code::kUnsupported, "engine '", def().engine.value_or(""),
           "' has no kernel for this convolution (group ", s.group, ", stride ", s.stride_h, " x ",
           s.stride_w, ", dilation ", s.dilation_h, " x ", s.dilation_w, ")");
    }
    return *forced_;
  }

  void require_bias(int i, int64_t k) const {
    CAFFE2_ENFORCE(input(i).rank() == 1 && input(i).dim(0) == k, describe_input(i), " has shape ",
                   input(i).shape().text(), "; (", k, ") is needed, a value per output channel");
  }

  bool channels_last() const { return window_.channels_last(); }
  float* buffer(int64_t values) { return scratch<float>(values); }

  // `values` channels first, through scratch when the operator's order is NHWC.
  const float* channels_first(const float* values, int64_t n, int64_t c, int64_t hw) {
    if (!channels_last()) return values;
    float* copy = buffer(n * c * hw);
    to_channels_first(n, c, hw, values, copy, parallel());
    return copy;
  }

 private:
  const WindowArguments window_;
  const int64_t group_;
  const std::optional<ConvAlgorithm> forced_;
};

class ConvOperator : public ConvBase {
 public:
  explicit ConvOperator(const OperatorContext& context)
      : ConvBase(context), filter_(context, 1, channels_last()) {}
  unsigned fuses() const override { return kFusesSum | kFusesBounds; }
  bool takes_stored() const override { return true; }
  bool only_reads(int i) const override { return i == 0; }
  bool chooses_layout() const override { return true; }

 protected:
  virtual kernels::Bounds bounds() const { return fused_bounds(); }

  void run() override {
    if (is_volume()) {
      run_volume();
      return;
    }
    const ConvShape s = shape();
    if (has_input(2)) require_bias(2, s.k);
    const int64_t size[2] = {s.oh(), s.ow()}, plane = size[0] * size[1];
    const Shape y_shape = activation_shape(input(0), channels_last(), s.k, size);
    const Layout blocked{kernels().vector_width, channels_last()};

    kernels::ConvForward f;
    f.shape = s;
    f.bounds = bounds();
    const bool may_be_blocked = prefers_blocked() || input(0).layout() == blocked;
    f.algorithm = algorithm(s, ConvPass::kForward,
                            may_be_blocked ? kernels::Layout::kBlocked : kernels::Layout::kPlain);
    const bool blocked_x = input(0).layout() == blocked &&
                           kernels().conv_x_layout(s, f.algorithm) == kernels::Layout::kBlocked;
    const bool blocked_y =
        prefers_blocked() && kernels().conv_y_layout(s, f.algorithm) == kernels::Layout::kBlocked;
    f.x_layout = blocked_x ? kernels::Layout::kBlocked : kernels::Layout::kPlain;
    f.y_layout = blocked_y ? kernels::Layout::kBlocked : kernels::Layout::kPlain;
    const Tensor& x = blocked_x ? input(0) : plain_input(0);

    float* first = channels_last() && !blocked_y ? buffer(s.n * s.k * plane) : nullptr;
    Tensor& y = output(0, y_shape, DataType::kFloat, blocked_y ? blocked : Layout());
    if (const Tensor* residual = fused_residual()) {
      if (first || residual->type() != DataType::kFloat || !(residual->shape() == y_shape)) {
        decline_fusion();
      }
      f.add = laid_out(*residual, y.layout(), s.n, s.k, plane);
    }
    if (y.size() == 0) return;
    const float* packed = filter_.get(input(1), may_release(1), s, f.algorithm);
    void* work = scratch(
        kernels().conv_scratch_bytes(s, ConvPass::kForward, f.algorithm, parallel().threads));
    if (has_input(2)) f.bias = plain_input(2).data<float>();
    const float* in = blocked_x ? x.stored() : channels_first(x.data<float>(), s.n, s.c, s.h * s.w);
    float* out = y.mutable_stored();
    kernels().conv_forward(f, in, packed, first ? first : out, work, parallel());
    if (first) to_channels_last(s.n, s.k, plane, first, out, parallel());
  }

 private:
  void run_volume() {
    const VolumeShape s = volume_shape();
    if (has_input(2)) require_bias(2, s.k);
    if (fused_residual() || fused_bounds().low > -kInfinity || fused_bounds().high < kInfinity) {
      decline_fusion();
    }
    const Tensor& x = plain_input(0);
    Tensor& y = output(0, volume_output(s), DataType::kFloat);
    if (y.size() == 0) return;
    const VolumeScratch work = volume_scratch(s);
    float* first = channels_last() ? buffer(y.size()) : nullptr;
    const float* xp = channels_first(x.data<float>(), s.n, s.c, s.in_size());
    const float* w = channels_first(input(1).data<float>(), s.k, s.c / s.group, s.taps());
    const float* bias = has_input(2) ? plain_input(2).data<float>() : nullptr;
    float* out = y.mutable_data<float>();
    volume_forward(kernels(), s, xp, w, bias, first ? first : out, work, parallel());
    if (first) to_channels_last(s.n, s.k, s.out_size(), first, out, parallel());
    const float low = bounds().low;
    for (int64_t i = 0; low > -kInfinity && i < y.size(); i++) out[i] = std::max(out[i], low);
  }

  // What is added, in the layout of the output.
  const float* laid_out(const Tensor& residual, Layout wanted, int64_t n, int64_t k,
                        int64_t plane) {
    if (residual.layout() == wanted) return residual.stored();
    if (wanted.channels_last || residual.layout().channels_last) decline_fusion();
    if (wanted.plain()) {
      if (residual.layout().block != kernels().vector_width) decline_fusion();
      float* copy = buffer(residual.size());
      kernels().from_blocked(n, k, plane, residual.stored(), copy, parallel());
      return copy;
    }
    float* copy = static_cast<float*>(scratch(kernels().blocked_bytes(n, k, plane)));
    kernels().to_blocked(n, k, plane, residual.stored(), copy, parallel());
    return copy;
  }

  PackedFilter filter_;
};

class ConvReluOperator : public ConvOperator {
 public:
  using ConvOperator::ConvOperator;

 protected:
  kernels::Bounds bounds() const override {
    kernels::Bounds both = fused_bounds();
    both.low = std::max(both.low, 0.f);
    return both;
  }
};

// Inputs X, filter, dY; outputs d(filter), d(bias) unless no_bias, and dX where wanted.
class ConvGradientOperator : public ConvBase {
 public:
  explicit ConvGradientOperator(const OperatorContext& context)
      : ConvBase(context), no_bias_(args().boolean("no_bias")) {
    CAFFE2_ENFORCE(!no_bias_ || outputs_of(context) <= 2,
                   "with no_bias=1 it has at most 2 outputs (filter and X), but has ",
                   outputs_of(context));
    CAFFE2_ENFORCE(no_bias_ || outputs_of(context) >= 2,
                   "it has 1 output; without no_bias=1 there are those of filter and bias");
  }

 protected:
  void run() override {
    if (is_volume()) {
      run_volume();
      return;
    }
    const Tensor &x = input(0), &w = input(1), &dy = input(2);
    const ConvShape s = shape();
    const int64_t size[2] = {s.oh(), s.ow()};
    const auto [dw, db, dx] = gradients(activation_shape(x, channels_last(), s.k, size), s.k);
    if (s.n == 0) return;
    const ConvAlgorithm by_weights = algorithm(s, ConvPass::kBackwardWeights);
    const ConvAlgorithm by_data = dx ? algorithm(s, ConvPass::kBackwardData) : by_weights;
    const int threads = parallel().threads;
    int64_t bytes =
        kernels().conv_scratch_bytes(s, ConvPass::kBackwardWeights, by_weights, threads);
    if (dx) {
      bytes = std::max(bytes,
                       kernels().conv_scratch_bytes(s, ConvPass::kBackwardData, by_data, threads));
    }
    void* work = scratch(bytes);
    const int64_t taps = s.kh * s.kw, in_plane = s.h * s.w;
    float* dw_first = channels_last() ? buffer(w.size()) : nullptr;
    float* dx_first = channels_last() && dx ? buffer(x.size()) : nullptr;
    const float* dyp = channels_first(dy.data<float>(), s.n, s.k, size[0] * size[1]);
    const float* xp = channels_first(x.data<float>(), s.n, s.c, in_plane);
    const float* wp = dx ? channels_first(w.data<float>(), s.k, s.c / s.group, taps) : nullptr;

    float* dwp = dw->mutable_data<float>();
    kernels().conv_backward_weights(s, by_weights, xp, dyp, dw_first ? dw_first : dwp, work,
                                    parallel());
    if (dw_first) to_channels_last(s.k, s.c / s.group, taps, dw_first, dwp, parallel());
    if (db) kernels().conv_backward_bias(s, dyp, db->mutable_data<float>(), parallel());
    if (dx) {
      float* dxp = dx->mutable_data<float>();
      kernels().conv_backward_data(s, by_data, dyp, wp, dx_first ? dx_first : dxp, work,
                                   parallel());
      if (dx_first) to_channels_last(s.n, s.c, in_plane, dx_first, dxp, parallel());
    }
  }

 private:
  struct Gradients {
    Tensor *filter, *bias, *x;  // null where nobody wants them
  };

  // The outputs, once dY is known to be right; zeros when there is no example.
  Gradients gradients(const Shape& y_shape, int64_t k) {
    const Tensor &x = input(0), &w = input(1), &dy = input(2);
    CAFFE2_ENFORCE(dy.shape() == y_shape, describe_input(2), " has shape ", dy.shape().text(),
                   "; the output of this convolution has ", y_shape.text());
    const int dx_index = no_bias_ ? 1 : 2;
    Tensor& dw = output(0, w.shape(), DataType::kFloat);
    Tensor* db = no_bias_ ? nullptr : &output(1, {k}, DataType::kFloat);
    Tensor* dx = outputs() > dx_index ? &output(dx_index, x.shape(), DataType::kFloat) : nullptr;
    if (x.dim(0) == 0) {
      std::memset(dw.raw_mutable_data(), 0, dw.bytes());
      if (db) std::memset(db->raw_mutable_data(), 0, db->bytes());
    }
    return {&dw, db, dx};
  }

  void run_volume() {
    const Tensor &x = input(0), &w = input(1), &dy = input(2);
    const VolumeShape s = volume_shape();
    const auto [dw, db, dx] = gradients(volume_output(s), s.k);
    if (s.n == 0) return;
    const VolumeScratch work = volume_scratch(s);
    float* dw_first = channels_last() ? buffer(w.size()) : nullptr;
    float* dx_first = channels_last() && dx ? buffer(x.size()) : nullptr;
    const float* dyp = channels_first(dy.data<float>(), s.n, s.k, s.out_size());
    const float* xp = channels_first(x.data<float>(), s.n, s.c, s.in_size());
    const float* wp = channels_first(w.data<float>(), s.k, s.c / s.group, s.taps());
    float* dwp = dw->mutable_data<float>();
    volume_backward_weights(kernels(), s, xp, dyp, dw_first ? dw_first : dwp, work, parallel());
    if (dw_first) to_channels_last(s.k, s.c / s.group, s.taps(), dw_first, dwp, parallel());
    if (db) {
      kernels().channel_sums({s.n, s.k, s.out_size()}, dyp, db->mutable_data<float>(), parallel());
    }
    if (dx) {
      float* dxp = dx->mutable_data<float>();
      volume_backward_data(kernels(), s, dyp, wp, dx_first ? dx_first : dxp, work, parallel());
      if (dx_first) to_channels_last(s.n, s.c, s.in_size(), dx_first, dxp, parallel());
    }
  }

  static int outputs_of(const OperatorContext& context) {
    return static_cast<int>(context.def.output.size());
  }
  const bool no_bias_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Conv, ConvOperator)
REGISTER_CPU_OPERATOR(ConvRelu, ConvReluOperator)
REGISTER_CPU_OPERATOR(ConvGradient, ConvGradientOperator)
REGISTER_CPU_OPERATOR(Conv1D, ConvOperator)
REGISTER_CPU_OPERATOR(Conv1DGradient, ConvGradientOperator)
REGISTER_CPU_OPERATOR(Conv2D, ConvOperator)
REGISTER_CPU_OPERATOR(Conv2DGradient, ConvGradientOperator)
REGISTER_CPU_OPERATOR(Conv3D, ConvOperator)
REGISTER_CPU_OPERATOR(Conv3DGradient, ConvGradientOperator)

}  // namespace caffe2
