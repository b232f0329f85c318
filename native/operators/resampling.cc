// Operators whose output picks elements of a picture along each axis: PadImage, ResizeNearest (also
// 3D), UpsampleNearest, and the bilinear UpsampleBilinear, with gradients.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

using Sizes = std::array<int64_t, 3>;  // with two spatial axes the first is 1
using Maps = std::array<int64_t*, 3>;

// Pictures as [planes][size 0][size 1][size 2][inner]: inner is 1, or the channels in NHWC.
struct Pictures {
  int64_t planes, inner;
  Sizes size;
  int64_t points() const { return size[0] * size[1] * size[2] * inner; }
};

class ResampleBase : public Operator {
 public:
  ResampleBase(const OperatorContext& context, int axes, bool channels_last)
      : Operator(context), axes_(axes), channels_last_(channels_last) {}

 protected:
  static bool is_last(const OperatorContext& context) {
    const std::string order = Arguments(context.def, context.schema).text("order");
    return order == "NHWC" || order == "nhwc";
  }

  Pictures pictures(int i) const {
    const Tensor& x = input(i);
    CAFFE2_ENFORCE(x.rank() == axes_ + 2, describe_input(i), " has shape ", x.shape().text(), "; ",
                   axes_ + 2, " dimensions are needed");
    Pictures p{x.dim(0), 1, {1, 1, 1}};
    if (channels_last_) {
      p.inner = x.dim(axes_ + 1);
    } else {
      p.planes = checked_multiply(p.planes, x.dim(1));
    }
    for (int a = 0; a < axes_; a++) p.size[3 - axes_ + a] = x.dim((channels_last_ ? 1 : 2) + a);
    return p;
  }

  // The shape of input i with other spatial sizes.
  Shape resized(int i, const Sizes& size) const {
    const Tensor& x = input(i);
    Shape shape{x.dim(0)};
    if (!channels_last_) shape.append(x.dim(1));
    for (int a = 3 - axes_; a < 3; a++) shape.append(size[a]);
    if (channels_last_) shape.append(x.dim(axes_ + 1));
    return shape;
  }

  void require_filled(int i) const {
    const Shape& x = input(i).shape();
    for (int a = 1; a < x.rank(); a++) {
      CAFFE2_ENFORCE(x[a] > 0, describe_input(i), " has shape ", x.text(),
                     "; only the batch may be empty");
    }
  }

  int64_t* map_memory(int64_t length) { return scratch<int64_t>(length); }
  Maps maps_memory(const Sizes& size) {
    Maps maps{};
    for (int a = 0; a < 3; a++) maps[a] = map_memory(size[a]);
    if (axes_ == 2) maps[0][0] = 0;  // of the axis that is not there
    return maps;
  }

  int first_axis() const { return 3 - axes_; }
  bool channels_last() const { return channels_last_; }

