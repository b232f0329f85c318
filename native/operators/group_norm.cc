// GroupNorm and InstanceNorm, with gradients: each group of channels of a picture is normalized by
// itself; in InstanceNorm a group is one channel. Work is done channels first.
#include <cmath>

#include "core/registry.h"
#include "operators/channels.h"
#include "operators/shapes.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

using kernels::ChannelShape;

class GroupNormBase : public ChannelOperator {
 public:
  // group: 0 for as many as there are channels.
  GroupNormBase(const OperatorContext& context, int64_t group)
      : ChannelOperator(context), group_(group), epsilon_(args().real("epsilon")) {}

 protected:
  struct Sizes {
    int64_t n, c, points, group;
    int64_t planes() const { return n * c; }
    int64_t groups() const { return n * group; }
    int64_t size() const { return n * c * points; }
    ChannelShape by_group() const { return {1, groups(), c / group * points}; }
    ChannelShape by_plane() const { return {1, planes(), points}; }
    // The group that a plane (picture and channel) belongs to.
    int64_t group_of(int64_t plane) const { return plane / (c / group); }
  };

  Sizes sizes(int i) const {
    const Tensor& x = input(i);
    const ChannelShape s = channel_shape(i);
    const int64_t points = channels_last() ? x.shape().product(1, x.rank() - 1) : s.inner;
    CAFFE2_ENFORCE(s.channels > 0 && points > 0, describe_input(i), " has shape ", x.shape().text(),
                   "; only the batch may be empty");
    const int64_t group = group_ == 0 ? s.channels : group_;
    CAFFE2_ENFORCE(s.channels % group == 0, describe_input(i), " has ", s.channels,
                   " channels; a multiple of group=", group, " is needed");
    return {x.dim(0), s.channels, points, group};
  }

  void require_moments(int i, const Sizes& s) const {
    const Shape needed{s.n, s.group};
    CAFFE2_ENFORCE(input(i).shape() == needed, describe_input(i), " has shape ",
                   input(i).shape().text(), "; ", needed.text(), " is needed");
  }

  const float* first(const Tensor& x, const Sizes& s, float* copy) {
    if (!copy) return x.data<float>();
    to_channels_first(s.n, s.c, s.points, x.data<float>(), copy, parallel());
    return copy;
  }
  float* buffer_if_last(const Sizes& s) { return channels_last() ? buffer(s.size()) : nullptr; }

  void mean_of_groups(const Sizes& s, const float* x, float* mean) {
    const ChannelShape groups = s.by_group();
    kernels().channel_sums(groups, x, mean, parallel());
    for (int64_t g = 0; g < s.groups(); g++) mean[g] /= static_cast<float>(groups.inner);
  }
  void inverse_of_groups(const Sizes& s, const float* x, const float* mean, float* inverse) {
    const ChannelShape groups = s.by_group();
    kernels().channel_products(groups, x, mean, x, mean, inverse, parallel());
    for (int64_t g = 0; g < s.groups(); g++) {
      inverse[g] = 1 / std::sqrt(inverse[g] / static_cast<float>(groups.inner) + epsilon_);
    }
  }

  // work: 5 * planes floats.
  void gradient(const Sizes& s, const float* x, const float* scale, const float* dy,
                const float* mean, const float* inverse, float* work, float* dx, float* dscale,
                float* dbias) {
    const int64_t planes = s.planes();
    float *center = work, *along = center + planes, *sum = along + planes, *factor = sum + planes;
    float* by_x = factor + planes;
    for (int64_t p = 0; p < planes; p++) center[p] = mean[s.group_of(p)];
    kernels().channel_products(s.by_plane(), dy, nullptr, x, center, along, parallel());
    kernels().channel_sums(s.by_plane(), dy, sum, parallel());
    for (int64_t c = 0; c < s.c; c++) {
      double scale_sum = 0, bias_sum = 0;
      for (int64_t p = c; p < planes; p += s.c) {
        scale_sum += static_cast<double>(along[p]) * inverse[s.group_of(p)];
        bias_sum += sum[p];
      }
      dscale[c] = static_cast<float>(scale_sum);
      dbias[c] = static_cast<float>(bias_sum);
    }
    const int64_t members = s.c / s.group;
    for (int64_t g = 0; g < s.groups(); g++) {
      double scale_sum = 0, bias_sum = 0;
      for (int64_t p = g * members; p < (g + 1) * members; p++) {
        scale_sum += static_cast<double>(along[p]) * scale[p % s.c];
        bias_sum += static_cast<double>(sum[p]) * scale[p % s.c];
      }
      const double count = static_cast<double>(s.by_group().inner), r = inverse[g];
      for (int64_t p = g * members; p < (g + 1) * members; p++) {
        factor[p] = scale[p % s.c] * inverse[g];
        by_x[p] = static_cast<float>(-scale_sum * r * r * r / count);
        sum[p] = static_cast<float>(-bias_sum * r / count);
      }
    }
    kernels().channel_combine(s.by_plane(), dy, factor, x, center, by_x, sum, dx, parallel());
  }

 private:
  const int64_t group_;
  const float epsilon_;
};

