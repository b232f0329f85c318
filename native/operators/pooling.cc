// Max and average pooling over one to three spatial dimensions, p-norm pooling over one or two,
// with gradients.
#include <algorithm>
#include <cmath>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/shapes.h"
#include "operators/window.h"

namespace caffe2 {
namespace {

class PoolBase : public Operator {
 public:
  explicit PoolBase(const OperatorContext& context) : Operator(context), window_(args()) {}

 protected:
  // Data with frames is pooled frame by frame, and what comes out along the frames: the largest of
  // the largest, and the mean of the means, are those of the whole window.
  struct Geometry {
    Activations in;
    kernels::PoolShape pool;    // of each frame
    kernels::PoolShape frames;  // of the pooled frames, as maps of one row per frame
    bool has_frames;
    int64_t in_plane() const { return in.frames * pool.h * pool.w; }
    int64_t between() const { return pool.planes * pool.oh * pool.ow; }
    int64_t out_plane() const { return frames.oh * pool.oh * pool.ow; }
  };

  Geometry geometry(const Tensor& x) const {
    const Activations in(x, channels_last(), describe_input(0), max_dims());
    const Window window = window_.resolve(x.rank(), in.size, describe_input(0), in.frames);
    kernels::PoolShape s;
    s.planes = checked_multiply(checked_multiply(in.n, in.c), in.frames);
    s.h = in.size[0], s.w = in.size[1];
    s.oh = window.out[0], s.ow = window.out[1];
    s.kh = window.kernel[0], s.kw = window.kernel[1];
    s.stride_h = window.stride[0], s.stride_w = window.stride[1];
    s.dilation_h = window.dilation[0], s.dilation_w = window.dilation[1];
    s.pad_t = window.pad_begin[0], s.pad_l = window.pad_begin[1];
    s.pad_b = window.reach_end[0], s.pad_r = window.reach_end[1];
    for (int d = 0; d < 2; d++) window.axis(d).require_pads_inside(in.size[d], describe_input(0));
    window.frames.require_pads_inside(in.frames, describe_input(0));
    kernels::PoolShape f;
    f.planes = in.n * in.c;
    f.h = in.frames, f.w = s.oh * s.ow;
    f.oh = window.frames.out, f.ow = f.w;
    f.kh = window.frames.kernel;
    f.stride_h = window.frames.stride;
    f.pad_t = window.frames.pad_begin, f.pad_b = window.frames.reach_end;
    return {in, s, f, x.rank() == 5};
  }

  Shape output_shape(const Tensor& x, const Geometry& g) const {
    const int64_t size[2] = {g.pool.oh, g.pool.ow};
    return activation_shape(x, channels_last(), g.in.c, size, g.frames.oh);
  }

  virtual int max_dims() const { return 3; }
  void require_output_shape(int i, const Shape& shape) const {
    CAFFE2_ENFORCE(input(i).shape() == shape, describe_input(i), " has shape ",
                   input(i).shape().text(), "; the output of this pooling has ", shape.text());
  }

  bool channels_last() const { return window_.channels_last(); }
  float* buffer(int64_t values) { return scratch<float>(values); }
  const float* channels_first(const Tensor& x, const Geometry& g, int64_t plane) {
    if (!channels_last()) return x.data<float>();
    float* copy = buffer(x.size());
    to_channels_first(g.in.n, g.in.c, plane, x.data<float>(), copy, parallel());
    return copy;
  }

 private:
  const WindowArguments window_;
};

class PoolOperator : public PoolBase {
 public:
  using PoolBase::PoolBase;
  bool takes_stored() const override { return true; }
  // What comes out is smaller: a good place to end a blocked layout.
  bool chooses_layout() const override { return true; }

 protected:
  virtual void pool(const kernels::PoolShape& s, const float* x, float* y) = 0;

  void run() override {
    const Layout blocked{kernels().vector_width, channels_last()};
    if (input(0).layout() == blocked) {
      run_blocked(blocked);
      return;
    }
    const Tensor& x = plain_input(0);
    const Geometry g = geometry(x);
    Tensor& y = output(0, output_shape(x, g), DataType::kFloat);
    if (y.size() == 0) return;
    float* first = channels_last() ? buffer(y.size()) : nullptr;
    float* between = g.has_frames ? buffer(g.between()) : nullptr;
    const float* in = channels_first(x, g, g.in_plane());
    float* out = y.mutable_data<float>();
    float* last = first ? first : out;
    pool(g.pool, in, between ? between : last);
    if (between) pool(g.frames, between, last);
    if (first) to_channels_last(g.in.n, g.in.c, g.out_plane(), first, out, parallel());
  }

