// Questions that several parts ask of operators' definitions.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/messages.h"

namespace caffe2 {

inline bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Calls f with each net that an operator (OperatorDef, const or not) holds in its arguments.
template <class Op, class F>
void for_each_net(Op& op, const F& f) {
  for (auto& arg : op.arg) {
    if (arg.n) f(*arg.n);
    for (auto& net : arg.nets) f(net);
  }
}

// Makes nets of the text in which old nets quote them, in nets inside too: whoever looks for nets
// then finds all. Raises Error(kInvalidArgument) for text that is no net, and for nets that are
// nested too deep.
void unquote_nets(OperatorDef& op, int depth = 0);

}  // namespace caffe2