  // y[i] = x[maps[i]]; `value` where a map has -1.
  void gather(const Pictures& p, const Sizes& out, const Maps& maps, float value, const float* x,
              float* y) const {
    const int64_t points = out[0] * out[1] * out[2] * p.inner;
    const int64_t row = out[2] * p.inner;
    for_ranges(parallel(), p.planes, rows_per_range(points), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        const float* in = x + plane * p.points();
        float* to = y + plane * points;
        for (int64_t i = 0; i < out[0]; i++) {
          for (int64_t j = 0; j < out[1]; j++, to += row) {
            if (maps[0][i] < 0 || maps[1][j] < 0) {
              std::fill_n(to, row, value);
              continue;
            }
            const float* from = in + (maps[0][i] * p.size[1] + maps[1][j]) * p.size[2] * p.inner;
            gather_row(out[2], p.inner, maps[2], value, from, to);
          }
        }
      }
    });
  }

  // dx = the sum of dy over all places that the maps took an element to.
  void scatter(const Pictures& p, const Sizes& out, const Maps& maps, const float* dy,
               float* dx) const {
    const int64_t points = out[0] * out[1] * out[2] * p.inner;
    const int64_t row = out[2] * p.inner;
    for_ranges(parallel(), p.planes, rows_per_range(points), [&](int64_t begin, int64_t end) {
      std::fill_n(dx + begin * p.points(), (end - begin) * p.points(), 0.f);
      for (int64_t plane = begin; plane < end; plane++) {
        const float* from = dy + plane * points;
        float* in = dx + plane * p.points();
        for (int64_t i = 0; i < out[0]; i++) {
          for (int64_t j = 0; j < out[1]; j++, from += row) {
            if (maps[0][i] < 0 || maps[1][j] < 0) continue;
            float* to = in + (maps[0][i] * p.size[1] + maps[1][j]) * p.size[2] * p.inner;
            for (int64_t k = 0; k < out[2]; k++) {
              if (maps[2][k] < 0) continue;
              float* target = to + maps[2][k] * p.inner;
              for (int64_t c = 0; c < p.inner; c++) target[c] += from[k * p.inner + c];
            }
          }
        }
      }
    });
  }

 private:
  static void gather_row(int64_t count, int64_t inner, const int64_t* map, float value,
                         const float* from, float* to) {
    if (inner == 1) {
      for (int64_t k = 0; k < count; k++) to[k] = map[k] < 0 ? value : from[map[k]];
      return;
    }
    for (int64_t k = 0; k < count; k++, to += inner) {
      if (map[k] < 0) {
        std::fill_n(to, inner, value);
      } else {
        std::copy_n(from + map[k] * inner, inner, to);
      }
    }
  }

  const int axes_;
  const bool channels_last_;
};

// ---- padding ------------------------------------------------------------------------------------

class PadBase : public ResampleBase {
 public:
  explicit PadBase(const OperatorContext& context)
      : ResampleBase(context, 2, is_last(context)),
        mode_(args().text("mode")),
        value_(args().real("value")) {
    const std::vector<int64_t> listed = args().integers("pads");
    const std::array<const char*, 4> names{"pad_t", "pad_l", "pad_b", "pad_r"};
    const auto given =
        std::count_if(names.begin(), names.end(), [&](const char* n) { return args().has(n); });
    CAFFE2_ENFORCE(given == 0 || given == 4,
                   "arguments pad_t, pad_l, pad_b, pad_r are given together or not at all");
    CAFFE2_ENFORCE(listed.empty() || listed.size() == 4, "argument 'pads' has ", listed.size(),
                   " values; 4 are needed: top, left, bottom, right");
    const int64_t pad = args().integer("pad");
    for (size_t i = 0; i < 4; i++) {
      pads_[i] = !listed.empty() ? listed[i] : given && pad == 0 ? args().integer(names[i]) : pad;
    }
  }

 protected:
  int64_t head(int axis) const { return pads_[axis - 1]; }
  int64_t tail(int axis) const { return pads_[axis + 1]; }

  // Spatial axes are 1 and 2; the pads may be too much for `size` elements.
  int64_t padded(int axis, int64_t size) const {
    const int64_t length = size + head(axis) + tail(axis);
    CAFFE2_ENFORCE(length >= 0, describe_input(0), " has shape ", input(0).shape().text(),
                   "; pads of ", head(axis), " and ", tail(axis), " along spatial axis ", axis - 1,
                   " leave nothing of it");
    const int64_t most = mode_ == "reflect" ? size - 1 : std::numeric_limits<int64_t>::max();
    CAFFE2_ENFORCE(mode_ == "constant" ||
                       (std::max(head(axis), tail(axis)) <= most && (size > 0 || length == 0)),
                   describe_input(0), ": spatial axis ", axis - 1, " is too short for pads of ",
                   head(axis), " and ", tail(axis), " with mode='", mode_, "'");
    return length;
  }

  void fill(int axis, int64_t size, int64_t length, int64_t* map) const {
    for (int64_t i = 0; i < length; i++) {
      int64_t place = i - head(axis);
      if (mode_ == "edge") {
        place = std::clamp<int64_t>(place, 0, size - 1);
      } else if (mode_ == "reflect") {
        place = std::abs(place);
        if (place >= size) place = 2 * (size - 1) - place;
      } else if (place < 0 || place >= size) {
        place = -1;
      }
      map[i] = place;
    }
  }

