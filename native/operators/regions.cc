// Operators on regions of feature maps: their pooling and its gradients.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/int8.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

constexpr float kMost = 4096;            // elements in a bin, along an axis
constexpr float kMostSamples = 1 << 23;  // of a region

// What operators have in common that pool regions of maps.
class RegionOperator : public Operator {
 public:
  RegionOperator(const OperatorContext& context, int size)
      : Operator(context),
        size_(size),
        height_(args().int32("pooled_h")),
        width_(args().int32("pooled_w")),
        scale_(args().real("spatial_scale")),
        channels_last_(args().text("order") == "NHWC" || args().text("order") == "nhwc") {}

 protected:
  struct Maps {
    int64_t n, channels, height, width;
  };
  Maps maps(const Tensor& x) const {
    CAFFE2_ENFORCE(x.rank() == 4, describe_input(0), " has shape ", x.shape().text(),
                   "; 4 dimensions are needed");
    for (int i = 1; i < 4; i++) {
      CAFFE2_ENFORCE(x.dim(i) > 0, describe_input(0), " has shape ", x.shape().text(),
                     "; only the batch may be empty");
    }
    if (channels_last_) return {x.dim(0), x.dim(3), x.dim(1), x.dim(2)};
    return {x.dim(0), x.dim(1), x.dim(2), x.dim(3)};
  }
  // Of each region the picture it is in.
  std::vector<int64_t> pictures(const Tensor& x, bool numbers_needed) const {
    const Tensor& rois = input(1);
    const bool fits =
        rois.rank() == 2 && (rois.dim(1) == size_ + 1 || (rois.dim(1) == size_ && !numbers_needed));
    CAFFE2_ENFORCE(fits, describe_input(1), " has shape ", rois.shape().text(), "; (n, ", size_ + 1,
                   ") is needed");
    const int64_t n = x.dim(0);
    std::vector<int64_t> pictures(rois.dim(0));
    const bool numbered = rois.dim(1) > size_;
    CAFFE2_ENFORCE(numbered || n == 1 || pictures.empty(), describe_input(1),
                   " has no pictures' numbers, and there are ", n, " pictures");
    for (size_t r = 0; r < pictures.size() && numbered; r++) {
      const float number = rois.data<float>()[static_cast<int64_t>(r) * rois.dim(1)];
      CAFFE2_ENFORCE(number >= 0 && number < static_cast<float>(n), describe_input(1),
                     " holds picture ", number, " in row ", r, "; there are ", n);
      pictures[r] = static_cast<int64_t>(number);
    }
    return pictures;
  }
  // The box of region r.
  const float* box(size_t r) const {
    const int64_t columns = input(1).dim(1);
    return input(1).data<float>() + static_cast<int64_t>(r) * columns + (columns - size_);
  }
  Shape pooled_shape(const Maps& m) const {
    const int64_t rows = input(1).dim(0);
    if (channels_last_) return {rows, height_, width_, m.channels};
    return {rows, m.channels, height_, width_};
  }
  void require_pooled(int i, const Maps& m) const {
    CAFFE2_ENFORCE(input(i).shape() == pooled_shape(m), describe_input(i), " has shape ",
                   input(i).shape().text(), "; ", pooled_shape(m).text(), " is needed");
  }

  const int size_;  // numbers per box
  const int height_, width_;
  const float scale_;
  const bool channels_last_;
};

// One of the four elements that a sample lies between: its share, and the bin of the sample.
struct Corner {
  int64_t bin, place;
  float share;
};

class RoIAlignBase : public RegionOperator {
 public:
  RoIAlignBase(const OperatorContext& context, int size)
      : RegionOperator(context, size),
        sampling_(args().int32("sampling_ratio")),
        aligned_(args().boolean("aligned")),
        offset_(aligned_ ? 0.5f : 0.f) {}

 protected:
  struct Axis {
    int samples, bins;
    float start, bin;
  };
  struct Region {
    Axis y, x;
    float center_y, center_x, sine, cosine;  // with an angle
  };
  std::vector<Region> regions() const {
    std::vector<Region> found(input(1).dim(0));
    for (size_t r = 0; r < found.size(); r++) {
      const float* b = box(r);
      found[r] = {axis(b, 1, height_), axis(b, 0, width_), 0, 0, 0, 1};
      const float samples = static_cast<float>(found[r].y.samples * height_) *
                            static_cast<float>(found[r].x.samples * width_);
      CAFFE2_ENFORCE(samples <= kMostSamples, describe_input(1), " holds a box that needs ",
                     samples, " samples; less is allowed");
      if (size_ == 4) continue;
      const float turn = b[4] * (3.14159265358979f / 180);
      found[r].center_y = b[1] * scale_ - offset_;
      found[r].center_x = b[0] * scale_ - offset_;
      found[r].sine = std::sin(turn);
      found[r].cosine = std::cos(turn);
    }
    return found;
  }

