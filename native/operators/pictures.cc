// Sums, regions and positions in pictures and sequences.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class PictureOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void require_pictures(int i) const {
    CAFFE2_ENFORCE(input(i).rank() == 4, describe_input(i), " has shape ", input(i).shape().text(),
                   "; four dimensions are needed");
  }

  // sums[i][j] = sum of x[0..i][0..j], for the first rows and columns of x, which is `wide` wide.
  // above: memory for as many doubles as there are columns.
  static void sum_up(const float* x, int64_t wide, int64_t rows, int64_t columns, double* above,
                     float* sums, int64_t sums_wide) {
    std::fill_n(above, columns, 0);
    for (int64_t i = 0; i < rows; i++) {
      double line = 0;
      for (int64_t j = 0; j < columns; j++) {
        line += x[i * wide + j];
        above[j] += line;
        sums[i * sums_wide + j] = static_cast<float>(above[j]);
      }
    }
  }
};

class IntegralImageOperator : public PictureOperator {
 public:
  using PictureOperator::PictureOperator;

 protected:
  void run() override {
    require_pictures(0);
    const Tensor& x = input(0);
    const int64_t pictures = x.dim(0) * x.dim(1), h = x.dim(2), w = x.dim(3);
    auto* above = scratch<double>(w);
    float* y =
        output(0, {x.dim(0), x.dim(1), h + 1, w + 1}, DataType::kFloat).mutable_data<float>();
    std::fill_n(y, pictures * (h + 1) * (w + 1), 0.0F);
    for (int64_t p = 0; p < pictures; p++) {
      float* first = y + p * (h + 1) * (w + 1) + (w + 1) + 1;
      sum_up(x.data<float>() + p * h * w, w, h, w, above, first, w + 1);
    }
  }
};

// The sums of dY from its first value on, as the original has it.
class IntegralImageGradientOperator : public PictureOperator {
 public:
  using PictureOperator::PictureOperator;

 protected:
  void run() override {
    require_pictures(0);
    const Tensor &x = input(0), &dy = input(1);
    const int64_t pictures = x.dim(0) * x.dim(1), h = x.dim(2), w = x.dim(3);
    const Shape wanted{x.dim(0), x.dim(1), h + 1, w + 1};
    CAFFE2_ENFORCE(dy.shape() == wanted, describe_input(1), " has shape ", dy.shape().text(), "; ",
                   wanted.text(), " is needed");
    auto* above = scratch<double>(w);
    float* dx = output(0, x.shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t p = 0; p < pictures; p++) {
      sum_up(dy.data<float>() + p * (h + 1) * (w + 1), w + 1, h, w, above, dx + p * h * w, w);
    }
  }
};

class RmacRegionsOperator : public PictureOperator {
 public:
  explicit RmacRegionsOperator(const OperatorContext& context)
      : PictureOperator(context),
        scales_(args().integer("scales")),
        overlap_(args().real("overlap")) {}

 protected:
  void run() override {
    require_pictures(0);
    const int64_t n = input(0).dim(0), h = input(0).dim(2), w = input(0).dim(3);
    CAFFE2_ENFORCE(h > 0 && w > 0, describe_input(0), " has shape ", input(0).shape().text(),
                   "; a picture has pixels");
    const std::vector<std::array<float, 4>> found = regions(h, w);
    const auto count = static_cast<int64_t>(found.size());
    float* out = output(0, {n * count, 5}, DataType::kFloat).mutable_data<float>();
    for (int64_t image = 0; image < n; image++) {
      for (const std::array<float, 4>& region : found) {
        *out++ = static_cast<float>(image);
        out = std::copy(region.begin(), region.end(), out);
      }
    }
  }

 private:
  // How many more squares the longer side gets: 1 to 6, whose overlap is the nearest.
  int64_t more(int64_t shorter, int64_t longer) const {
    int64_t best = 1;
    double least = INFINITY;
    for (int64_t steps = 1; steps <= 6; steps++) {
      const double gap = static_cast<double>(longer - shorter) / static_cast<double>(steps);
      const double side = static_cast<double>(shorter);
      const double error = std::abs((side - gap) / side - overlap_);
      if (error < least) {
        least = error;
        best = steps;
      }
    }
    return best;
  }

  // Where `count` squares begin that are spread over a length.
  static int64_t start(int64_t length, int64_t side, int64_t count, int64_t k) {
    const double gap =
        count > 1 ? static_cast<double>(length - side) / static_cast<double>(count - 1) : 0;
    return std::min(static_cast<int64_t>(std::floor(gap * static_cast<double>(k))), length - side);
  }

