// SpatialBN, statistics of channels, AffineChannel, with gradients.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/registry.h"
#include "operators/channels.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

using kernels::ChannelShape;

class BatchNormBase : public ChannelOperator {
 public:
  explicit BatchNormBase(const OperatorContext& context)
      : ChannelOperator(context),
        is_test_(args().boolean("is_test")),
        epsilon_(args().real("epsilon")),
        parts_(is_test_ ? 1 : args().integer("num_batches")) {
    const size_t inputs = context.def.input.size();
    CAFFE2_ENFORCE(inputs != 6, "it has 6 inputs; the sums are given together or not at all");
    CAFFE2_ENFORCE(parts_ == 1 || inputs == 7, "it has ", inputs,
                   " inputs; with num_batches=", parts_, " the sums are needed, too");
  }

 protected:
  float inverse_std(float variance) const { return 1 / std::sqrt(variance + epsilon_); }

  const bool is_test_;
  const float epsilon_;
  const int64_t parts_;
};

// Inputs X, scale, bias, mean, var, sums, sumsq.
class SpatialBNOperator : public BatchNormBase {
 public:
  explicit SpatialBNOperator(const OperatorContext& context)
      : BatchNormBase(context), momentum_(args().real("momentum")) {
    const size_t needed = is_test_ ? 1 : 5;
    CAFFE2_ENFORCE(context.def.output.size() == needed, "it has ", context.def.output.size(),
                   " outputs; with is_test=", is_test_, " it has ", needed);
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    const ChannelShape s = channel_shape(0);
    for (int i = 1; i < inputs(); i++) require_channels(i, s);
    float* factor = buffer(s.channels);
    const float *scale = input(1).data<float>(), *bias = input(2).data<float>();
    const float *mean = input(3).data<float>(), *var = input(4).data<float>();
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    if (is_test_) {
      for (int64_t c = 0; c < s.channels; c++) factor[c] = scale[c] * inverse_std(var[c]);
      kernels().channel_affine(s, x.data<float>(), mean, factor, bias, y.mutable_data<float>(),
                               parallel());
      return;
    }
    float* saved[4];
    for (int i = 0; i < 4; i++) {
      saved[i] = output(1 + i, {s.channels}, DataType::kFloat).mutable_data<float>();
    }
    const auto [new_mean, new_var, used_mean, inverse] = saved;
    if (x.size() == 0) {
      std::copy_n(mean, s.channels, new_mean);
      std::copy_n(var, s.channels, new_var);
      std::fill_n(used_mean, s.channels, 0.f);
      std::fill_n(inverse, s.channels, 0.f);
      return;
    }
    const double count = static_cast<double>(s.outer * s.inner) * static_cast<double>(parts_);
    moments(s, count, used_mean, inverse);
    const double unbiased = count / std::max(count - 1, 1.0);
    for (int64_t c = 0; c < s.channels; c++) {
      const double variance = inverse[c];
      new_mean[c] = momentum_ * mean[c] + (1 - momentum_) * used_mean[c];
      new_var[c] = static_cast<float>(momentum_ * static_cast<double>(var[c]) +
                                      (1 - momentum_) * variance * unbiased);
      inverse[c] = inverse_std(inverse[c]);
      factor[c] = scale[c] * inverse[c];
    }
    kernels().channel_affine(s, x.data<float>(), used_mean, factor, bias, y.mutable_data<float>(),
                             parallel());
  }

 private:
  void moments(const ChannelShape& s, double count, float* mean, float* variance) {
    if (parts_ > 1) {
      const float *sums = input(5).data<float>(), *squares = input(6).data<float>();
      for (int64_t c = 0; c < s.channels; c++) {
        const double m = sums[c] / count;
        mean[c] = static_cast<float>(m);
        variance[c] = static_cast<float>(std::max(squares[c] / count - m * m, 0.0));
      }
      return;
    }
    const float* x = input(0).data<float>();
    kernels().channel_sums(s, x, mean, parallel());
    for (int64_t c = 0; c < s.channels; c++) mean[c] = static_cast<float>(mean[c] / count);
    kernels().channel_products(s, x, mean, x, mean, variance, parallel());
    for (int64_t c = 0; c < s.channels; c++) variance[c] = static_cast<float>(variance[c] / count);
  }

  const float momentum_;
};

// Inputs X, scale, dY, saved mean, saved inverse, sum of scale's and of bias' gradient.
class SpatialBNGradientOperator : public BatchNormBase {
 public:
  using BatchNormBase::BatchNormBase;