  float value() const { return value_; }

 private:
  const std::string mode_;
  const float value_;
  std::array<int64_t, 4> pads_{};
};

class PadImageOperator : public PadBase {
 public:
  using PadBase::PadBase;

 protected:
  void run() override {
    const Pictures p = pictures(0);
    Sizes out{1, padded(1, p.size[1]), padded(2, p.size[2])};
    Tensor& y = output(0, resized(0, out), DataType::kFloat);
    const Maps maps = maps_memory(out);
    for (int a = 1; a < 3; a++) fill(a, p.size[a], out[a], maps[a]);
    gather(p, out, maps, value(), input(0).data<float>(), y.mutable_data<float>());
  }
};

class PadImageGradientOperator : public PadBase {
 public:
  using PadBase::PadBase;

 protected:
  void run() override {
    Pictures p = pictures(0);
    const Sizes out = p.size;
    for (int a = 1; a < 3; a++) {
      p.size[a] -= head(a) + tail(a);
      CAFFE2_ENFORCE(p.size[a] >= 0, describe_input(0), " has shape ", input(0).shape().text(),
                     "; there are pads of ", head(a), " and ", tail(a), " along spatial axis ",
                     a - 1);
      padded(a, p.size[a]);
    }
    Tensor& dx = output(0, resized(0, p.size), DataType::kFloat);
    const Maps maps = maps_memory(out);
    for (int a = 1; a < 3; a++) fill(a, p.size[a], out[a], maps[a]);
    scatter(p, out, maps, input(0).data<float>(), dx.mutable_data<float>());
  }
};

// ---- resizing -----------------------------------------------------------------------------------

class ResizeBase : public ResampleBase {
 public:
  ResizeBase(const OperatorContext& context, int axes, bool channels_last)
      : ResampleBase(context, axes, channels_last),
        scales_{axes == 3 ? args().real("temporal_scale") : 1, args().real("height_scale"),
                args().real("width_scale")} {}

 protected:
  // The factors: those of input i where it is there.
  std::array<float, 3> scales(int i) const {
    std::array<float, 3> scales = scales_;
    if (!has_input(i)) return scales;
    const Tensor& given = input(i);
    CAFFE2_ENFORCE(given.shape() == Shape{2}, describe_input(i), " has shape ",
                   given.shape().text(), "; (2,) is needed: height, width");
    for (int a = 0; a < 2; a++) {
      const float scale = given.data<float>()[a];
      CAFFE2_ENFORCE(scale >= 1e-6F && scale <= 1e6F, describe_input(i), " holds ", scale,
                     "; allowed is 1e-6 <= scale <= 1e6");
      scales[a + 1] = scale;
    }
    return scales;
  }

  Sizes scaled(const Pictures& p, const std::array<float, 3>& scales) const {
    Sizes size{1, 1, 1};
    for (int a = first_axis(); a < 3; a++) {
      const float length = static_cast<float>(p.size[a]) * scales[a];
      CAFFE2_ENFORCE(length < static_cast<float>(std::numeric_limits<int32_t>::max()), "makes ",
                     length, " of ", p.size[a], " elements along spatial axis ", a - first_axis(),
                     "; less is allowed");
      size[a] = static_cast<int64_t>(length);
    }
    return size;
  }

  // Checks dY (input 0) against X (input 1).
  Sizes scaled_gradient(const Pictures& p, const std::array<float, 3>& scales) const {
    const Sizes out = scaled(p, scales);
    const Shape needed = resized(1, out);
    CAFFE2_ENFORCE(input(0).shape() == needed, describe_input(0), " has shape ",
                   input(0).shape().text(), "; ", needed.text(), " is needed, ", describe_input(1),
                   " has shape ", input(1).shape().text());
    return out;
  }

  void fill(const Pictures& p, const Sizes& out, const std::array<float, 3>& scales,
            const Maps& maps) const {
    for (int a = first_axis(); a < 3; a++) {
      for (int64_t i = 0; i < out[a]; i++) {
        const auto place = static_cast<int64_t>(static_cast<float>(i) / scales[a]);
        maps[a][i] = std::min(place, p.size[a] - 1);
      }
    }
  }