 private:
  void run_blocked(Layout blocked) {
    const Tensor& x = input(0);
    const Geometry g = geometry(x);
    const Shape shape = output_shape(x, g);
    Tensor& y = output(0, shape, DataType::kFloat, blocked);
    if (y.size() == 0) return;
    kernels::PoolShape s = g.pool;
    s.layout = kernels::Layout::kBlocked;
    s.planes = g.in.n * Tensor::planes(shape, blocked).blocks(blocked.block);
    pool(s, x.stored(), y.mutable_stored());
  }
};

class MaxPoolOperator : public PoolOperator {
 public:
  using PoolOperator::PoolOperator;

 protected:
  void pool(const kernels::PoolShape& s, const float* x, float* y) override {
    kernels().max_pool(s, x, y, parallel());
  }
};

class AveragePoolOperator : public PoolOperator {
 public:
  explicit AveragePoolOperator(const OperatorContext& context)
      : PoolOperator(context), count_include_pad_(args().boolean("count_include_pad")) {}

 protected:
  void pool(const kernels::PoolShape& s, const float* x, float* y) override {
    kernels().average_pool(s, count_include_pad_, x, y, parallel());
  }

 private:
  const bool count_include_pad_;
};

// Inputs X, Y, dY; output dX.
class PoolGradientOperator : public PoolBase {
 public:
  using PoolBase::PoolBase;

 protected:
  virtual void gradient(const kernels::PoolShape& s, const float* x, const float* y,
                        const float* dy, float* dx) = 0;
  // The pooled frames, where gradient() reads x and y.
  virtual void pool_again(const kernels::PoolShape&, const float*, float*) {}

  void run() override {
    const Tensor& x = input(0);
    const Geometry g = geometry(x);
    const Shape y_shape = output_shape(x, g);
    require_output_shape(1, y_shape);
    require_output_shape(2, y_shape);
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    if (dx.size() == 0) return;
    float* first = channels_last() ? buffer(dx.size()) : nullptr;
    const float* xp = channels_first(x, g, g.in_plane());
    const float* yp = channels_first(input(1), g, g.out_plane());
    const float* dyp = channels_first(input(2), g, g.out_plane());
    float* between = g.has_frames ? buffer(g.between()) : nullptr;
    float* between_gradient = g.has_frames ? buffer(g.between()) : nullptr;
    float* out = dx.mutable_data<float>();
    if (g.has_frames) {
      pool_again(g.pool, xp, between);
      gradient(g.frames, between, yp, dyp, between_gradient);
      yp = between;
      dyp = between_gradient;
    }
    gradient(g.pool, xp, yp, dyp, first ? first : out);
    if (first) to_channels_last(g.in.n, g.in.c, g.in_plane(), first, out, parallel());
  }
};

class MaxPoolGradientOperator : public PoolGradientOperator {
 public:
  using PoolGradientOperator::PoolGradientOperator;

 protected:
  void gradient(const kernels::PoolShape& s, const float* x, const float* y, const float* dy,
                float* dx) override {
    kernels().max_pool_gradient(s, x, y, dy, dx, parallel());
  }
  void pool_again(const kernels::PoolShape& s, const float* x, float* y) override {
    kernels().max_pool(s, x, y, parallel());
  }
};

class AveragePoolGradientOperator : public PoolGradientOperator {
 public:
  explicit AveragePoolGradientOperator(const OperatorContext& context)
      : PoolGradientOperator(context), count_include_pad_(args().boolean("count_include_pad")) {}

 protected:
  void gradient(const kernels::PoolShape& s, const float*, const float*, const float* dy,
                float* dx) override {
    kernels().average_pool_gradient(s, count_include_pad_, dy, dx, parallel());
  }

 private:
  const bool count_include_pad_;
};

// Calls f(output, input) for each output of a plane and each element that its window meets.
template <class F>
void visit_plane(const kernels::PoolShape& s, const F& f) {
  for (int64_t oh = 0; oh < s.oh; oh++) {
    const int64_t top = oh * s.stride_h - s.pad_t;
    for (int64_t ow = 0; ow < s.ow; ow++) {
      const int64_t left = ow * s.stride_w - s.pad_l;
      for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + s.kh, s.h); h++) {
        for (int64_t w = std::max<int64_t>(left, 0); w < std::min(left + s.kw, s.w); w++) {
          f(oh * s.ow + ow, h * s.w + w);
        }
      }
    }
  }
}