 protected:
  void run() override {
    const Tensor &x = input(0), &dy = input(2);
    const ChannelShape s = channel_shape(0);
    for (int i = 1; i < inputs(); i++) {
      if (i != 2) require_channels(i, s);
    }
    require_same_shape(describe_input(2), dy, describe_input(0), x);
    float *inverse = buffer(s.channels), *factor = buffer(s.channels);
    float *by_x = buffer(s.channels), *rest = buffer(s.channels);
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    float* dscale = output(1, {s.channels}, DataType::kFloat).mutable_data<float>();
    float* dbias = output(2, {s.channels}, DataType::kFloat).mutable_data<float>();
    const float *in = x.data<float>(), *grad = dy.data<float>();
    const float *scale = input(1).data<float>(), *mean = input(3).data<float>();
    for (int64_t c = 0; c < s.channels; c++) {
      const float saved = input(4).data<float>()[c];
      inverse[c] = is_test_ ? inverse_std(saved) : saved;
    }
    if (x.size() == 0) {
      std::fill_n(dscale, s.channels, 0.f);
      std::fill_n(dbias, s.channels, 0.f);
    } else if (parts_ > 1) {
      const float *scale_sum = input(5).data<float>(), *bias_sum = input(6).data<float>();
      for (int64_t c = 0; c < s.channels; c++) {
        dscale[c] = scale_sum[c] / static_cast<float>(parts_);
        dbias[c] = bias_sum[c] / static_cast<float>(parts_);
      }
    } else {
      kernels().channel_sums(s, grad, dbias, parallel());
      kernels().channel_products(s, grad, nullptr, in, mean, dscale, parallel());
      for (int64_t c = 0; c < s.channels; c++) dscale[c] *= inverse[c];
    }
    float* out = dx.mutable_data<float>();
    for (int64_t c = 0; c < s.channels; c++) factor[c] = scale[c] * inverse[c];
    if (is_test_) {
      kernels().channel_affine(s, grad, nullptr, factor, nullptr, out, parallel());
      return;
    }
    const float count = static_cast<float>(std::max<int64_t>(s.outer * s.inner, 1));
    for (int64_t c = 0; c < s.channels; c++) {
      by_x[c] = -factor[c] * inverse[c] * dscale[c] / count;
      rest[c] = -factor[c] * dbias[c] / count;
    }
    kernels().channel_combine(s, grad, factor, in, mean, by_x, rest, out, parallel());
  }
};

class ChannelStatsOperator : public ChannelOperator {
 public:
  using ChannelOperator::ChannelOperator;

 protected:
  void run() override {
    const float* x = input(0).data<float>();
    const ChannelShape s = channel_shape(0);
    float* sum = output(0, {s.channels}, DataType::kFloat).mutable_data<float>();
    float* squares = output(1, {s.channels}, DataType::kFloat).mutable_data<float>();
    kernels().channel_sums(s, x, sum, parallel());
    kernels().channel_products(s, x, nullptr, x, nullptr, squares, parallel());
  }
};

// Inputs X, mean, inverse std, dY.
class ChannelBackpropStatsOperator : public ChannelOperator {
 public:
  using ChannelOperator::ChannelOperator;

 protected:
  void run() override {
    const ChannelShape s = channel_shape(0);
    require_channels(1, s);
    require_channels(2, s);
    require_same_shape(describe_input(3), input(3), describe_input(0), input(0));
    const float *mean = input(1).data<float>(), *inverse = input(2).data<float>();
    const float* dy = input(3).data<float>();
    float* dscale = output(0, {s.channels}, DataType::kFloat).mutable_data<float>();
    float* dbias = output(1, {s.channels}, DataType::kFloat).mutable_data<float>();
    kernels().channel_sums(s, dy, dbias, parallel());
    kernels().channel_products(s, dy, nullptr, input(0).data<float>(), mean, dscale, parallel());
    for (int64_t c = 0; c < s.channels; c++) dscale[c] *= inverse[c];
  }
};

class BatchMomentsOperator : public ChannelOperator {
 public:
  using ChannelOperator::ChannelOperator;

 protected:
  void run() override {
    const float* x = input(0).data<float>();
    const ChannelShape s = channel_shape(0);
    CAFFE2_ENFORCE(input(0).size() > 0, describe_input(0), " has shape ", input(0).shape().text(),
                   "; it must not be empty");
    float* mean = output(0, {s.channels}, DataType::kFloat).mutable_data<float>();
    float* squares = output(1, {s.channels}, DataType::kFloat).mutable_data<float>();
    kernels().channel_sums(s, x, mean, parallel());
    kernels().channel_products(s, x, nullptr, x, nullptr, squares, parallel());
    const float count = static_cast<float>(s.outer * s.inner);
    for (int64_t c = 0; c < s.channels; c++) {
      mean[c] /= count;
      squares[c] /= count;
    }
  }
};