  // Left, top, right, bottom.
  std::vector<std::array<float, 4>> regions(int64_t h, int64_t w) const {
    const int64_t shorter = std::min(h, w), extra = more(shorter, std::max(h, w));
    std::vector<std::array<float, 4>> found;
    for (int64_t scale = 1; scale <= scales_; scale++) {
      const int64_t side = 2 * shorter / (scale + 1);
      if (side == 0) continue;
      const int64_t across = scale + (h < w ? extra : 0), down = scale + (h > w ? extra : 0);
      for (int64_t i = 0; i < across; i++) {
        for (int64_t j = 0; j < down; j++) {
          const int64_t x = start(w, side, across, i), y = start(h, side, down, j);
          found.push_back({static_cast<float>(x), static_cast<float>(y),
                           static_cast<float>(x + side - 1), static_cast<float>(y + side - 1)});
        }
      }
    }
    return found;
  }

  const int64_t scales_;
  const double overlap_;
};

class NormalizePlanarYuvOperator : public PictureOperator {
 public:
  using PictureOperator::PictureOperator;

 protected:
  void run() override {
    require_pictures(0);
    const Tensor& x = input(0);
    const int64_t n = x.dim(0), channels = x.dim(1), pixels = x.dim(2) * x.dim(3);
    for (const int i : {1, 2}) {
      const Shape& shape = input(i).shape();
      CAFFE2_ENFORCE(shape == Shape({n, channels}) || shape == Shape({1, channels}),
                     describe_input(i), " has shape ", shape.text(), "; ", describe_input(0),
                     " has shape ", x.shape().text());
    }
    float* y = output(0, x.shape(), DataType::kFloat).mutable_data<float>();
    const float* in = x.data<float>();
    for_ranges(parallel(), n * channels, rows_per_range(pixels), [&](int64_t plane, int64_t end) {
      for (; plane < end; plane++) {
        const float mean = of_plane(1, plane, channels), deviation = of_plane(2, plane, channels);
        for (int64_t i = plane * pixels; i < (plane + 1) * pixels; i++) {
          y[i] = (in[i] - mean) / deviation;
        }
      }
    });
  }

 private:
  float of_plane(int i, int64_t plane, int64_t channels) const {
    return input(i).data<float>()[input(i).dim(0) == 1 ? plane % channels : plane];
  }
};

class PositionEncodingOperator : public Operator {
 public:
  explicit PositionEncodingOperator(const OperatorContext& context)
      : Operator(context),
        size_(args().integer("embedding_size")),
        alpha_(args().real("alpha")),
        amplitude_(args().real("amplitude")) {}

 protected:
  void run() override {
    const Tensor& positions = input(0);
    CAFFE2_ENFORCE(positions.rank() == 2, describe_input(0), " has shape ",
                   positions.shape().text(), "; two dimensions are needed");
    const int64_t steps = positions.dim(0), columns = positions.dim(1);
    float* out = output(0, {steps, columns, size_}, DataType::kFloat).mutable_data<float>();
    if (columns == 0) return;
    for (int64_t step = 0; step < steps; step++) {
      float* first = out + step * columns * size_;
      for (int64_t k = 0; k < size_; k++) {
        const double share = static_cast<double>(k) / static_cast<double>(size_);
        const double angle = position(step * columns) / std::pow(alpha_, share);
        const double wave = k % 2 == 0 ? std::sin(angle) : std::cos(angle);
        first[k] = static_cast<float>(wave * amplitude_);
      }
      for (int64_t c = 1; c < columns; c++) std::copy_n(first, size_, first + c * size_);
    }
  }

 private:
  double position(int64_t i) const {
    const Tensor& positions = input(0);
    return positions.type() == DataType::kInt32 ? positions.data<int32_t>()[i]
                                                : static_cast<double>(positions.data<int64_t>()[i]);
  }

  const int64_t size_;
  const double alpha_, amplitude_;
};

}  // namespace

REGISTER_CPU_OPERATOR(IntegralImage, IntegralImageOperator)
REGISTER_CPU_OPERATOR(IntegralImageGradient, IntegralImageGradientOperator)
REGISTER_CPU_OPERATOR(RMACRegions, RmacRegionsOperator)
REGISTER_CPU_OPERATOR(NormalizePlanarYUV, NormalizePlanarYuvOperator)
REGISTER_CPU_OPERATOR(SinusoidPositionEncoding, PositionEncodingOperator)

}  // namespace caffe2