 private:
  const std::array<float, 3> scales_;
};

template <int kAxes>
class ResizeNearestOperator : public ResizeBase {
 public:
  explicit ResizeNearestOperator(const OperatorContext& context)
      : ResizeBase(context, kAxes, is_last(context)) {}

 protected:
  void run() override {
    const Pictures p = pictures(0);
    require_filled(0);
    const auto factors = scales(1);
    const Sizes out = scaled(p, factors);
    Tensor& y = output(0, resized(0, out), DataType::kFloat);
    const Maps maps = maps_memory(out);
    fill(p, out, factors, maps);
    gather(p, out, maps, 0, input(0).template data<float>(), y.mutable_data<float>());
  }
};

template <int kAxes>
class ResizeNearestGradientOperator : public ResizeBase {
 public:
  explicit ResizeNearestGradientOperator(const OperatorContext& context)
      : ResizeBase(context, kAxes, is_last(context)) {}

 protected:
  void run() override {
    const Pictures p = pictures(1);
    require_filled(1);
    const auto factors = scales(2);
    const Sizes out = scaled_gradient(p, factors);
    Tensor& dx = output(0, input(1).shape(), DataType::kFloat);
    const Maps maps = maps_memory(out);
    fill(p, out, factors, maps);
    scatter(p, out, maps, input(0).template data<float>(), dx.mutable_data<float>());
  }
};

class UpsampleNearestBase : public ResampleBase {
 public:
  explicit UpsampleNearestBase(const OperatorContext& context)
      : ResampleBase(context, 2, false), scale_(args().integer("scale")) {}

 protected:
  Sizes scaled(const Pictures& p) const {
    return {1, checked_multiply(p.size[1], scale_), checked_multiply(p.size[2], scale_)};
  }

  void fill(const Sizes& out, const Maps& maps) const {
    for (int a = 1; a < 3; a++) {
      for (int64_t i = 0; i < out[a]; i++) maps[a][i] = i / scale_;
    }
  }

 private:
  const int64_t scale_;
};

class UpsampleNearestOperator : public UpsampleNearestBase {
 public:
  using UpsampleNearestBase::UpsampleNearestBase;

 protected:
  void run() override {
    const Pictures p = pictures(0);
    require_filled(0);
    const Sizes out = scaled(p);
    Tensor& y = output(0, resized(0, out), DataType::kFloat);
    const Maps maps = maps_memory(out);
    fill(out, maps);
    gather(p, out, maps, 0, input(0).data<float>(), y.mutable_data<float>());
  }
};

class UpsampleNearestGradientOperator : public UpsampleNearestBase {
 public:
  using UpsampleNearestBase::UpsampleNearestBase;

 protected:
  void run() override {
    const Pictures p = pictures(0);
    require_filled(0);
    const Sizes out = scaled(p);
    const Shape needed = resized(0, out);
    CAFFE2_ENFORCE(input(1).shape() == needed, describe_input(1), " has shape ",
                   input(1).shape().text(), "; ", needed.text(), " is needed, ", describe_input(0),
                   " has shape ", input(0).shape().text());
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    const Maps maps = maps_memory(out);
    fill(out, maps);
    scatter(p, out, maps, input(1).data<float>(), dx.mutable_data<float>());
  }
};

// What a row or column is mixed of: `lower` and its neighbour, with shares that sum to 1.
struct Mixing {
  int64_t lower, upper;
  float share;  // of upper
};

class BilinearBase : public ResizeBase {
 public:
  explicit BilinearBase(const OperatorContext& context) : ResizeBase(context, 2, false) {}

 protected:
  Mixing* mixings(int64_t size, int64_t length) {
    auto* mixing = scratch<Mixing>(length);
    const double step =
        length > 1 ? static_cast<double>(size - 1) / static_cast<double>(length - 1) : 0;
    for (int64_t i = 0; i < length; i++) {
      const double place = static_cast<double>(i) * step;
      const int64_t lower = std::min(static_cast<int64_t>(place), size - 1);
      mixing[i] = {lower, std::min(lower + 1, size - 1),
                   static_cast<float>(place - static_cast<double>(lower))};
    }
    return mixing;
  }
};

