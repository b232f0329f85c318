// Boxes of pictures: moved, cut off, compared and chosen.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/arguments.h"

namespace caffe2 {

// Corners x1, y1, x2, y2, or with an angle (in degrees) center x, y, width, height, angle.
struct BoundingBox {
  float v[5];
};

struct BoxRules {
  explicit BoxRules(const Arguments& args, int size)
      : size(size), more(args.boolean("legacy_plus_one") ? 1.f : 0.f) {}
  int size;    // numbers per box: 4, or 5 with an angle
  float more;  // what a box is wider than the distance of its corners
};

struct AngleRules {
  explicit AngleRules(const Arguments& args)
      : bound(args.boolean("angle_bound_on")),
        low(static_cast<float>(args.integer("angle_bound_lo"))),
        high(static_cast<float>(args.integer("angle_bound_hi"))),
        clip(args.real("clip_angle_thresh")) {}
  bool bound;
  float low, high;
  float clip;
};

inline BoundingBox load_box(const float* from, int size) {
  BoundingBox box{};
  std::copy_n(from, size, box.v);
  return box;
}

// Moved by deltas / weights in units of its size, and grown by their exponential.
BoundingBox transform_box(const BoundingBox& box, const float* deltas, const float* weights,
                          const BoxRules& rules, const AngleRules& angles);
// Cut off at the edges of a picture; with an angle only when it is nearly upright.
BoundingBox clip_box(const BoundingBox& box, float height, float width, const BoxRules& rules,
                     const AngleRules& angles);
// Intersection over union; NaN of two without area.
float overlap(const BoundingBox& a, const BoundingBox& b, const BoxRules& rules);

// [0, n) from the largest score to the smallest, NaN last; equal ones in their order.
std::vector<int> descending(const std::vector<float>& scores);
// The best `most` of them, all for 0, in this order.  Saturated nets have many equal scores: their
// order is what sort and partial_sort of the standard library make of it, as in the original.
std::vector<int> best(const std::vector<float>& scores, int64_t most = 0);
// Of `order`, those that overlap no better one by more than `threshold`; at most `most`, all for 0.
std::vector<int> suppress(const std::vector<BoundingBox>& boxes, const std::vector<int>& order,
                          float threshold, size_t most, const BoxRules& rules);

}  // namespace caffe2
