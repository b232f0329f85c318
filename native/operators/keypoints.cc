// HeatmapMaxKeypoint: where heat maps are largest, between their elements.
#include <algorithm>
#include <cmath>

#include "core/operator.h"
#include "core/registry.h"

namespace caffe2 {
namespace {

class HeatmapMaxKeypointOperator : public Operator {
 public:
  explicit HeatmapMaxKeypointOperator(const OperatorContext& context)
      : Operator(context), softmax_(args().boolean("should_output_softmax")) {}

 protected:
  void run() override {
    const Tensor &maps = input(0), &boxes = input(1);
    CAFFE2_ENFORCE(maps.rank() == 4 && maps.dim(2) == maps.dim(3) && maps.dim(2) >= 2,
                   describe_input(0), " has shape ", maps.shape().text(),
                   "; (R, K, S, S) with S >= 2 is needed");
    const int64_t rows = maps.dim(0), count = maps.dim(1), size = maps.dim(2);
    CAFFE2_ENFORCE(boxes.rank() == 2 && boxes.dim(0) == rows && boxes.dim(1) >= 4,
                   describe_input(1), " has shape ", boxes.shape().text(), "; (", rows,
                   ", 4) is needed");
    const float* map = maps.data<float>();
    float* out = output(0, {rows, 4, count}, DataType::kFloat).mutable_data<float>();
    for (int64_t r = 0; r < rows; r++, out += 4 * count) {
      const float* box = boxes.data<float>() + r * boxes.dim(1);
      const float unit_x = std::max(box[2] - box[0], 1.f) / static_cast<float>(size);
      const float unit_y = std::max(box[3] - box[1], 1.f) / static_cast<float>(size);
      for (int64_t k = 0; k < count; k++, map += size * size) {
        const Peak peak = find_peak(map, size);
        out[k] = box[0] + static_cast<float>(peak.x) * unit_x;
        out[count + k] = box[1] + static_cast<float>(peak.y) * unit_y;
        out[2 * count + k] = static_cast<float>(peak.value);
        out[3 * count + k] = softmax_ ? probability(map, size * size) : 0.f;
      }
    }
  }

 private:
  struct Peak {
    double x, y, value;
  };
  // The first largest element; a NaN is larger than all.
  static int64_t largest(const float* map, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n && !std::isnan(map[best]); i++) {
      if (map[i] > map[best] || std::isnan(map[i])) best = i;
    }
    return best;
  }

  // The maximum of the second-order expansion around the largest element.
  static Peak find_peak(const float* map, int64_t size) {
    const int64_t best = largest(map, size * size), row = best / size, column = best % size;
    double near[3][3];
    const auto reflected = [&](int64_t i) {
      return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
    };
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) {
        near[i][j] = map[reflected(row + i - 1) * size + reflected(column + j - 1)];
      }
    }
    const double slope_x = (near[1][2] - near[1][0]) / 2, slope_y = (near[2][1] - near[0][1]) / 2;
    const double bend_x = near[1][2] - 2 * near[1][1] + near[1][0];
    const double bend_y = near[2][1] - 2 * near[1][1] + near[0][1];
    const double mixed = (near[2][2] - near[2][0] - near[0][2] + near[0][0]) / 4;
    const double determinant = bend_x * bend_y - mixed * mixed;
    double x = 0, y = 0;
    if (std::abs(determinant) > 1e-4) {
      x = -(bend_y * slope_x - mixed * slope_y) / determinant;
      y = -(bend_x * slope_y - mixed * slope_x) / determinant;
      const double longest = std::max(std::abs(x), std::abs(y));
      if (longest > 1.5) {
        x *= 1.5 / longest;
        y *= 1.5 / longest;
      }
    }
    const double value = near[1][1] + slope_x * x + slope_y * y +
                         0.5 * (bend_x * x * x + 2 * mixed * x * y + bend_y * y * y);
    return {static_cast<double>(column) + 0.5 + x, static_cast<double>(row) + 0.5 + y, value};
  }

  // The largest of the softmax over the map.
  static float probability(const float* map, int64_t n) {
    const float most = map[largest(map, n)];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += std::exp(map[i] - most);
    return static_cast<float>(1 / sum);
  }

  const bool softmax_;
};

}  // namespace

REGISTER_CPU_OPERATOR(HeatmapMaxKeypoint, HeatmapMaxKeypointOperator)

}  // namespace caffe2
