// ExpandDepthwise: a pointwise convolution, a depthwise one of its result and perhaps a pointwise
// one of that, strip by strip.
#include <optional>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/packed_weights.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

using kernels::ConvAlgorithm;
using kernels::ConvShape;

enum Input { kX, kExpandFilter, kExpandBias, kFilter, kBias, kProjectFilter, kProjectBias };

class ExpandDepthwiseOperator : public Operator {
 public:
  explicit ExpandDepthwiseOperator(const OperatorContext& context)
      : Operator(context),
        window_(args()),
        expanded_{args().real("min"), args().real("max")},
        filtered_{args().real("filtered_min"), args().real("filtered_max")},
        expand_(context, kExpandFilter),
        depthwise_(context, kFilter) {
    if (context.def.input.size() > kProjectFilter) project_.emplace(context, kProjectFilter);
  }
  unsigned fuses() const override { return project_ ? kFusesSum | kFusesBounds : kFusesBounds; }
  bool takes_stored() const override { return true; }
  bool only_reads(int i) const override { return i == 0; }
  bool chooses_layout() const override { return true; }

 protected:
  void run() override {
    for (int i = kExpandFilter; i < inputs(); i++) plain_input(i);
    kernels::ExpandDepthwise f = layers();
    const ConvShape& s = f.depthwise.shape;
    const int64_t size[2] = {s.oh(), s.ow()}, plane = size[0] * size[1];
    const int64_t channels = project_ ? f.project.shape.k : s.k;
    const Layout blocked{kernels().vector_width, false};
    const bool blocked_x = input(kX).layout() == blocked, blocked_y = prefers_blocked();
    const Tensor& x = blocked_x ? input(kX) : plain_input(kX);
    Tensor& y = output(0, activation_shape(x, false, channels, size), DataType::kFloat,
                       blocked_y ? blocked : Layout());
    if (const Tensor* residual = fused_residual()) {
      const Layout layout = residual->layout();
      if (residual->type() != DataType::kFloat || !(residual->shape() == y.shape()) ||
          !(layout == blocked || layout.plain())) {
        decline_fusion();
      }
      f.add = layout == blocked ? residual->stored()
                                : to_blocked(residual->data<float>(), s.n, channels, plane);
    }
    if (y.size() == 0) return;
    pack(expand_, kExpandFilter, ConvAlgorithm::kDirect, f.expand);
    pack(depthwise_, kFilter, ConvAlgorithm::kDepthwise, f.depthwise);
    if (project_) pack(*project_, kProjectFilter, ConvAlgorithm::kDirect, f.project);
    void* work = scratch(kernels().expand_depthwise_scratch_bytes(f, parallel().threads));
    const float* in =
        blocked_x ? x.stored() : to_blocked(x.data<float>(), s.n, f.expand.shape.c, s.h * s.w);
    float* out = y.mutable_stored();
    float* to = blocked_y ? out : blocked_buffer(s.n, channels, plane);
    kernels().expand_depthwise(f, in, to, work, parallel());
    if (!blocked_y) kernels().from_blocked(s.n, channels, plane, to, out, parallel());
  }

 private:
  // Shapes and bounds, from inputs that are found to fit.
  kernels::ExpandDepthwise layers() const {
    const Tensor &x = input(kX), &filter = input(kFilter);
    CAFFE2_ENFORCE(x.rank() == 4, describe_input(kX), " has shape ", x.shape().text(),
                   "; 4 dimensions are needed");
    CAFFE2_ENFORCE(inputs() != kProjectBias, describe_input(kProjectFilter),
                   " is given without a bias");
    const Activations in(x, false, describe_input(kX));
    const int64_t k = require_pointwise(kExpandFilter, in.c);
    const Window window = window_.resolve(4, in.size, describe_input(kX));
    const Shape needed{k, 1, window.kernel[0], window.kernel[1]};
    CAFFE2_ENFORCE(filter.shape() == needed, describe_input(kFilter), " has shape ",
                   filter.shape().text(), "; ", needed.text(), " is needed");
    kernels::ExpandDepthwise f;
    f.expand.shape = pointwise(in.n, in.c, in.size[0], in.size[1], k);
    f.expand.bias = bias(kExpandBias, k);
    ConvShape& s = f.depthwise.shape;
    s.n = in.n, s.c = s.k = s.group = k, s.h = in.size[0], s.w = in.size[1];
    s.kh = window.kernel[0], s.kw = window.kernel[1];
    s.stride_h = window.stride[0], s.stride_w = window.stride[1];
    s.dilation_h = window.dilation[0], s.dilation_w = window.dilation[1];
    s.pad_t = window.pad_begin[0], s.pad_l = window.pad_begin[1];
    s.pad_b = window.reach_end[0], s.pad_r = window.reach_end[1];
    require_countable(s, describe_input(kX));
    f.depthwise.bias = bias(kBias, k);
    f.expand.bounds = expanded_;
    f.depthwise.bounds = project_ ? filtered_ : fused_bounds();
    if (project_) {
      const int64_t channels = require_pointwise(kProjectFilter, k);
      f.project.shape = pointwise(in.n, k, s.oh(), s.ow(), channels);
      f.project.bias = bias(kProjectBias, channels);
      f.project.bounds = fused_bounds();
    }
    return f;
  }

  // The output channels of a filter that takes c channels.
  int64_t require_pointwise(int i, int64_t c) const {
    const Tensor& filter = input(i);
    CAFFE2_ENFORCE(filter.rank() == 4 && filter.dim(0) > 0 && filter.dim(1) == c &&
                       filter.dim(2) == 1 && filter.dim(3) == 1,
                   describe_input(i), " has shape ", filter.shape().text(), "; (channels, ", c,
                   ", 1, 1) is needed");
    return filter.dim(0);
  }
  static ConvShape pointwise(int64_t n, int64_t c, int64_t h, int64_t w, int64_t k) {
    ConvShape s;
    s.n = n, s.c = c, s.h = h, s.w = w, s.k = k;
    return s;
  }
  const float* bias(int i, int64_t k) const {
    CAFFE2_ENFORCE(input(i).shape() == Shape{k}, describe_input(i), " has shape ",
                   input(i).shape().text(), "; (", k, ",) is needed");
    return input(i).data<float>();
  }

  void pack(PackedFilter& packed, int i, ConvAlgorithm algorithm,
            kernels::ExpandDepthwise::Layer& layer) {
    layer.weights = packed.get(input(i), may_release(i), layer.shape, algorithm);
  }

  float* blocked_buffer(int64_t n, int64_t c, int64_t plane) {
    return static_cast<float*>(scratch(kernels().blocked_bytes(n, c, plane)));
  }
  const float* to_blocked(const float* x, int64_t n, int64_t c, int64_t plane) {
    float* copy = blocked_buffer(n, c, plane);
    kernels().to_blocked(n, c, plane, x, copy, parallel());
    return copy;
  }

  const WindowArguments window_;
  const kernels::Bounds expanded_, filtered_;
  PackedFilter expand_, depthwise_;
  std::optional<PackedFilter> project_;
};

}  // namespace

REGISTER_CPU_OPERATOR(ExpandDepthwise, ExpandDepthwiseOperator)

}  // namespace caffe2
