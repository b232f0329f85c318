// ExpandDepthwise: a pointwise convolution and a depthwise one of its result, strip by strip.
#include <memory>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

using kernels::ConvAlgorithm;
using kernels::ConvShape;

enum Input { kX, kExpandFilter, kExpandBias, kFilter, kBias };

// A filter as a kernel reads it, made anew when another storage or version is bound.
class PackedFilter {
 public:
  template <class Pack>
  const float* get(const Tensor& filter, const std::shared_ptr<Allocator>& allocator, size_t bytes,
                   const Pack& pack) {
    const auto& storage = filter.storage();
    if (!packed_ || source_.lock() != storage || storage->version() != version_ ||
        !(filter.shape() == shape_)) {
      source_.reset();
      packed_ = std::make_unique<Storage>(allocator, bytes);
      pack(filter.data<float>(), static_cast<float*>(packed_->data()));
      storage->drop_pages();
      source_ = storage;
      version_ = storage->version();
      shape_ = filter.shape();
    }
    return static_cast<const float*>(packed_->data());
  }

 private:
  std::unique_ptr<Storage> packed_;
  std::weak_ptr<Storage> source_;
  uint64_t version_ = 0;
  Shape shape_;
};

class ExpandDepthwiseOperator : public Operator {
 public:
  explicit ExpandDepthwiseOperator(const OperatorContext& context)
      : Operator(context), window_(args()), between_{args().real("min"), args().real("max")} {}
  unsigned fuses() const override { return kFusesBounds; }
  bool takes_stored() const override { return true; }
  bool chooses_layout() const override { return true; }

 protected:
  void run() override {
    kernels::ExpandDepthwise f = shapes();
    const ConvShape& s = f.depthwise;
    f.between = between_;
    f.bounds = fused_bounds();
    const int64_t size[2] = {s.oh(), s.ow()}, plane = size[0] * size[1];
    const Layout blocked{kernels().vector_width, false};
    const bool blocked_x = input(kX).layout() == blocked, blocked_y = prefers_blocked();
    const Tensor& x = blocked_x ? input(kX) : plain_input(kX);
    const Tensor &expand_filter = plain_input(kExpandFilter), &filter = plain_input(kFilter);
    f.expand_bias = plain_input(kExpandBias).data<float>();
    f.bias = plain_input(kBias).data<float>();
    Tensor& y = output(0, activation_shape(x, false, s.k, size), DataType::kFloat,
                       blocked_y ? blocked : Layout());
    if (y.size() == 0) return;
    const float* expand_packed = pack(expand_, expand_filter, f.expand, ConvAlgorithm::kDirect);
    const float* packed = pack(depthwise_, filter, s, ConvAlgorithm::kDepthwise);
    void* work = scratch(kernels().expand_depthwise_scratch_bytes(f, parallel().threads));
    const float* in = blocked_x ? x.stored() : to_blocked(x, f.expand);
    float* out = y.mutable_stored();
    float* to = blocked_y ? out : blocked_buffer(s.n, s.k, plane);
    kernels().expand_depthwise(f, in, expand_packed, packed, to, work, parallel());
    if (!blocked_y) kernels().from_blocked(s.n, s.k, plane, to, out, parallel());
  }

 private:
  kernels::ExpandDepthwise shapes() const {
    const Tensor &x = input(kX), &expand = input(kExpandFilter), &filter = input(kFilter);
    CAFFE2_ENFORCE(x.rank() == 4, describe_input(kX), " has shape ", x.shape().text(),
                   "; 4 dimensions are needed");
    const Activations in(x, false, describe_input(kX));
    CAFFE2_ENFORCE(expand.rank() == 4 && expand.dim(0) > 0 && expand.dim(1) == in.c &&
                       expand.dim(2) == 1 && expand.dim(3) == 1,
                   describe_input(kExpandFilter), " has shape ", expand.shape().text(),
                   "; (channels, ", in.c, ", 1, 1) is needed");
    const int64_t k = expand.dim(0);
    const Window window = window_.resolve(4, in.size, describe_input(kX));
    const Shape needed{k, 1, window.kernel[0], window.kernel[1]};
    CAFFE2_ENFORCE(filter.shape() == needed, describe_input(kFilter), " has shape ",
                   filter.shape().text(), "; ", needed.text(), " is needed");
    for (const int bias : {kExpandBias, kBias}) {
      CAFFE2_ENFORCE(input(bias).shape() == Shape{k}, describe_input(bias), " has shape ",
                     input(bias).shape().text(), "; (", k, ",) is needed");
    }
    kernels::ExpandDepthwise f;
    f.expand.n = in.n, f.expand.c = in.c, f.expand.h = in.size[0], f.expand.w = in.size[1];
    f.expand.k = k;
    ConvShape& s = f.depthwise;
    s.n = in.n, s.c = s.k = s.group = k, s.h = in.size[0], s.w = in.size[1];
    s.kh = window.kernel[0], s.kw = window.kernel[1];
    s.stride_h = window.stride[0], s.stride_w = window.stride[1];
    s.dilation_h = window.dilation[0], s.dilation_w = window.dilation[1];
    s.pad_t = window.pad_begin[0], s.pad_l = window.pad_begin[1];
    s.pad_b = window.reach_end[0], s.pad_r = window.reach_end[1];
    return f;
  }

  const float* pack(PackedFilter& packed, const Tensor& filter, const ConvShape& s,
                    ConvAlgorithm algorithm) {
    return packed.get(filter, engine().allocator(), kernels().conv_packed_bytes(s, algorithm),
                      [&](const float* weights, float* out) {
                        kernels().conv_pack(s, algorithm, weights, out, parallel());
                      });
  }

  float* blocked_buffer(int64_t n, int64_t c, int64_t plane) {
    return static_cast<float*>(scratch(kernels().blocked_bytes(n, c, plane)));
  }

  const float* to_blocked(const Tensor& x, const ConvShape& s) {
    float* copy = blocked_buffer(s.n, s.c, s.h * s.w);
    kernels().to_blocked(s.n, s.c, s.h * s.w, x.data<float>(), copy, parallel());
    return copy;
  }

  const WindowArguments window_;
  const kernels::Bounds between_;
  PackedFilter expand_, depthwise_;
};

}  // namespace

REGISTER_CPU_OPERATOR(ExpandDepthwise, ExpandDepthwiseOperator)

}  // namespace caffe2
