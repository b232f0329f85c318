// Proposals: made from anchors, collected from and dealt out to the levels of a feature pyramid.
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/boxes.h"

namespace caffe2 {
namespace {

class GenerateProposalsOperator : public Operator {
 public:
  explicit GenerateProposalsOperator(const OperatorContext& context)
      : Operator(context),
        angles_(args()),
        step_(1.f / args().real("spatial_scale")),
        before_(args().integer("pre_nms_topN")),
        after_(args().integer("post_nms_topN")),
        threshold_(args().real("nms_thresh")),
        least_(args().real("min_size")) {}

 protected:
  void run() override {
    const Tensor &scores = input(0), &deltas = input(1), &info = input(2), &anchors = input(3);
    CAFFE2_ENFORCE(anchors.rank() == 2 && (anchors.dim(1) == 4 || anchors.dim(1) == 5),
                   describe_input(3), " has shape ", anchors.shape().text(),
                   "; (anchors, 4) or (anchors, 5) is needed");
    const int64_t count = anchors.dim(0), size = anchors.dim(1);
    CAFFE2_ENFORCE(scores.rank() == 4 && scores.dim(1) == count, describe_input(0), " has shape ",
                   scores.shape().text(), "; (N, ", count, ", H, W) is needed");
    const int64_t n = scores.dim(0);
    const Shape needed{n, count * size, scores.dim(2), scores.dim(3)};
    CAFFE2_ENFORCE(deltas.shape() == needed, describe_input(1), " has shape ",
                   deltas.shape().text(), "; ", needed.text(), " is needed");
    CAFFE2_ENFORCE(info.shape() == Shape({n, 3}), describe_input(2), " has shape ",
                   info.shape().text(), "; (", n, ", 3) is needed");
    const BoxRules rules(args(), static_cast<int>(size));
    std::vector<Found> found(n);
    for (int64_t p = 0; p < n; p++) found[p] = propose(p, rules);
    int64_t rows = 0;
    for (const Found& each : found) rows += static_cast<int64_t>(each.kept.size());
    float* rois = output(0, {rows, size + 1}, DataType::kFloat).mutable_data<float>();
    float* probs = output(1, {rows}, DataType::kFloat).mutable_data<float>();
    for (int64_t p = 0; p < n; p++) {
      for (const int i : found[p].kept) {
        *rois++ = static_cast<float>(p);
        rois = std::copy_n(found[p].boxes[i].v, size, rois);
        *probs++ = found[p].scores[i];
      }
    }
  }

 private:
  struct Found {
    std::vector<BoundingBox> boxes;
    std::vector<float> scores;
    std::vector<int> kept;
  };

  Found propose(int64_t p, const BoxRules& rules) const {
    const int64_t count = input(0).dim(1), width = input(0).dim(3);
    const int64_t places = input(0).dim(2) * width, size = rules.size;
    const float* score = input(0).data<float>() + p * count * places;
    const float* delta = input(1).data<float>() + p * count * size * places;
    const float* info = input(2).data<float>() + p * 3;
    const std::vector<float> scores(score, score + count * places);
    const std::vector<int> order = best(scores, before_);
    const float ones[] = {1, 1, 1, 1};
    const float high = std::trunc(info[0]), wide = std::trunc(info[1]), least = least_ * info[2];
    Found found;
    std::vector<int> large;
    for (const int chosen : order) {
      const int64_t place = chosen % places, a = chosen / places;
      BoundingBox box = load_box(input(3).data<float>() + a * size, rules.size);
      const float x = static_cast<float>(place % width) * step_;
      const float y = static_cast<float>(place / width) * step_;
      for (int i = 0; i < (size == 5 ? 2 : 4); i++) box.v[i] += i % 2 == 0 ? x : y;
      float own[5];
      for (int64_t i = 0; i < size; i++) own[i] = delta[(a * size + i) * places + place];
      box = clip_box(transform_box(box, own, ones, rules, angles_), high, wide, rules, angles_);
      if (is_large(box, high, wide, least, rules)) {
        large.push_back(static_cast<int>(found.boxes.size()));
      }
      found.boxes.push_back(box);
      found.scores.push_back(scores[chosen]);
    }
    const auto most = static_cast<size_t>(std::max<int64_t>(after_, 0));
    found.kept = suppress(found.boxes, large, threshold_, most, rules);
    return found;
  }

