// LRN and its gradient.
#include <algorithm>

#include "core/registry.h"
#include "operators/channels.h"
#include "operators/parallel.h"
#include "operators/shapes.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

class LRNBase : public ChannelOperator {
 public:
  explicit LRNBase(const OperatorContext& context)
      : ChannelOperator(context),
        size_(args().integer("size")),
        alpha_(args().real("alpha")),
        beta_(args().real("beta")),
        bias_(args().real("bias")) {
    CAFFE2_ENFORCE(size_ > 0 || alpha_ == 0,
                   "argument 'size' is 0; at least 1 is needed, alpha is ", alpha_);
  }

 protected:
  struct Sizes {
    int64_t n, c, points;
    int64_t size() const { return n * c * points; }
  };
  Sizes sizes() const {
    const kernels::ChannelShape s = channel_shape(0);
    const Shape& x = input(0).shape();
    return {x[0], s.channels, channels_last() ? x.product(1, x.rank() - 1) : s.inner};
  }

  float* buffer_if_last(const Sizes& s) { return channels_last() ? buffer(s.size()) : nullptr; }
  const float* first(int i, const Sizes& s, float* copy) {
    const float* x = input(i).data<float>();
    if (!copy) return x;
    to_channels_first(s.n, s.c, s.points, x, copy, parallel());
    return copy;
  }

  static void multiply(int64_t n, const float* a, const float* b, float* product) {
    for (int64_t i = 0; i < n; i++) product[i] = a[i] * b[i];
  }

  // sums = for each channel the sum of x over those from `before` ones before it to `after` ones
  // behind it. x and sums: channels first.
  void window_sums(const Sizes& s, int64_t before, int64_t after, const float* x, float* sums) {
    for_ranges(parallel(), s.n * s.c, rows_per_range(s.points), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        const int64_t c = plane % s.c, image = plane - c;
        float* out = sums + plane * s.points;
        std::fill_n(out, s.points, 0.f);
        const int64_t last = std::min(s.c - 1, c + after);
        for (int64_t other = std::max<int64_t>(0, c - before); other <= last; other++) {
          const float* in = x + (image + other) * s.points;
          for (int64_t i = 0; i < s.points; i++) out[i] += in[i];
        }
      }
    });
  }

  // scale and scale^-beta, channels first; work: as many floats.
  void scales(const Sizes& s, const float* x, float* scale, float* power, float* work) {
    if (size_ > 0) {
      multiply(s.size(), x, x, work);
      window_sums(s, (size_ - 1) / 2, size_ / 2, work, scale);
      const float factor = alpha_ / static_cast<float>(size_);
      for (int64_t i = 0; i < s.size(); i++) scale[i] = bias_ + factor * scale[i];
    } else {
      std::fill_n(scale, s.size(), bias_);
    }
    kernels().log(s.size(), scale, power, parallel());
    kernels().scale(s.size(), -beta_, power, power, parallel());
    kernels().exp(s.size(), power, power, parallel());
  }

  const int64_t size_;
  const float alpha_, beta_, bias_;
};

class LRNOperator : public LRNBase {
 public:
  using LRNBase::LRNBase;

 protected:
  void run() override {
    const Shape& shape = input(0).shape();
    const Sizes s = sizes();
    float *copy = buffer_if_last(s), *power = buffer(s.size()), *work = buffer(s.size());
    float* scale = channels_last() || outputs() == 1 ? buffer(s.size()) : nullptr;
    Tensor& y = output(0, shape, DataType::kFloat);
    Tensor* scale_output = outputs() == 2 ? &output(1, shape, DataType::kFloat) : nullptr;
    if (!scale) scale = scale_output->mutable_data<float>();
    const float* x = first(0, s, copy);
    scales(s, x, scale, power, work);
    if (!channels_last()) {
      multiply(s.size(), x, power, y.mutable_data<float>());
      return;
    }
    multiply(s.size(), x, power, work);
    to_channels_last(s.n, s.c, s.points, work, y.mutable_data<float>(), parallel());
    if (scale_output) {
      to_channels_last(s.n, s.c, s.points, scale, scale_output->mutable_data<float>(), parallel());
    }
  }
};

// Inputs X, Y, dY.
class LRNGradientOperator : public LRNBase {
 public:
  using LRNBase::LRNBase;

 protected:
  void run() override {
    const Sizes s = sizes();
    for (const int i : {1, 2}) {
      require_same_shape(describe_input(i), input(i), describe_input(0), input(0));
    }
    float* copies[3];
    for (float*& copy : copies) copy = buffer_if_last(s);
    float *scale = buffer(s.size()), *power = buffer(s.size()), *work = buffer(s.size());
    float* result = buffer_if_last(s);
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    float* out = result ? result : dx.mutable_data<float>();
    const float *x = first(0, s, copies[0]), *y = first(1, s, copies[1]);
    const float* dy = first(2, s, copies[2]);
    scales(s, x, scale, power, work);
    multiply(s.size(), dy, power, out);
    if (size_ > 0) {
      for (int64_t i = 0; i < s.size(); i++) work[i] = dy[i] * y[i] / scale[i];
      window_sums(s, size_ / 2, (size_ - 1) / 2, work, scale);
      const float factor = 2 * alpha_ * beta_ / static_cast<float>(size_);
      for (int64_t i = 0; i < s.size(); i++) out[i] -= factor * x[i] * scale[i];
    }
    if (result) to_channels_last(s.n, s.c, s.points, result, dx.mutable_data<float>(), parallel());
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(LRN, LRNOperator)
REGISTER_CPU_OPERATOR(LRNGradient, LRNGradientOperator)

}  // namespace caffe2
