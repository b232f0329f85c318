// The best sequence of labels for scores of each step: CTC decoders and paths through chains.
#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"

namespace caffe2 {
namespace {

// Scores (time, batch, ids), and how many steps of each sequence count.
class DecoderOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  int64_t steps() const { return input(0).dim(0); }
  int64_t batch() const { return input(0).dim(1); }
  int64_t ids() const { return input(0).dim(2); }
  int64_t length(int64_t n) const { return has_input(1) ? input(1).data<int32_t>()[n] : steps(); }
  const float* scores(int64_t t, int64_t n) const {
    return input(0).data<float>() + (t * batch() + n) * ids();
  }

  void check() const {
    CAFFE2_ENFORCE(input(0).rank() == 3 && input(0).dim(2) > 0, describe_input(0), " has shape ",
                   input(0).shape().text(), "; (time, batch, ids) is needed, with 1 id at least");
    if (!has_input(1)) return;
    CAFFE2_ENFORCE(input(1).rank() == 1 && input(1).dim(0) == batch(), describe_input(1),
                   " has shape ", input(1).shape().text(), ", but ", describe_input(0), " has ",
                   input(0).shape().text());
    for (int64_t n = 0; n < batch(); n++) {
      CAFFE2_ENFORCE(length(n) >= 0 && length(n) <= steps(), describe_input(1), " holds ",
                     length(n), "; there are ", steps(), " steps");
    }
  }
};

class CtcGreedyDecoderOperator : public DecoderOperator {
 public:
  explicit CtcGreedyDecoderOperator(const OperatorContext& context)
      : DecoderOperator(context), merges_(args().boolean("merge_repeated")) {}

 protected:
  void run() override {
    check();
    std::vector<int32_t> values, counts(batch(), 0);
    for (int64_t n = 0; n < batch(); n++) {
      int64_t last = 0;
      for (int64_t t = 0; t < length(n); t++) {
        const float* row = scores(t, n);
        const int64_t best = std::max_element(row, row + ids()) - row;
        if (best != 0 && !(merges_ && best == last)) {
          values.push_back(static_cast<int32_t>(best));
          counts[n]++;
        }
        last = best;
      }
    }
    Tensor& lengths = output(0, {batch()}, DataType::kInt32);
    Tensor& labels = output(1, {static_cast<int64_t>(values.size())}, DataType::kInt32);
    std::copy(counts.begin(), counts.end(), lengths.mutable_data<int32_t>());
    std::copy(values.begin(), values.end(), labels.mutable_data<int32_t>());
  }

 private:
  const bool merges_;
};

class CtcBeamSearchDecoderOperator : public DecoderOperator {
 public:
  explicit CtcBeamSearchDecoderOperator(const OperatorContext& context)
      : DecoderOperator(context),
        width_(args().integer("beam_width")),
        candidates_(args().integer("num_candidates")),
        threshold_(args().real("prune_threshold")) {
    CAFFE2_ENFORCE(candidates_ <= width_, "argument 'num_candidates' is ", candidates_,
                   "; beam_width is ", width_);
  }

 protected:
  void run() override {
    check();
    struct Found {
      int64_t place;
      int32_t count;
      float chance;
    };
    const int64_t all = Shape{batch(), candidates_}.size();
    std::vector<int32_t> values;
    std::vector<Found> sequences;
    for (int64_t n = 0; n < batch(); n++) {
      Search search{{{-1, 0}}, {{0, 0}}, {{0, {1, 0}}}, {{0, {1, 0}}}};
      for (int64_t t = 0; t < length(n); t++) step(search, scores(t, n));
      if (length(n) == 0) continue;
      const auto found = std::min<int64_t>(candidates_, static_cast<int64_t>(search.beams.size()));
      for (int64_t k = 0; k < found; k++) {
        const auto& [key, chance] = search.beams[k];
        const size_t start = values.size();
        for (int64_t at = search.node_of[key]; at > 0; at = search.nodes[at].parent) {
          values.push_back(search.nodes[at].label);
        }
        std::reverse(values.begin() + static_cast<int64_t>(start), values.end());
        sequences.push_back({n * candidates_ + k, static_cast<int32_t>(values.size() - start),
                             static_cast<float>(chance.sum())});
      }
    }
    Tensor& lengths = output(0, {all}, DataType::kInt32);
    Tensor& labels = output(1, {static_cast<int64_t>(values.size())}, DataType::kInt32);
    Tensor* probabilities = outputs() > 2 ? &output(2, {all}, DataType::kFloat) : nullptr;
    int32_t* counts = lengths.mutable_data<int32_t>();
    std::fill_n(counts, all, 0);
    for (const Found& one : sequences) counts[one.place] = one.count;
    std::copy(values.begin(), values.end(), labels.mutable_data<int32_t>());
    if (!probabilities) return;
    float* chances = probabilities->mutable_data<float>();
    std::fill_n(chances, all, 0.0f);
    for (const Found& one : sequences) chances[one.place] = one.chance;
  }

 private:
  struct Chance {
    double blank = 0, other = 0;  // with and without a blank at the end
    double sum() const { return blank + other; }
  };
  // The last label of a prefix that was a beam, and the prefix before it.
  struct Node {
    int64_t parent;
    int32_t label;
  };
  // A prefix has the key parent node * ids + label + 1; the empty one 0.
  struct Search {
    std::vector<Node> nodes;
    std::unordered_map<int64_t, int64_t> node_of;
    std::vector<std::pair<int64_t, Chance>> beams;
    std::unordered_map<int64_t, Chance> before;  // all prefixes of the last step
  };