  // The samples of a region, in a fixed order; the shares of a bin sum to 1 inside of the map.
  std::vector<Corner> corners(const Region& r, const Maps& m) const {
    std::vector<Corner> found;
    const float count = static_cast<float>(r.y.samples) * static_cast<float>(r.x.samples);
    for (int i = 0; i < r.y.bins; i++) {
      for (int j = 0; j < r.x.bins; j++) {
        for (int a = 0; a < r.y.samples; a++) {
          for (int b = 0; b < r.x.samples; b++) {
            float y = place(r.y, i, a), x = place(r.x, j, b);
            if (size_ == 5) {
              const float along = y;
              y = along * r.cosine - x * r.sine + r.center_y;
              x = x * r.cosine + along * r.sine + r.center_x;
            }
            add(found, m, static_cast<int64_t>(i) * r.x.bins + j, y, x, count);
          }
        }
      }
    }
    return found;
  }

 private:
  // With an angle the start is seen from the center.
  Axis axis(const float* box, int i, int bins) const {
    float start = box[i] * scale_ - offset_;
    float length = box[i + 2] * scale_;
    if (size_ == 4) length = length - offset_ - start;
    if (aligned_) {
      CAFFE2_ENFORCE(length >= 0, describe_input(1), " holds a box of length ", length,
                     "; it is not negative");
    } else {
      length = std::max(length, 1.f);
    }
    const float bin = length / static_cast<float>(bins);
    CAFFE2_ENFORCE(bin <= kMost && std::isfinite(start), describe_input(1),
                   " holds a box of length ", length, "; less is allowed");
    if (size_ == 5) start = -length / 2;
    return {sampling_ > 0 ? sampling_ : static_cast<int>(std::ceil(bin)), bins, start, bin};
  }
  static float place(const Axis& axis, int bin, int sample) {
    return axis.start + static_cast<float>(bin) * axis.bin +
           (static_cast<float>(sample) + 0.5f) * axis.bin / static_cast<float>(axis.samples);
  }
  static void add(std::vector<Corner>& found, const Maps& m, int64_t bin, float y, float x,
                  float count) {
    const auto height = static_cast<float>(m.height), width = static_cast<float>(m.width);
    if (!(y >= -1 && y <= height && x >= -1 && x <= width)) return;
    const auto around = [](float& place, int64_t size) {
      place = std::max(place, 0.f);
      const auto low = static_cast<int64_t>(place);
      if (low < size - 1) return low;
      place = static_cast<float>(size - 1);
      return size - 1;
    };
    const int64_t top = around(y, m.height), left = around(x, m.width);
    const int64_t bottom = std::min(top + 1, m.height - 1);
    const int64_t right = std::min(left + 1, m.width - 1);
    const float low = y - static_cast<float>(top), far = x - static_cast<float>(left);
    found.push_back({bin, top * m.width + left, (1 - low) * (1 - far) / count});
    found.push_back({bin, top * m.width + right, (1 - low) * far / count});
    found.push_back({bin, bottom * m.width + left, low * (1 - far) / count});
    found.push_back({bin, bottom * m.width + right, low * far / count});
  }

  const int sampling_;
  const bool aligned_;
  const float offset_;
};

template <int size>
class RoIAlignOperator : public RoIAlignBase {
 public:
  explicit RoIAlignOperator(const OperatorContext& context) : RoIAlignBase(context, size) {}

 protected:
  void run() override {
    const Maps m = maps(input(0));
    const std::vector<int64_t> pictures = this->pictures(input(0), false);
    const std::vector<Region> regions = this->regions();
    const float* x = input(0).template data<float>();
    float* y = output(0, pooled_shape(m), DataType::kFloat).template mutable_data<float>();
    const int64_t places = m.height * m.width, bins = static_cast<int64_t>(height_) * width_;
    for (size_t r = 0; r < regions.size(); r++) {
      const std::vector<Corner> corners = this->corners(regions[r], m);
      const float* from = x + pictures[r] * m.channels * places;
      float* to = y + static_cast<int64_t>(r) * m.channels * bins;
      const int64_t work = static_cast<int64_t>(corners.size()) + bins;
      for_ranges(parallel(), m.channels, rows_per_range(work), [&](int64_t begin, int64_t end) {
        if (channels_last_) {
          pool_last(corners, m.channels, begin, end, bins, from, to);
        } else {
          pool_first(corners, begin, end, places, bins, from, to);
        }
      });
    }
  }