class LpPoolOperator : public PoolBase {
 public:
  explicit LpPoolOperator(const OperatorContext& context)
      : PoolBase(context), p_(args().real("p")) {}

 protected:
  int max_dims() const override { return 2; }
  void run() override {
    const Tensor& x = input(0);
    const Geometry g = geometry(x);
    const kernels::PoolShape& s = g.pool;
    Tensor& y = output(0, output_shape(x, g), DataType::kFloat);
    if (y.size() == 0) return;
    const int64_t in_plane = s.h * s.w, out_plane = s.oh * s.ow;
    float* first = channels_last() ? buffer(y.size()) : nullptr;
    double* sums = scratch<double>(y.size());
    const float* in = channels_first(x, g, in_plane);
    float* out = first ? first : y.mutable_data<float>();
    const double p = p_;
    for_ranges(parallel(), s.planes, rows_per_range(in_plane), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const float* from = in + i * in_plane;
        double* to = sums + i * out_plane;
        std::fill(to, to + out_plane, 0.0);
        visit_plane(s, [=](int64_t o, int64_t e) {
          to[o] += std::pow(std::fabs(static_cast<double>(from[e])), p);
        });
        for (int64_t o = 0; o < out_plane; o++) {
          out[i * out_plane + o] = static_cast<float>(std::pow(to[o], 1 / p));
        }
      }
    });
    if (first) {
      to_channels_last(g.in.n, g.in.c, out_plane, first, y.mutable_data<float>(), parallel());
    }
  }

 private:
  const float p_;
};

class LpPoolGradientOperator : public PoolGradientOperator {
 public:
  explicit LpPoolGradientOperator(const OperatorContext& context)
      : PoolGradientOperator(context), p_(args().real("p")) {}

 protected:
  int max_dims() const override { return 2; }
  void gradient(const kernels::PoolShape& s, const float* x, const float* y, const float* dy,
                float* dx) override {
    const int64_t in_plane = s.h * s.w, out_plane = s.oh * s.ow;
    const double p = p_;
    for_ranges(parallel(), s.planes, rows_per_range(in_plane), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const float *in = x + i * in_plane, *norm = y + i * out_plane, *grad = dy + i * out_plane;
        float* out = dx + i * in_plane;
        std::fill(out, out + in_plane, 0.0f);
        visit_plane(s, [=](int64_t o, int64_t e) {
          if (in[e] == 0 || norm[o] == 0) return;
          const double share = std::pow(std::fabs(static_cast<double>(in[e])) / norm[o], p - 1);
          out[e] += static_cast<float>((in[e] < 0 ? -grad[o] : grad[o]) * share);
        });
      }
    });
  }

 private:
  const float p_;
};

}  // namespace

REGISTER_CPU_OPERATOR(MaxPool, MaxPoolOperator)
REGISTER_CPU_OPERATOR(MaxPoolGradient, MaxPoolGradientOperator)
REGISTER_CPU_OPERATOR(AveragePool, AveragePoolOperator)
REGISTER_CPU_OPERATOR(AveragePoolGradient, AveragePoolGradientOperator)
REGISTER_CPU_OPERATOR(MaxPool1D, MaxPoolOperator)
REGISTER_CPU_OPERATOR(MaxPool1DGradient, MaxPoolGradientOperator)
REGISTER_CPU_OPERATOR(AveragePool1D, AveragePoolOperator)
REGISTER_CPU_OPERATOR(AveragePool1DGradient, AveragePoolGradientOperator)
REGISTER_CPU_OPERATOR(MaxPool2D, MaxPoolOperator)
REGISTER_CPU_OPERATOR(MaxPool2DGradient, MaxPoolGradientOperator)
REGISTER_CPU_OPERATOR(AveragePool2D, AveragePoolOperator)
REGISTER_CPU_OPERATOR(AveragePool2DGradient, AveragePoolGradientOperator)
REGISTER_CPU_OPERATOR(MaxPool3D, MaxPoolOperator)
REGISTER_CPU_OPERATOR(MaxPool3DGradient, MaxPoolGradientOperator)
REGISTER_CPU_OPERATOR(AveragePool3D, AveragePoolOperator)
REGISTER_CPU_OPERATOR(AveragePool3DGradient, AveragePoolGradientOperator)
REGISTER_CPU_OPERATOR(LpPool, LpPoolOperator)
REGISTER_CPU_OPERATOR(LpPoolGradient, LpPoolGradientOperator)

}  // namespace caffe2
