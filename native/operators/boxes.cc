#include "operators/boxes.h"

#include <limits>
#include <string>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {

namespace {

// No box becomes more than 1000 / 16 times as large.
const float kMostGrowth = std::log(1000.f / 16.f);
constexpr double kDegree = 3.14159265358979323846 / 180;

struct Point {
  double x, y;
};

// A convex polygon: four corners, and one more for each edge that cuts them.
struct Polygon {
  Point corners[8];
  int count = 0;
  void add(Point p) { corners[count++] = p; }
};

Polygon corners_of(const BoundingBox& box) {
  const double turn = box.v[4] * kDegree, sine = std::sin(turn), cosine = std::cos(turn);
  const double half_x = box.v[2] / 2.0, half_y = box.v[3] / 2.0;
  Polygon polygon;
  for (const auto [i, j] : {Point{-1, -1}, Point{1, -1}, Point{1, 1}, Point{-1, 1}}) {
    polygon.add({box.v[0] + i * cosine * half_x + j * sine * half_y,
                 box.v[1] - i * sine * half_x + j * cosine * half_y});
  }
  return polygon;
}

// What is left of the edge from a to b (Sutherland and Hodgman, 1974).
Polygon cut(const Polygon& polygon, Point a, Point b) {
  const auto side = [&](Point p) { return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x); };
  Polygon left;
  for (int i = 0; i < polygon.count; i++) {
    const Point last = polygon.corners[(i + polygon.count - 1) % polygon.count];
    const Point here = polygon.corners[i];
    const double before = side(last), now = side(here);
    // Rounding may make it turn more often than a convex polygon does.
    if ((now < 0) != (before < 0) && left.count < 8) {
      const double share = before / (before - now);
      left.add({last.x + (here.x - last.x) * share, last.y + (here.y - last.y) * share});
    }
    if (now >= 0 && left.count < 8) left.add(here);
  }
  return left;
}

float rotated_overlap(const BoundingBox& a, const BoundingBox& b) {
  const double area_a = static_cast<double>(a.v[2]) * a.v[3];
  const double area_b = static_cast<double>(b.v[2]) * b.v[3];
  if (area_a <= 0 || area_b <= 0) return 0;
  Polygon left = corners_of(a);
  const Polygon edges = corners_of(b);
  for (int i = 0; i < 4; i++) left = cut(left, edges.corners[i], edges.corners[(i + 1) % 4]);
  double common = 0;
  for (int i = 0; i < left.count; i++) {
    const Point p = left.corners[i], q = left.corners[(i + 1) % left.count];
    common += p.x * q.y - p.y * q.x;
  }
  common /= 2;
  return static_cast<float>(common / (area_a + area_b - common));
}

float limited(float value, float most) { return std::min(std::max(value, 0.f), most); }

}  // namespace

BoundingBox transform_box(const BoundingBox& box, const float* deltas, const float* weights,
                          const BoxRules& rules, const AngleRules& angles) {
  const float* v = box.v;
  const float dx = deltas[0] / weights[0], dy = deltas[1] / weights[1];
  const float grown_x = std::exp(std::min(deltas[2] / weights[2], kMostGrowth));
  const float grown_y = std::exp(std::min(deltas[3] / weights[3], kMostGrowth));
  if (rules.size == 5) {
    float angle = v[4] + deltas[4] * static_cast<float>(1 / kDegree);
    if (angles.bound) {
      const float period = angles.high - angles.low;
      if (angle < angles.low) angle += period;
      if (angle > angles.high) angle -= period;
    }
    return {{dx * v[2] + v[0], dy * v[3] + v[1], grown_x * v[2], grown_y * v[3], angle}};
  }
  const float width = v[2] - v[0] + rules.more, height = v[3] - v[1] + rules.more;
  const float x = dx * width + (v[0] + 0.5f * width), y = dy * height + (v[1] + 0.5f * height);
  const float half_x = 0.5f * grown_x * width, half_y = 0.5f * grown_y * height;
  return {{x - half_x, y - half_y, x + half_x - rules.more, y + half_y - rules.more, 0}};
}