 private:
  static void pool_first(const std::vector<Corner>& corners, int64_t begin, int64_t end,
                         int64_t places, int64_t bins, const float* from, float* to) {
    std::fill_n(to + begin * bins, (end - begin) * bins, 0.f);
    for (int64_t k = begin; k < end; k++) {
      const float* map = from + k * places;
      float* pooled = to + k * bins;
      for (const Corner& c : corners) pooled[c.bin] += map[c.place] * c.share;
    }
  }
  static void pool_last(const std::vector<Corner>& corners, int64_t channels, int64_t begin,
                        int64_t end, int64_t bins, const float* from, float* to) {
    for (int64_t b = 0; b < bins; b++)
      std::fill(to + b * channels + begin, to + b * channels + end, 0.f);
    for (const Corner& c : corners) {
      const float* map = from + c.place * channels;
      float* pooled = to + c.bin * channels;
      for (int64_t k = begin; k < end; k++) pooled[k] += map[k] * c.share;
    }
  }
};

class Int8RoIAlignOperator : public Int8On<RoIAlignBase> {
 public:
  explicit Int8RoIAlignOperator(const OperatorContext& context) : Int8On(context, 4) {
    CAFFE2_ENFORCE(channels_last_, "argument 'order' must be NHWC");
  }

 protected:
  void run() override {
    const auto x = quantized(0);
    const Maps m = maps(x->values);
    const std::vector<int64_t> pictures = this->pictures(x->values, false);
    const std::vector<Region> regions = this->regions();
    Tensor y = bytes(pooled_shape(m));
    const int64_t values = checked_multiply(static_cast<int64_t>(height_) * width_, m.channels);
    auto* sums = scratch<float>(values);
    auto* out = y.mutable_data<uint8_t>();
    const float ratio = x->scale / scale_;
    for (size_t r = 0; r < regions.size(); r++) {
      const uint8_t* maps =
          x->values.data<uint8_t>() + pictures[r] * m.channels * m.height * m.width;
      std::fill_n(sums, values, 0.f);
      for (const Corner& c : corners(regions[r], m)) {
        const uint8_t* from = maps + c.place * m.channels;
        float* sum = sums + c.bin * m.channels;
        for (int64_t k = 0; k < m.channels; k++) {
          sum[k] += static_cast<float>(from[k] - x->zero_point) * c.share;
        }
      }
      for (int64_t i = 0; i < values; i++) *out++ = quantum(sums[i] * ratio, zero_);
    }
    give(std::move(y));
  }
};

template <int size>
class RoIAlignGradientOperator : public RoIAlignBase {
 public:
  explicit RoIAlignGradientOperator(const OperatorContext& context) : RoIAlignBase(context, size) {}

 protected:
  void run() override {
    const Maps m = maps(input(0));
    const std::vector<int64_t> pictures = this->pictures(input(0), false);
    const std::vector<Region> regions = this->regions();
    require_pooled(2, m);
    const float* dy = input(2).template data<float>();
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    float* out = dx.mutable_data<float>();
    std::fill_n(out, dx.size(), 0.f);
    const int64_t places = m.height * m.width, bins = static_cast<int64_t>(height_) * width_;
    const int64_t step = channels_last_ ? m.channels : 1;
    for (size_t r = 0; r < regions.size(); r++) {
      const std::vector<Corner> corners = this->corners(regions[r], m);
      const float* from = dy + static_cast<int64_t>(r) * m.channels * bins;
      float* to = out + pictures[r] * m.channels * places;
      // Regions overlap, channels do not.
      const int64_t work = static_cast<int64_t>(corners.size());
      for_ranges(parallel(), m.channels, rows_per_range(work), [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; k++) {
          const float* pooled = from + (channels_last_ ? k : k * bins);
          float* map = to + (channels_last_ ? k : k * places);
          for (const Corner& c : corners) map[c.place * step] += pooled[c.bin * step] * c.share;
        }
      });
    }
  }
};

class RoIPoolOperator : public RegionOperator {
 public:
  explicit RoIPoolOperator(const OperatorContext& context) : RegionOperator(context, 4) {}