class UpsampleBilinearOperator : public BilinearBase {
 public:
  using BilinearBase::BilinearBase;

 protected:
  void run() override {
    const Pictures p = pictures(0);
    require_filled(0);
    const Sizes out = scaled(p, scales(1));
    Tensor& y = output(0, resized(0, out), DataType::kFloat);
    const Mixing *rows = mixings(p.size[1], out[1]), *columns = mixings(p.size[2], out[2]);
    const float* x = input(0).data<float>();
    float* result = y.mutable_data<float>();
    for_ranges(parallel(), p.planes, rows_per_range(out[1] * out[2]), [&](int64_t b, int64_t e) {
      float* to = result + b * out[1] * out[2];
      for (int64_t plane = b; plane < e; plane++) {
        const float* in = x + plane * p.points();
        for (int64_t i = 0; i < out[1]; i++, to += out[2]) {
          const float *upper = in + rows[i].lower * p.size[2],
                      *lower = in + rows[i].upper * p.size[2];
          const float s = rows[i].share;
          for (int64_t j = 0; j < out[2]; j++) {
            const Mixing& m = columns[j];
            const float above = upper[m.lower] + (upper[m.upper] - upper[m.lower]) * m.share;
            const float below = lower[m.lower] + (lower[m.upper] - lower[m.lower]) * m.share;
            to[j] = above + (below - above) * s;
          }
        }
      }
    });
  }
};

class UpsampleBilinearGradientOperator : public BilinearBase {
 public:
  using BilinearBase::BilinearBase;

 protected:
  void run() override {
    const Pictures p = pictures(1);
    require_filled(1);
    const Sizes out = scaled_gradient(p, scales(2));
    Tensor& dx = output(0, input(1).shape(), DataType::kFloat);
    const Mixing *rows = mixings(p.size[1], out[1]), *columns = mixings(p.size[2], out[2]);
    const float* dy = input(0).data<float>();
    float* result = dx.mutable_data<float>();
    for_ranges(parallel(), p.planes, rows_per_range(out[1] * out[2]), [&](int64_t b, int64_t e) {
      std::fill_n(result + b * p.points(), (e - b) * p.points(), 0.f);
      const float* from = dy + b * out[1] * out[2];
      for (int64_t plane = b; plane < e; plane++) {
        float* in = result + plane * p.points();
        for (int64_t i = 0; i < out[1]; i++, from += out[2]) {
          float *upper = in + rows[i].lower * p.size[2], *lower = in + rows[i].upper * p.size[2];
          const float s = rows[i].share;
          for (int64_t j = 0; j < out[2]; j++) {
            const Mixing& m = columns[j];
            const float above = from[j] * (1 - s), below = from[j] * s;
            upper[m.lower] += above * (1 - m.share);
            upper[m.upper] += above * m.share;
            lower[m.lower] += below * (1 - m.share);
            lower[m.upper] += below * m.share;
          }
        }
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(PadImage, PadImageOperator)
REGISTER_CPU_OPERATOR(PadImageGradient, PadImageGradientOperator)
REGISTER_CPU_OPERATOR(ResizeNearest, ResizeNearestOperator<2>)
REGISTER_CPU_OPERATOR(ResizeNearestGradient, ResizeNearestGradientOperator<2>)
REGISTER_CPU_OPERATOR(ResizeNearest3D, ResizeNearestOperator<3>)
REGISTER_CPU_OPERATOR(ResizeNearest3DGradient, ResizeNearestGradientOperator<3>)
REGISTER_CPU_OPERATOR(UpsampleNearest, UpsampleNearestOperator)
REGISTER_CPU_OPERATOR(UpsampleNearestGradient, UpsampleNearestGradientOperator)
REGISTER_CPU_OPERATOR(UpsampleBilinear, UpsampleBilinearOperator)
REGISTER_CPU_OPERATOR(UpsampleBilinearGradient, UpsampleBilinearGradientOperator)

}  // namespace caffe2