BoundingBox clip_box(const BoundingBox& box, float height, float width, const BoxRules& rules,
                     const AngleRules& angles) {
  const float* v = box.v;
  const float right = std::max(width - rules.more, 0.f);
  const float bottom = std::max(height - rules.more, 0.f);
  if (rules.size == 4) {
    return {{limited(v[0], right), limited(v[1], bottom), limited(v[2], right),
             limited(v[3], bottom), 0}};
  }
  if (!(std::abs(v[4]) <= angles.clip)) return box;
  const float half_x = (v[2] - rules.more) / 2, half_y = (v[3] - rules.more) / 2;
  const float x1 = limited(v[0] - half_x, right), x2 = limited(v[0] + half_x, right);
  const float y1 = limited(v[1] - half_y, bottom), y2 = limited(v[1] + half_y, bottom);
  return {{(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1 + rules.more, y2 - y1 + rules.more, v[4]}};
}

float overlap(const BoundingBox& a, const BoundingBox& b, const BoxRules& rules) {
  if (rules.size == 5) return rotated_overlap(a, b);
  const float width = std::min(a.v[2], b.v[2]) - std::max(a.v[0], b.v[0]) + rules.more;
  const float height = std::min(a.v[3], b.v[3]) - std::max(a.v[1], b.v[1]) + rules.more;
  const float common = std::max(width, 0.f) * std::max(height, 0.f);
  const auto area = [&](const BoundingBox& box) {
    return (box.v[2] - box.v[0] + rules.more) * (box.v[3] - box.v[1] + rules.more);
  };
  return common / (area(a) + area(b) - common);
}

namespace {

struct Better {
  const std::vector<float>& scores;
  bool operator()(int a, int b) const {
    return scores[a] > scores[b] || (std::isnan(scores[b]) && !std::isnan(scores[a]));
  }
};

std::vector<int> numbers(size_t n) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

std::vector<int> descending(const std::vector<float>& scores) {
  std::vector<int> order = numbers(scores.size());
  std::stable_sort(order.begin(), order.end(), Better{scores});
  return order;
}

std::vector<int> best(const std::vector<float>& scores, int64_t most) {
  std::vector<int> order = numbers(scores.size());
  if (most > 0 && most < static_cast<int64_t>(order.size())) {
    std::partial_sort(order.begin(), order.begin() + most, order.end(), Better{scores});
    order.resize(most);
  } else {
    std::sort(order.begin(), order.end(), Better{scores});
  }
  return order;
}

std::vector<int> suppress(const std::vector<BoundingBox>& boxes, const std::vector<int>& order,
                          float threshold, size_t most, const BoxRules& rules) {
  std::vector<int> kept;
  for (const int candidate : order) {
    if (most > 0 && kept.size() == most) break;
    const bool stays = std::all_of(kept.begin(), kept.end(), [&](int better) {
      return overlap(boxes[better], boxes[candidate], rules) <= threshold;
    });
    if (stays) kept.push_back(candidate);
  }
  return kept;
}

namespace {

void require_columns(const Operand& what, const Tensor& boxes, int64_t least, int64_t most) {
  CAFFE2_ENFORCE(boxes.rank() == 2 && boxes.dim(1) >= least && boxes.dim(1) <= most, what,
                 " has shape ", boxes.shape().text(), "; (n, ", least, ")",
                 least == most ? "" : concat(" or (n, ", most, ")"), " is needed");
}

class BBoxTransformOperator : public Operator {
 public:
  explicit BBoxTransformOperator(const OperatorContext& context)
      : Operator(context),
        rules_(args(), args().boolean("rotated") ? 5 : 4),
        angles_(args()),
        weights_(args().reals("weights")),
        apply_scale_(args().boolean("apply_scale")) {
    CAFFE2_ENFORCE(weights_.size() == 4, "argument 'weights' has ", weights_.size(),
                   " numbers; 4 are needed");
  }

 protected:
  void run() override {
    const Tensor &rois = input(0), &deltas = input(1), &info = input(2);
    const int size = rules_.size;
    require_columns(describe_input(0), rois, size, size + 1);
    require_columns(describe_input(2), info, 3, 3);
    const int64_t rows = rois.dim(0), pictures = info.dim(0);
    CAFFE2_ENFORCE(deltas.rank() == 2 && deltas.dim(0) == rows && deltas.dim(1) % size == 0,
                   describe_input(1), " has shape ", deltas.shape().text(), "; (", rows, ", ", size,
                   " * classes) is needed");
    const int first = static_cast<int>(rois.dim(1)) - size;
    CAFFE2_ENFORCE(first == 1 || pictures == 1, describe_input(2), " has shape ",
                   info.shape().text(), "; rois without a picture's number need (1, 3)");
    const std::vector<int64_t> places = find_pictures(first == 1, pictures);
    for (int64_t p = 0; p < pictures; p++) {
      const float scale = info.data<float>()[p * 3 + 2];
      CAFFE2_ENFORCE(scale > 0, describe_input(2), " holds a scale of ", scale, "; it is above 0");
    }
    const int64_t classes = deltas.dim(1) / size;
    Tensor& y = output(0, deltas.shape(), DataType::kFloat);
    float* counts = nullptr;
    if (outputs() > 1) {
      counts = output(1, {pictures}, DataType::kFloat).mutable_data<float>();
      std::fill_n(counts, pictures, 0.f);
    }
    const float* delta = deltas.data<float>();
    float* out = y.mutable_data<float>();
    for (int64_t r = 0; r < rows; r++) {
      const float* about = info.data<float>() + places[r] * 3;
      const float scale = about[2];
      const float height = std::trunc(about[0] / scale + 0.5f);
      const float width = std::trunc(about[1] / scale + 0.5f);
      BoundingBox box = load_box(rois.data<float>() + r * (first + size) + first, size);
      for (int i = 0; i < 4; i++) box.v[i] /= scale;
      if (counts != nullptr) counts[places[r]]++;
      for (int64_t c = 0; c < classes; c++, delta += size, out += size) {
        BoundingBox found = transform_box(box, delta, weights_.data(), rules_, angles_);
        found = clip_box(found, height, width, rules_, angles_);
        for (int i = 0; i < 4 && apply_scale_; i++) found.v[i] *= scale;
        std::copy_n(found.v, size, out);
      }
    }
  }

 private:
  std::vector<int64_t> find_pictures(bool numbered, int64_t pictures) const {
    const Tensor& rois = input(0);
    std::vector<int64_t> places(rois.dim(0));
    float last = 0;
    for (int64_t r = 0; r < rois.dim(0) && numbered; r++) {
      const float number = rois.data<float>()[r * rois.dim(1)];
      CAFFE2_ENFORCE(number >= 0 && number < static_cast<float>(pictures) &&
                         number == std::trunc(number) && number >= last,
                     describe_input(0), " holds picture ", number, " in row ", r, "; there are ",
                     pictures, ", and they come in their order");
      last = number;
      places[r] = static_cast<int64_t>(number);
    }
    return places;
  }

  const BoxRules rules_;
  const AngleRules angles_;
  const std::vector<float> weights_;
  const bool apply_scale_;
};

// A box that may come out.
struct Detection {
  float score;
  BoundingBox box;
  int number;  // of its class
  int row;     // in its picture
};

class BoxWithNMSLimitOperator : public Operator {
 public:
  explicit BoxWithNMSLimitOperator(const OperatorContext& context)
      : Operator(context),
        rules_(args(), args().boolean("rotated") ? 5 : 4),
        least_(args().real("score_thresh")),
        threshold_(args().real("nms")),
        most_(args().integer("detections_per_im")),
        soft_(args().boolean("soft_nms_enabled")),
        gaussian_(args().text("soft_nms_method") == "gaussian"),
        sigma_(args().real("soft_nms_sigma")),
        soft_least_(args().real("soft_nms_min_score_thres")),
        agnostic_(args().boolean("cls_agnostic_bbox_reg")),
        skipped_(args().boolean("input_boxes_include_bg_cls") ? 0 : 1),
        first_class_(args().boolean("output_classes_include_bg_cls") ? 0 : 1) {}

 protected:
  void run() override {
    const Tensor &scores = input(0), &boxes = input(1);
    const int size = rules_.size;
    CAFFE2_ENFORCE(scores.rank() == 2 && scores.dim(1) >= 1, describe_input(0), " has shape ",
                   scores.shape().text(), "; (rows, classes) is needed");
    const int64_t rows = scores.dim(0), classes = scores.dim(1);
    const Shape needed{rows, (agnostic_ ? 1 : classes - skipped_) * size};
    CAFFE2_ENFORCE(boxes.shape() == needed, describe_input(1), " has shape ", boxes.shape().text(),
                   "; ", needed.text(), " is needed");
    const std::vector<int64_t> splits = find_splits(rows);
    const auto pictures = static_cast<int64_t>(splits.size());
    std::vector<Detection> all;
    std::vector<int64_t> counts;
    for (int64_t p = 0, start = 0; p < pictures; start += splits[p++]) {
      std::vector<Detection> found = detect(start, splits[p]);
      counts.push_back(static_cast<int64_t>(found.size()));
      all.insert(all.end(), found.begin(), found.end());
    }
    write(all, counts, classes);
  }

 private:
  std::vector<int64_t> find_splits(int64_t rows) const {
    if (!has_input(2)) return {rows};
    const Tensor& given = input(2);
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(2), " has shape ", given.shape().text(),
                   "; one dimension is needed");
    std::vector<int64_t> splits;
    int64_t sum = 0;
    for (int64_t p = 0; p < given.size(); p++) {
      const float count = given.data<float>()[p];
      CAFFE2_ENFORCE(count >= 0 && count <= static_cast<float>(rows) && count == std::trunc(count),
                     describe_input(2), " holds ", count, ", no number of rows");
      splits.push_back(static_cast<int64_t>(count));
      sum += splits.back();
    }
    CAFFE2_ENFORCE(sum == rows, describe_input(2), " holds ", sum, " rows in all; ",
                   describe_input(0), " has ", rows);
    return splits;
  }

  // The detections of one picture by class and score.
  std::vector<Detection> detect(int64_t start, int64_t count) const {
    const auto classes = static_cast<int>(input(0).dim(1));
    const auto most = static_cast<size_t>(std::max<int64_t>(most_, 0));
    std::vector<Detection> found;
    for (int number = 1; number < classes; number++) {
      const int64_t column = number - skipped_;
      const float* score = input(0).data<float>() + start * classes + column;
      const float* box = input(1).data<float>() + start * input(1).dim(1);
      if (!agnostic_) box += column * rules_.size;
      std::vector<BoundingBox> boxes;
      std::vector<float> scores;
      std::vector<int> own;
      for (int64_t r = 0; r < count; r++, score += classes, box += input(1).dim(1)) {
        if (!(*score > least_)) continue;
        boxes.push_back(load_box(box, rules_.size));
        scores.push_back(*score);
        own.push_back(static_cast<int>(r));
      }
      const std::vector<int> kept = soft_ ? suppress_softly(boxes, scores)
                                          : suppress(boxes, best(scores), threshold_, most, rules_);
      for (const int i : kept) found.push_back({scores[i], boxes[i], number, own[i]});
    }
    if (most == 0 || found.size() <= most) return found;
    std::vector<float> scores;
    for (const Detection& each : found) scores.push_back(each.score);
    std::vector<int> order = best(scores);
    order.resize(most);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return found[a].number < found[b].number; });
    std::vector<Detection> left;
    for (const int i : order) left.push_back(found[i]);
    return left;
  }

  // Scores fall with the overlap (Bodla et al., 2017).
  std::vector<int> suppress_softly(const std::vector<BoundingBox>& boxes,
                                   std::vector<float>& scores) const {
    std::vector<int> left(scores.size()), kept;
    std::iota(left.begin(), left.end(), 0);
    while (!left.empty()) {
      const auto best = std::max_element(left.begin(), left.end(),
                                         [&](int a, int b) { return scores[a] < scores[b]; });
      const int chosen = *best;
      kept.push_back(chosen);
      *best = left.front();  // which decides between equal scores later, as in the original
      left.erase(left.begin());
      for (const int other : left) {
        const float share = overlap(boxes[chosen], boxes[other], rules_);
        if (gaussian_) {
          scores[other] *= std::exp(-share * share / sigma_);
        } else if (share > threshold_) {
          scores[other] *= 1 - share;
        }
      }
      std::erase_if(left, [&](int other) { return !(scores[other] >= soft_least_); });
    }
    return kept;
  }

  void write(const std::vector<Detection>& all, const std::vector<int64_t>& counts,
             int64_t classes) {
    const auto n = static_cast<int64_t>(all.size());
    const auto pictures = static_cast<int64_t>(counts.size());
    float* scores = output(0, {n}, DataType::kFloat).mutable_data<float>();
    float* boxes = output(1, {n, rules_.size}, DataType::kFloat).mutable_data<float>();
    float* numbers = output(2, {n}, DataType::kFloat).mutable_data<float>();
    float* splits = nullptr;
    int32_t *keeps = nullptr, *sizes = nullptr;
    if (outputs() > 3) splits = output(3, {pictures}, DataType::kFloat).mutable_data<float>();
    if (outputs() > 4) keeps = output(4, {n}, DataType::kInt32).mutable_data<int32_t>();
    if (outputs() > 5) {
      sizes = output(5, {pictures, classes}, DataType::kInt32).mutable_data<int32_t>();
      std::fill_n(sizes, pictures * classes, 0);
    }
    int64_t i = 0;
    for (int64_t p = 0; p < pictures; p++) {
      if (splits != nullptr) splits[p] = static_cast<float>(counts[p]);
      for (int64_t end = i + counts[p]; i < end; i++) {
        const Detection& each = all[i];
        scores[i] = each.score;
        std::copy_n(each.box.v, rules_.size, boxes + i * rules_.size);
        numbers[i] = static_cast<float>(each.number - first_class_);
        if (keeps != nullptr) keeps[i] = each.row;
        if (sizes != nullptr) sizes[p * classes + each.number]++;
      }
    }
  }

  const BoxRules rules_;
  const float least_, threshold_;
  const int64_t most_;
  const bool soft_, gaussian_;
  const float sigma_, soft_least_;
  const bool agnostic_;
  const int skipped_, first_class_;
};

}  // namespace

REGISTER_CPU_OPERATOR(BBoxTransform, BBoxTransformOperator)
REGISTER_CPU_OPERATOR(BoxWithNMSLimit, BoxWithNMSLimitOperator)

}  // namespace caffe2