 protected:
  void run() override {
    const Maps m = maps(input(0));
    const std::vector<int64_t> pictures = this->pictures(input(0), true);
    std::vector<Part> rows, columns;
    for (size_t r = 0; r < pictures.size(); r++) {
      add_parts(rows, box(r)[1], box(r)[3], height_, m.height);
      add_parts(columns, box(r)[0], box(r)[2], width_, m.width);
    }
    const float* x = input(0).data<float>();
    float* y = output(0, pooled_shape(m), DataType::kFloat).mutable_data<float>();
    int32_t* places = nullptr;
    if (outputs() > 1) {
      places = output(1, pooled_shape(m), DataType::kInt32).mutable_data<int32_t>();
    }
    const int64_t bins = static_cast<int64_t>(height_) * width_;
    const auto planes = static_cast<int64_t>(pictures.size()) * m.channels;
    for_ranges(parallel(), planes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; p++) {
        const int64_t r = p / m.channels, k = p % m.channels;
        const float* map = x + (pictures[r] * m.channels + k) * m.height * m.width;
        for (int64_t b = 0; b < bins; b++) {
          const int64_t best = largest(map, rows[r * height_ + b / width_],
                                       columns[r * width_ + b % width_], m.width);
          y[p * bins + b] = best < 0 ? 0.f : map[best];
          if (places != nullptr) places[p * bins + b] = static_cast<int32_t>(best);
        }
      }
    });
  }

 private:
  struct Part {
    int64_t begin, end;
  };
  void add_parts(std::vector<Part>& parts, float from, float to, int bins, int64_t size) const {
    from *= scale_;
    to *= scale_;
    constexpr float kLargest = 1 << 24;
    CAFFE2_ENFORCE(std::abs(from) < kLargest && std::abs(to) < kLargest, describe_input(1),
                   " holds a box from ", from, " to ", to, "; less is allowed");
    const auto start = static_cast<int64_t>(std::round(from));
    const auto end = static_cast<int64_t>(std::round(to));
    const float bin =
        static_cast<float>(std::max<int64_t>(end - start + 1, 1)) / static_cast<float>(bins);
    for (int i = 0; i < bins; i++) {
      const auto low = static_cast<int64_t>(std::floor(static_cast<float>(i) * bin));
      const auto high = static_cast<int64_t>(std::ceil(static_cast<float>(i + 1) * bin));
      parts.push_back(
          {std::clamp<int64_t>(low + start, 0, size), std::clamp<int64_t>(high + start, 0, size)});
    }
  }
  // The first largest element, NaN above all; -1 for none.
  static int64_t largest(const float* map, Part rows, Part columns, int64_t width) {
    int64_t best = -1;
    for (int64_t i = rows.begin; i < rows.end; i++) {
      for (int64_t j = columns.begin; j < columns.end; j++) {
        const int64_t here = i * width + j;
        const bool more = best < 0 || map[here] > map[best];
        if (more || (std::isnan(map[here]) && !std::isnan(map[best]))) best = here;
      }
    }
    return best;
  }
};

class RoIPoolGradientOperator : public RegionOperator {
 public:
  explicit RoIPoolGradientOperator(const OperatorContext& context) : RegionOperator(context, 4) {}

 protected:
  void run() override {
    const Maps m = maps(input(0));
    const std::vector<int64_t> pictures = this->pictures(input(0), true);
    require_pooled(2, m);
    require_pooled(3, m);
    const int32_t* places = input(2).data<int32_t>();
    const int64_t size = m.height * m.width;
    for (int64_t i = 0; i < input(2).size(); i++) {
      CAFFE2_ENFORCE(places[i] >= -1 && places[i] < size, describe_input(2), " holds ", places[i],
                     "; allowed is [-1, ", size, ")");
    }
    const float* dy = input(3).data<float>();
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    float* out = dx.mutable_data<float>();
    std::fill_n(out, dx.size(), 0.f);
    const int64_t bins = static_cast<int64_t>(height_) * width_;
    for (size_t r = 0; r < pictures.size(); r++) {
      float* to = out + pictures[r] * m.channels * size;
      for (int64_t k = 0; k < m.channels; k++, to += size, dy += bins, places += bins) {
        for (int64_t b = 0; b < bins; b++) {
          if (places[b] >= 0) to[places[b]] += dy[b];
        }
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(RoIAlign, RoIAlignOperator<4>)
REGISTER_CPU_OPERATOR(Int8RoIAlign, Int8RoIAlignOperator)
REGISTER_CPU_OPERATOR(RoIAlignRotated, RoIAlignOperator<5>)
REGISTER_CPU_OPERATOR(RoIAlignGradient, RoIAlignGradientOperator<4>)
REGISTER_CPU_OPERATOR(RoIAlignRotatedGradient, RoIAlignGradientOperator<5>)
REGISTER_CPU_OPERATOR(RoIPool, RoIPoolOperator)
REGISTER_CPU_OPERATOR(RoIPoolGradient, RoIPoolGradientOperator)

}  // namespace caffe2