  void step(Search& search, const float* scores) const {
    std::vector<std::pair<int64_t, Chance>> found;
    std::unordered_map<int64_t, size_t> place;
    for (const auto& [key, chance] : search.beams) {
      place.emplace(key, found.size());
      found.emplace_back(key, Chance());
    }
    const size_t beams = found.size();
    for (size_t k = 0; k < beams; k++) {
      const auto& [key, chance] = search.beams[k];
      const int64_t node = search.node_of[key];
      const int32_t last = search.nodes[node].label;
      for (int64_t label = 0; label < ids(); label++) {
        const double score = scores[label];
        if (!(scores[label] > threshold_)) continue;
        if (label == 0) {
          found[k].second.blank += score * chance.sum();
          continue;
        }
        const bool follows = node > 0 && last == label;
        if (follows) found[k].second.other += score * chance.other;
        const int64_t longer = node * ids() + label + 1;
        const auto [where, is_new] = place.emplace(longer, found.size());
        if (is_new) found.emplace_back(longer, Chance());
        Chance& grown = found[where->second].second;
        grown.other += score * (follows ? chance.blank : chance.sum());
        const auto known = search.before.find(longer);
        if (where->second >= beams && known != search.before.end()) {
          grown.blank += static_cast<double>(scores[0]) * known->second.sum();
          grown.other += score * known->second.other;
        }
      }
    }
    std::erase_if(found, [](const auto& each) { return !(each.second.sum() > 0); });
    search.before.clear();
    search.before.insert(found.begin(), found.end());
    // The most likely ones; of equal ones those that were found first.
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.second.sum() > b.second.sum(); });
    if (static_cast<int64_t>(found.size()) > width_) found.resize(width_);
    for (const auto& [key, chance] : found) {
      const auto [where, is_new] =
          search.node_of.emplace(key, static_cast<int64_t>(search.nodes.size()));
      if (!is_new) continue;
      search.nodes.push_back({(key - 1) / ids(), static_cast<int32_t>((key - 1) % ids())});
    }
    search.beams = std::move(found);
  }

  const int64_t width_, candidates_;
  const float threshold_;
};

// Inputs predictions (steps, labels), transitions (labels, labels).
class ViterbiPathOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &x = input(0), &transitions = input(1);
    CAFFE2_ENFORCE(x.rank() == 2 && x.dim(0) > 0 && x.dim(1) > 0, describe_input(0), " has shape ",
                   x.shape().text(), "; steps and labels are needed");
    const int64_t steps = x.dim(0), labels = x.dim(1);
    CAFFE2_ENFORCE((transitions.shape() == Shape{labels, labels}), describe_input(1), " has shape ",
                   transitions.shape().text(), "; (", labels, ", ", labels, ") is needed");
    const float *scores = x.data<float>(), *moves = transitions.data<float>();
    std::vector<double> best(scores, scores + labels), next(labels);
    std::vector<int32_t> before(steps * labels);
    for (int64_t t = 1; t < steps; t++) {
      for (int64_t to = 0; to < labels; to++) {
        int64_t from = 0;
        for (int64_t k = 1; k < labels; k++) {
          if (best[k] + moves[k * labels + to] > best[from] + moves[from * labels + to]) from = k;
        }
        before[t * labels + to] = static_cast<int32_t>(from);
        next[to] = best[from] + moves[from * labels + to] + scores[t * labels + to];
      }
      best.swap(next);
    }
    int32_t* path = output(0, {steps}, DataType::kInt32).mutable_data<int32_t>();
    path[steps - 1] =
        static_cast<int32_t>(std::max_element(best.begin(), best.end()) - best.begin());
    for (int64_t t = steps - 1; t > 0; t--) path[t - 1] = before[t * labels + path[t]];
  }
};

// Inputs predictions (steps, labels), path (steps).
class SwapBestPathOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &x = input(0), &path = input(1);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    const int64_t steps = x.dim(0), labels = x.dim(1);
    CAFFE2_ENFORCE(path.shape() == Shape{steps}, describe_input(1), " has shape ",
                   path.shape().text(), "; (", steps, ",) is needed");
    const int32_t* label = path.data<int32_t>();
    for (int64_t t = 0; t < steps; t++) {
      CAFFE2_ENFORCE(label[t] >= 0 && label[t] < labels, describe_input(1), " holds ", label[t],
                     "; there are ", labels, " labels");
    }
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    y.copy_from(x);
    float* row = y.mutable_data<float>();
    for (int64_t t = 0; t < steps; t++, row += labels) {
      std::swap(*std::max_element(row, row + labels), row[label[t]]);
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(CTCGreedyDecoder, CtcGreedyDecoderOperator)
REGISTER_CPU_OPERATOR(CTCBeamSearchDecoder, CtcBeamSearchDecoderOperator)
REGISTER_CPU_OPERATOR(ViterbiPath, ViterbiPathOperator)
REGISTER_CPU_OPERATOR(SwapBestPath, SwapBestPathOperator)

}  // namespace caffe2