// Inputs dmu, dvar, X.
class BatchMomentsGradientOperator : public ChannelOperator {
 public:
  using ChannelOperator::ChannelOperator;

 protected:
  void run() override {
    const ChannelShape s = channel_shape(2);
    require_channels(0, s);
    require_channels(1, s);
    const float *dmu = input(0).data<float>(), *dvar = input(1).data<float>();
    const float count = static_cast<float>(std::max<int64_t>(s.outer * s.inner, 1));
    float *scale = buffer(s.channels), *bias = buffer(s.channels);
    Tensor& dx = output(0, input(2).shape(), DataType::kFloat);
    for (int64_t c = 0; c < s.channels; c++) {
      scale[c] = 2 * dvar[c] / count;
      bias[c] = dmu[c] / count;
    }
    kernels().channel_affine(s, input(2).data<float>(), nullptr, scale, bias,
                             dx.mutable_data<float>(), parallel());
  }
};

class AffineChannelOperator : public ChannelOperator {
 public:
  explicit AffineChannelOperator(const OperatorContext& context) : ChannelOperator(context) {
    CAFFE2_ENFORCE(!args().boolean("is_learnable") || context.def.input[0] != context.def.output[0],
                   "output 0 (Y) cannot overwrite input 0 (X) with is_learnable=1");
  }

 protected:
  void run() override {
    const ChannelShape s = channel_shape(0);
    require_channels(1, s);
    require_channels(2, s);
    Tensor& y = output(0, input(0).shape(), DataType::kFloat);
    kernels().channel_affine(s, input(0).data<float>(), nullptr, input(1).data<float>(),
                             input(2).data<float>(), y.mutable_data<float>(), parallel());
  }
};

// Inputs dY, scale; with is_learnable dY, X, scale.
class AffineChannelGradientOperator : public ChannelOperator {
 public:
  explicit AffineChannelGradientOperator(const OperatorContext& context)
      : ChannelOperator(context), is_learnable_(args().boolean("is_learnable")) {
    const size_t inputs = is_learnable_ ? 3 : 2, outputs = is_learnable_ ? 3 : 1;
    CAFFE2_ENFORCE(context.def.input.size() == inputs && context.def.output.size() == outputs,
                   "it has ", context.def.input.size(), " inputs and ", context.def.output.size(),
                   " outputs; with is_learnable=", is_learnable_, " it has ", inputs, " and ",
                   outputs);
  }

 protected:
  void run() override {
    const Tensor& dy = input(0);
    const ChannelShape s = channel_shape(0);
    const int scale = is_learnable_ ? 2 : 1;
    require_channels(scale, s);
    if (is_learnable_) require_same_shape(describe_input(1), input(1), describe_input(0), dy);
    Tensor& dx = output(0, dy.shape(), DataType::kFloat);
    if (is_learnable_) {
      float* dscale = output(1, {s.channels}, DataType::kFloat).mutable_data<float>();
      float* dbias = output(2, {s.channels}, DataType::kFloat).mutable_data<float>();
      kernels().channel_products(s, dy.data<float>(), nullptr, input(1).data<float>(), nullptr,
                                 dscale, parallel());
      kernels().channel_sums(s, dy.data<float>(), dbias, parallel());
    }
    kernels().channel_affine(s, dy.data<float>(), nullptr, input(scale).data<float>(), nullptr,
                             dx.mutable_data<float>(), parallel());
  }

 private:
  const bool is_learnable_;
};

}  // namespace

REGISTER_CPU_OPERATOR(SpatialBN, SpatialBNOperator)
REGISTER_CPU_OPERATOR(SpatialBNGradient, SpatialBNGradientOperator)
REGISTER_CPU_OPERATOR(ChannelStats, ChannelStatsOperator)
REGISTER_CPU_OPERATOR(ChannelBackpropStats, ChannelBackpropStatsOperator)
REGISTER_CPU_OPERATOR(BatchMoments, BatchMomentsOperator)
REGISTER_CPU_OPERATOR(BatchMomentsGradient, BatchMomentsGradientOperator)
REGISTER_CPU_OPERATOR(AffineChannel, AffineChannelOperator)
REGISTER_CPU_OPERATOR(AffineChannelGradient, AffineChannelGradientOperator)

}  // namespace caffe2
