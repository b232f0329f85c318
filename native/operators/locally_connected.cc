// Locally connected layers: convolution with a filter of its own for each place of the output.
#include <algorithm>
#include <cstdint>

#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

class LocalBase : public Operator {
 public:
  explicit LocalBase(const OperatorContext& context)
      : Operator(context), window_(args()), group_(args().integer("group")) {}

 protected:
  // Axes: frames, height, width.
  struct Sizes {
    int64_t n, channels, outputs, group;
    bool channels_last;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];

    int64_t places() const { return out[0] * out[1] * out[2]; }
    int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
    int64_t in_size() const { return in[0] * in[1] * in[2]; }
    int64_t taken() const { return channels / group; }         // channels that a filter reads
    int64_t weights() const { return taken() * taps(); }       // of one output channel and place
    int64_t given() const { return outputs / group; }          // output channels of a group
    int64_t patches() const { return channels * taps() * n; }  // floats of one place

    int64_t x_at(int64_t image, int64_t c, int64_t pixel) const {
      return channels_last ? (image * in_size() + pixel) * channels + c
                           : (image * channels + c) * in_size() + pixel;
    }
    int64_t y_at(int64_t image, int64_t m, int64_t place) const {
      return channels_last ? (image * places() + place) * outputs + m
                           : (image * outputs + m) * places() + place;
    }
  };

  // Of X and filter, inputs 0 and 1, which fit together.
  Sizes sizes() const {
    const Tensor &x = input(0), &filter = input(1);
    const bool last = window_.channels_last();
    const Activations a(x, last, describe_input(0), 3);
    const Window w = window_.resolve(x.rank(), a.size, describe_input(0), a.frames);
    const int rank = x.rank() - 2;
    const int64_t outputs = filter.rank() > rank ? filter.dim(rank) : 0;
    Sizes s{a.n, a.c, outputs, group_, last, {a.frames, a.size[0], a.size[1]}, {}, {}, {}, {}, {}};
    Shape wanted;
    for (int d = 0; d < 3; d++) {
      const WindowAxis axis = d == 0 ? w.frames : w.axis(d - 1);
      s.out[d] = axis.out, s.kernel[d] = axis.kernel, s.stride[d] = axis.stride;
      s.dilation[d] = axis.dilation, s.pad[d] = axis.pad_begin;
      if (d >= 3 - rank) wanted.append(axis.out);
    }
    wanted.append(outputs);
    if (!last) wanted.append(a.c / group_);
    for (int d = 3 - rank; d < 3; d++) wanted.append(s.kernel[d]);
    if (last) wanted.append(a.c / group_);
    CAFFE2_ENFORCE(filter.shape() == wanted, describe_input(1), " has shape ",
                   filter.shape().text(), "; ", wanted.text(), " is needed");
    CAFFE2_ENFORCE(outputs > 0 && a.c % group_ == 0 && outputs % group_ == 0, "group = ", group_,
                   "; there are ", a.c, " input and ", outputs, " output channels");
    return s;
  }

  Shape bias_shape(const Sizes& s) const {
    Shape shape;
    for (int d = 5 - input(0).rank(); d < 3; d++) shape.append(s.out[d]);
    shape.append(s.outputs);
    return shape;
  }
  Shape y_shape(const Sizes& s) const {
    return activation_shape(input(0), s.channels_last, s.outputs, s.out + 1, s.out[0]);
  }

  float* patch_buffer(const Sizes& s) {
    return scratch<float>(checked_multiply(s.patches(), s.places()));
  }

  // Calls f(index in X or -1 in the padding, index in the patches) for all values that filters
  // meet at one place. Patches are [image][group][weights of an output channel].
  template <class F>
  static void for_patch(const Sizes& s, int64_t place, const F& f) {
    const int64_t at[3] = {place / (s.out[1] * s.out[2]), place / s.out[2] % s.out[1],
                           place % s.out[2]};
    for (int64_t tap = 0; tap < s.taps(); tap++) {
      const int64_t of[3] = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                             tap % s.kernel[2]};
      int64_t pixel = 0;
      for (int d = 0; d < 3; d++) {
        const int64_t i = at[d] * s.stride[d] - s.pad[d] + of[d] * s.dilation[d];
        pixel = pixel < 0 || i < 0 || i >= s.in[d] ? -1 : pixel * s.in[d] + i;
      }
      for (int64_t image = 0; image < s.n; image++) {
        for (int64_t c = 0; c < s.channels; c++) {
          const int64_t inner = c % s.taken();
          const int64_t weight = s.channels_last ? tap * s.taken() + inner : inner * s.taps() + tap;
          f(pixel < 0 ? -1 : s.x_at(image, c, pixel),
            (image * s.group + c / s.taken()) * s.weights() + weight);
        }
      }
    }
  }

  static void gather(const Sizes& s, int64_t place, const float* x, float* patches) {
    for_patch(s, place, [&](int64_t from, int64_t to) { patches[to] = from < 0 ? 0 : x[from]; });
  }

 private:
  const WindowArguments window_;
  const int64_t group_;
};

class LocalOperator : public LocalBase {
 public:
  using LocalBase::LocalBase;

