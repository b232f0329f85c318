// Which operators of a net have to wait for which.
#pragma once
#include <vector>

#include "core/messages.h"

namespace caffe2 {

struct DependencyGraph {
  explicit DependencyGraph(const NetDef& net);

  std::vector<std::vector<int>> children;  // per operator, those that wait for it
  std::vector<int> parents;                // per operator, how many it waits for
};

}  // namespace caffe2