  // Whether its sides are not shorter than `least`, and its center is in the picture.
  static bool is_large(const BoundingBox& box, float high, float wide, float least,
                       const BoxRules& rules) {
    float x = box.v[0], y = box.v[1], width = box.v[2], height = box.v[3];
    if (rules.size == 4) {
      width = box.v[2] - box.v[0] + rules.more;
      height = box.v[3] - box.v[1] + rules.more;
      x += width / 2;
      y += height / 2;
    }
    return width >= least && height >= least && x < wide && y < high;
  }

  const AngleRules angles_;
  const float step_;
  const int64_t before_, after_;
  const float threshold_, least_;
};

constexpr int64_t kRoi = 5;  // the number of the picture and a box

// Levels of a pyramid, from arguments that begin with `kind`.
struct Levels {
  Levels(const Arguments& args, const std::string& kind)
      : low(args.int32(kind + "_min_level")), high(args.int32(kind + "_max_level")) {
    CAFFE2_ENFORCE(low <= high, "argument '", kind, "_min_level' is ", low, ", above the maximum ",
                   high);
  }
  int count() const { return high - low + 1; }
  int low, high;
};

class CollectOperator : public Operator {
 public:
  explicit CollectOperator(const OperatorContext& context)
      : Operator(context), levels_(args(), "rpn"), most_(args().integer("rpn_post_nms_topN")) {
    CAFFE2_ENFORCE(static_cast<int>(context.def.input.size()) == 2 * levels_.count(), "it has ",
                   context.def.input.size(), " inputs; ", levels_.count(), " levels need ",
                   2 * levels_.count(), ": rois, then scores");
  }

 protected:
  void run() override {
    const std::vector<const float*> rows = collect();
    float* out = output(0, {static_cast<int64_t>(rows.size()), kRoi}, DataType::kFloat)
                     .mutable_data<float>();
    for (const float* row : rows) out = std::copy_n(row, kRoi, out);
  }

  // The rois with the best scores, the best first.
  std::vector<const float*> collect() const {
    std::vector<const float*> rows;
    std::vector<float> scores;
    for (int level = 0; level < levels_.count(); level++) {
      const Tensor &rois = input(level), &own = input(level + levels_.count());
      CAFFE2_ENFORCE(rois.rank() == 2 && rois.dim(1) == kRoi, describe_input(level), " has shape ",
                     rois.shape().text(), "; (n, 5) is needed");
      CAFFE2_ENFORCE(own.shape() == Shape{rois.dim(0)}, describe_input(level + levels_.count()),
                     " has shape ", own.shape().text(), "; (", rois.dim(0), ",) is needed");
      for (int64_t r = 0; r < rois.dim(0); r++) rows.push_back(rois.data<float>() + r * kRoi);
      scores.insert(scores.end(), own.data<float>(), own.data<float>() + own.size());
    }
    std::vector<int> order = descending(scores);
    if (static_cast<int64_t>(order.size()) > most_) order.resize(most_);
    std::vector<const float*> chosen;
    for (const int i : order) chosen.push_back(rows[i]);
    return chosen;
  }

 private:
  const Levels levels_;
  const int64_t most_;
};

// Which rois belong to which level.
class Distribution {
 public:
  explicit Distribution(const OperatorContext& context, const Arguments& args, int others)
      : levels_(args, "roi"),
        scale_(static_cast<float>(args.integer("roi_canonical_scale"))),
        level_(static_cast<float>(args.integer("roi_canonical_level"))),
        more_(args.boolean("legacy_plus_one") ? 1.f : 0.f) {
    const int needed = levels_.count() + others;
    CAFFE2_ENFORCE(static_cast<int>(context.def.output.size()) == needed, "it has ",
                   context.def.output.size(), " outputs; ", levels_.count(), " levels need ",
                   needed);
  }