 protected:
  void run() override {
    const Sizes s = sizes();
    if (has_input(2)) {
      CAFFE2_ENFORCE(input(2).shape() == bias_shape(s), describe_input(2), " has shape ",
                     input(2).shape().text(), "; ", bias_shape(s).text(), " is needed");
    }
    float* patches = patch_buffer(s);
    float* y = output(0, y_shape(s), DataType::kFloat).mutable_data<float>();
    const float *x = input(0).data<float>(), *filter = input(1).data<float>();
    const float* bias = has_input(2) ? input(2).data<float>() : nullptr;
    for_ranges(parallel(), s.places(), rows_per_range(s.patches()), [&](int64_t p, int64_t end) {
      const kernels::Parallel alone;
      for (; p < end; p++) {
        float* patch = patches + p * s.patches();
        gather(s, p, x, patch);
        for (int64_t m = 0; m < s.outputs; m++) {
          const float* weights = filter + (p * s.outputs + m) * s.weights();
          for (int64_t image = 0; image < s.n; image++) {
            const float* seen = patch + (image * s.group + m / s.given()) * s.weights();
            y[s.y_at(image, m, p)] = kernels().dot(s.weights(), weights, seen, alone) +
                                     (bias != nullptr ? bias[p * s.outputs + m] : 0);
          }
        }
      }
    });
  }
};

// Inputs X, filter, dY; outputs the gradients of filter, of the bias unless no_bias, and of X.
class LocalGradientOperator : public LocalBase {
 public:
  explicit LocalGradientOperator(const OperatorContext& context)
      : LocalBase(context), no_bias_(args().boolean("no_bias")) {
    const size_t outputs = context.def.output.size(), least = no_bias_ ? 1 : 2;
    CAFFE2_ENFORCE(outputs == least || outputs == least + 1, "it has ", outputs,
                   " outputs; with no_bias=", no_bias_, " allowed are ", least, " or ", least + 1);
  }

 protected:
  void run() override {
    const Sizes s = sizes();
    const Tensor& dy_tensor = input(2);
    CAFFE2_ENFORCE(dy_tensor.shape() == y_shape(s), describe_input(2), " has shape ",
                   dy_tensor.shape().text(), "; ", y_shape(s).text(), " is needed");
    const int place_of_x = no_bias_ ? 1 : 2;
    float* patches = patch_buffer(s);
    float* dw = output(0, input(1).shape(), DataType::kFloat).mutable_data<float>();
    float *db = nullptr, *dx = nullptr;
    if (!no_bias_) db = output(1, bias_shape(s), DataType::kFloat).mutable_data<float>();
    if (outputs() > place_of_x) {
      dx = output(place_of_x, input(0).shape(), DataType::kFloat).mutable_data<float>();
    }
    const float *x = input(0).data<float>(), *filter = input(1).data<float>();
    const float* dy = dy_tensor.data<float>();
    for_ranges(parallel(), s.places(), rows_per_range(s.patches()), [&](int64_t p, int64_t end) {
      for (; p < end; p++) {
        float* patch = patches + p * s.patches();
        gather(s, p, x, patch);
        weight_gradients(s, p, dy, patch, dw, db);
        if (dx != nullptr) patch_gradients(s, p, dy, filter, patch);
      }
    });
    if (dx == nullptr) return;
    std::fill_n(dx, input(0).size(), 0.0F);
    for (int64_t p = 0; p < s.places(); p++) {
      const float* patch = patches + p * s.patches();
      for_patch(s, p, [&](int64_t to, int64_t from) {
        if (to >= 0) dx[to] += patch[from];
      });
    }
  }

 private:
  void weight_gradients(const Sizes& s, int64_t p, const float* dy, const float* patch, float* dw,
                        float* db) const {
    const kernels::Parallel alone;
    for (int64_t m = 0; m < s.outputs; m++) {
      float* row = dw + (p * s.outputs + m) * s.weights();
      std::fill_n(row, s.weights(), 0.0F);
      double sum = 0;
      for (int64_t image = 0; image < s.n; image++) {
        const float g = dy[s.y_at(image, m, p)];
        sum += g;
        kernels().axpby(s.weights(), g, patch + (image * s.group + m / s.given()) * s.weights(), 1,
                        row, alone);
      }
      if (db != nullptr) db[p * s.outputs + m] = static_cast<float>(sum);
    }
  }

  // In the place of the patches.
  void patch_gradients(const Sizes& s, int64_t p, const float* dy, const float* filter,
                       float* patch) const {
    const kernels::Parallel alone;
    std::fill_n(patch, s.patches(), 0.0F);
    for (int64_t image = 0; image < s.n; image++) {
      for (int64_t m = 0; m < s.outputs; m++) {
        kernels().axpby(s.weights(), dy[s.y_at(image, m, p)],
                        filter + (p * s.outputs + m) * s.weights(), 1,
                        patch + (image * s.group + m / s.given()) * s.weights(), alone);
      }
    }
  }

  const bool no_bias_;
};

}  // namespace

REGISTER_CPU_OPERATOR(LC, LocalOperator)
REGISTER_CPU_OPERATOR(LC1D, LocalOperator)
REGISTER_CPU_OPERATOR(LC2D, LocalOperator)
REGISTER_CPU_OPERATOR(LC3D, LocalOperator)
REGISTER_CPU_OPERATOR(LCGradient, LocalGradientOperator)
REGISTER_CPU_OPERATOR(LC1DGradient, LocalGradientOperator)
REGISTER_CPU_OPERATOR(LC2DGradient, LocalGradientOperator)
REGISTER_CPU_OPERATOR(LC3DGradient, LocalGradientOperator)

}  // namespace caffe2
