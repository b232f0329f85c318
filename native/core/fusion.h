// Serial runs: which operators do the work of those after them on the way.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/messages.h"
#include "kernels/kernels.h"

namespace caffe2 {

// What an operator does to output 0 while it writes it: y = cut(y + residual).
enum Fuses : unsigned { kFusesNothing = 0, kFusesSum = 1, kFusesBounds = 2 };

struct Fusion {
  std::optional<std::string> residual;
  std::optional<kernels::Bounds> bounds;  // of Relu or Clip
  std::string output;                     // the blob written instead of output 0
  std::vector<int> absorbed;              // the operators whose work is done on the way, in order
};

struct Step {
  int op;
  std::optional<Fusion> fusion;
};

// What fuse() has to know of each operator and blob.
struct FusionRules {
  std::function<unsigned(int op)> fuses;                // a set of Fuses
  std::function<bool(const std::string& blob)> hidden;  // nobody outside of the net can see it
};

// All operators in order, with chains such as Conv, Sum, Relu as one step at the place of the last
// one, wherever nobody can see that the values in between are missing.
std::vector<Step> fuse(const NetDef& net, const FusionRules& rules);

}  // namespace caffe2