// Inputs X, scale, bias; outputs Y, mean, inverse.
class GroupNormOperator : public GroupNormBase {
 public:
  explicit GroupNormOperator(const OperatorContext& context)
      : GroupNormOperator(context, Arguments(context.def, context.schema).integer("group")) {
    CAFFE2_ENFORCE(context.def.output.size() != 2, "it has 2 outputs; 1 or 3 are needed");
  }

 protected:
  GroupNormOperator(const OperatorContext& context, int64_t group)
      : GroupNormBase(context, group) {}

  void run() override {
    const Tensor& x = input(0);
    const Sizes s = sizes(0);
    require_channels(1, channel_shape(0));
    require_channels(2, channel_shape(0));
    float* planes = buffer(3 * s.planes());
    float *copy = buffer_if_last(s), *result = buffer_if_last(s);
    float* moments[2];
    for (int i = 0; i < 2; i++) moments[i] = outputs() > 1 + i ? nullptr : buffer(s.groups());
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    for (int i = 1; i < outputs(); i++) {
      moments[i - 1] = output(i, {s.n, s.group}, DataType::kFloat).mutable_data<float>();
    }
    const auto [mean, inverse] = moments;
    float *center = planes, *factor = center + s.planes(), *offset = factor + s.planes();
    const float *in = first(x, s, copy), *scale = input(1).data<float>();
    const float* bias = input(2).data<float>();
    float* out = y.mutable_data<float>();
    mean_of_groups(s, in, mean);
    inverse_of_groups(s, in, mean, inverse);
    for (int64_t p = 0; p < s.planes(); p++) {
      center[p] = mean[s.group_of(p)];
      factor[p] = scale[p % s.c] * inverse[s.group_of(p)];
      offset[p] = bias[p % s.c];
    }
    kernels().channel_affine(s.by_plane(), in, center, factor, offset, result ? result : out,
                             parallel());
    if (result) to_channels_last(s.n, s.c, s.points, result, out, parallel());
  }
};

class InstanceNormOperator : public GroupNormOperator {
 public:
  explicit InstanceNormOperator(const OperatorContext& context) : GroupNormOperator(context, 0) {}
};

// Where the inputs of a gradient are.
struct GradientInputs {
  int dy, x, scale, bias, mean, inverse;
};

class GroupNormGradientOperator : public GroupNormBase {
 public:
  explicit GroupNormGradientOperator(const OperatorContext& context)
      : GroupNormGradientOperator(context, Arguments(context.def, context.schema).integer("group"),
                                  {0, 1, 2, 3, 4, 5}) {}

 protected:
  GroupNormGradientOperator(const OperatorContext& context, int64_t group, GradientInputs at)
      : GroupNormBase(context, group), at_(at) {}

  void run() override {
    const Tensor &x = input(at_.x), &dy = input(at_.dy);
    const Sizes s = sizes(at_.x);
    require_channels(at_.scale, channel_shape(at_.x));
    require_channels(at_.bias, channel_shape(at_.x));
    require_same_shape(describe_input(at_.dy), dy, describe_input(at_.x), x);
    for (const int i : {at_.mean, at_.inverse}) {
      if (has_input(i)) require_moments(i, s);
    }
    float* work = buffer(5 * s.planes());
    float *x_copy = buffer_if_last(s), *dy_copy = buffer_if_last(s), *result = buffer_if_last(s);
    float* own_mean = has_input(at_.mean) ? nullptr : buffer(s.groups());
    float* own_inverse = has_input(at_.inverse) ? nullptr : buffer(s.groups());
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    float* dscale = output(1, {s.c}, DataType::kFloat).mutable_data<float>();
    float* dbias = output(2, {s.c}, DataType::kFloat).mutable_data<float>();
    const float *in = first(x, s, x_copy), *grad = first(dy, s, dy_copy);
    if (own_mean) mean_of_groups(s, in, own_mean);
    const float* mean = own_mean ? own_mean : input(at_.mean).data<float>();
    if (own_inverse) inverse_of_groups(s, in, mean, own_inverse);
    const float* inverse = own_inverse ? own_inverse : input(at_.inverse).data<float>();
    float* out = dx.mutable_data<float>();
    gradient(s, in, input(at_.scale).data<float>(), grad, mean, inverse, work,
             result ? result : out, dscale, dbias);
    if (result) to_channels_last(s.n, s.c, s.points, result, out, parallel());
  }

 private:
  const GradientInputs at_;
};

class InstanceNormGradientOperator : public GroupNormGradientOperator {
 public:
  explicit InstanceNormGradientOperator(const OperatorContext& context)
      : GroupNormGradientOperator(context, 0, {3, 0, 1, 2, 4, 5}) {}
};

}  // namespace

REGISTER_CPU_OPERATOR(GroupNorm, GroupNormOperator)
REGISTER_CPU_OPERATOR(GroupNormGradient, GroupNormGradientOperator)
REGISTER_CPU_OPERATOR(InstanceNorm, InstanceNormOperator)
REGISTER_CPU_OPERATOR(InstanceNormGradient, InstanceNormGradientOperator)

}  // namespace caffe2
