#include "core/fusion.h"

#include <algorithm>

#include "core/definitions.h"

namespace caffe2 {

namespace {

// Whether an operator is no more than what its type says: not bound to its NumPy body. Other
// engines, such as CUDNN in nets that brew builds, have no kernels of their own for these types.
bool is_plain(const OperatorDef& op, const char* type, size_t inputs) {
  return op.type == type && op.input.size() == inputs && op.output.size() == 1 &&
         op.control_input.empty() && op.engine.value_or("") != "REFERENCE";
}

// Of Relu and Clip.
std::optional<kernels::Bounds> bounds_of(const OperatorDef& op) {
  if (is_plain(op, "Relu", 1)) return kernels::Bounds{0};
  if (!is_plain(op, "Clip", 1)) return std::nullopt;
  kernels::Bounds bounds;
  for (const Argument& arg : op.arg) {
    if (arg.name != "min" && arg.name != "max") continue;
    const float value = arg.f ? *arg.f : static_cast<float>(arg.i.value_or(0));
    (arg.name == "min" ? bounds.low : bounds.high) = value;
  }
  return bounds;
}

bool runs_nets(const OperatorDef& op) {
  bool found = false;
  for_each_net(op, [&found](const NetDef&) { found = true; });
  return found;
}

class Chain {
 public:
  Chain(const NetDef& net, const FusionRules& rules, int first)
      : net_(net), rules_(rules), first_(first), last_(first), fuses_(rules.fuses(first)) {
    fusion_.output = net.op[first].output[0];
  }

  // Takes the next operator into the chain, where that is possible.
  bool grow() {
    const std::string current = fusion_.output;
    int next = last_ + 1;
    for (; next < size(); next++) {
      const OperatorDef& op = net_.op[next];
      if (has(op.input, current) || has(op.output, current)) break;
      // The first operator will run later than it did: after this one, which must not matter.
      for (const std::string& name : op.output) {
        if (has(net_.op[first_].input, name) || name == fusion_.residual) return false;
      }
      if (!op.control_input.empty() || runs_nets(op)) return false;
    }
    if (next == size() || !takes(net_.op[next], current)) return false;
    const std::string& output = net_.op[next].output[0];
    if (output == current) {
      // Blobs of the workspace may have other names as well, which operators in between may use.
      if (!rules_.hidden(current) && next != last_ + 1) return false;
    } else if (!rules_.hidden(current) || is_read_after(next, current)) {
      return false;
    }
    absorb(next);
    return true;
  }

  bool has_grown() const { return !fusion_.absorbed.empty(); }
  int last() const { return last_; }
  const Fusion& fusion() const { return fusion_; }

 private:
  int size() const { return static_cast<int>(net_.op.size()); }

  bool takes(const OperatorDef& op, const std::string& current) const {
    if (fusion_.bounds || !has(op.input, current)) return false;
    if (bounds_of(op)) return fuses_ & kFusesBounds;
    return (is_plain(op, "Sum", 2) || (is_plain(op, "Add", 2) && op.arg.empty())) &&
           fuses_ & kFusesSum && !fusion_.residual && op.input[0] != op.input[1];
  }

  bool is_read_after(int op, const std::string& name) const {
    for (int i = op + 1; i < size(); i++) {
      if (has(net_.op[i].input, name)) return true;
      if (has(net_.op[i].output, name)) return false;
    }
    return false;
  }

  void absorb(int next) {
    const OperatorDef& op = net_.op[next];
    if (const auto bounds = bounds_of(op)) {
      fusion_.bounds = bounds;
    } else {
      fusion_.residual = op.input[op.input[0] == fusion_.output];
    }
    fusion_.output = op.output[0];
    fusion_.absorbed.push_back(next);
    last_ = next;
  }

  const NetDef& net_;
  const FusionRules& rules_;
  const int first_;
  int last_;
  const unsigned fuses_;
  Fusion fusion_;
};

}  // namespace

std::vector<Step> fuse(const NetDef& net, const FusionRules& rules) {
  const int size = static_cast<int>(net.op.size());
  std::vector<std::optional<Step>> at(size);
  std::vector<bool> absorbed(size, false);
  // From the end: of the two operators whose outputs are added, the later one takes the sum.
  for (int i = size - 1; i >= 0; i--) {
    if (absorbed[i]) continue;
    at[i] = Step{i, std::nullopt};
    if (rules.fuses(i) == kFusesNothing || net.op[i].output.empty()) continue;
    Chain chain(net, rules, i);
    while (chain.grow()) {
    }
    if (!chain.has_grown()) continue;
    const std::vector<int>& taken = chain.fusion().absorbed;
    if (std::any_of(taken.begin(), taken.end(), [&](int j) { return absorbed[j]; })) continue;
    for (const int j : taken) {
      absorbed[j] = true;
      at[j].reset();
    }
    at[i].reset();
    at[chain.last()] = Step{i, chain.fusion()};
  }
  std::vector<Step> steps;
  for (std::optional<Step>& step : at) {
    if (step) steps.push_back(std::move(*step));
  }
  return steps;
}

}  // namespace caffe2