  std::vector<std::vector<int>> distribute(const std::vector<const float*>& rois) const {
    std::vector<std::vector<int>> rows(levels_.count());
    for (size_t r = 0; r < rois.size(); r++) {
      const float width = std::max(rois[r][3] - rois[r][1] + more_, 0.f);
      const float height = std::max(rois[r][4] - rois[r][2] + more_, 0.f);
      const float size = std::sqrt(width * height) / scale_ + 1e-6f;
      const float level = std::floor(std::log2(size) + level_);
      // A NaN is on the lowest level.
      const float low = static_cast<float>(levels_.low), high = static_cast<float>(levels_.high);
      const float limited = level >= low ? std::min(level, high) : low;
      rows[static_cast<int>(limited) - levels_.low].push_back(static_cast<int>(r));
    }
    return rows;
  }

 private:
  const Levels levels_;
  const float scale_, level_, more_;
};

// Calls out(i, rows) for the outputs of the levels, and fills `restore`, the last output.
template <class Out>
void write_levels(const std::vector<std::vector<int>>& levels,
                  const std::vector<const float*>& rois, int32_t* restore, const Out& out) {
  int32_t place = 0;
  for (size_t level = 0; level < levels.size(); level++) {
    float* to = out(static_cast<int>(level));
    for (const int r : levels[level]) {
      to = std::copy_n(rois[r], kRoi, to);
      restore[r] = place++;
    }
  }
}

class DistributeOperator : public Operator {
 public:
  explicit DistributeOperator(const OperatorContext& context)
      : Operator(context), distribution_(context, args(), 1) {}

 protected:
  void run() override {
    const Tensor& rois = input(0);
    CAFFE2_ENFORCE(rois.rank() == 2 && rois.dim(1) == kRoi, describe_input(0), " has shape ",
                   rois.shape().text(), "; (n, 5) is needed");
    std::vector<const float*> rows;
    for (int64_t r = 0; r < rois.dim(0); r++) rows.push_back(rois.data<float>() + r * kRoi);
    const auto levels = distribution_.distribute(rows);
    std::vector<float*> to;
    for (size_t i = 0; i < levels.size(); i++) {
      const Shape shape{static_cast<int64_t>(levels[i].size()), kRoi};
      to.push_back(output(static_cast<int>(i), shape, DataType::kFloat).mutable_data<float>());
    }
    Tensor& restore = output(static_cast<int>(levels.size()), {rois.dim(0)}, DataType::kInt32);
    write_levels(levels, rows, restore.mutable_data<int32_t>(), [&](int i) { return to[i]; });
  }

 private:
  const Distribution distribution_;
};

class CollectAndDistributeOperator : public CollectOperator {
 public:
  explicit CollectAndDistributeOperator(const OperatorContext& context)
      : CollectOperator(context), distribution_(context, args(), 2) {}

 protected:
  void run() override {
    const std::vector<const float*> rows = collect();
    const auto levels = distribution_.distribute(rows);
    const auto n = static_cast<int64_t>(rows.size());
    std::vector<float*> to;
    float* all = output(0, {n, kRoi}, DataType::kFloat).mutable_data<float>();
    for (size_t i = 0; i < levels.size(); i++) {
      const Shape shape{static_cast<int64_t>(levels[i].size()), kRoi};
      to.push_back(output(static_cast<int>(i) + 1, shape, DataType::kFloat).mutable_data<float>());
    }
    Tensor& restore = output(static_cast<int>(levels.size()) + 1, {n}, DataType::kInt32);
    for (const float* row : rows) all = std::copy_n(row, kRoi, all);
    write_levels(levels, rows, restore.mutable_data<int32_t>(), [&](int i) { return to[i]; });
  }

 private:
  const Distribution distribution_;
};

}  // namespace

REGISTER_CPU_OPERATOR(GenerateProposals, GenerateProposalsOperator)
REGISTER_CPU_OPERATOR(GenerateProposalsCPP, GenerateProposalsOperator)
REGISTER_CPU_OPERATOR(CollectRpnProposals, CollectOperator)
REGISTER_CPU_OPERATOR(DistributeFpnProposals, DistributeOperator)
REGISTER_CPU_OPERATOR(CollectAndDistributeFpnRpnProposals, CollectAndDistributeOperator)

}  // namespace caffe2
