#include "core/graph.h"

#include <map>
#include <set>
#include <string_view>

namespace caffe2 {

DependencyGraph::DependencyGraph(const NetDef& net)
    : children(net.op.size()), parents(net.op.size(), 0) {
  struct Access {
    int writer = -1;           // the last one
    std::vector<int> readers;  // since then
  };
  std::map<std::string_view, Access> accesses;
  for (int i = 0; i < static_cast<int>(net.op.size()); i++) {
    std::set<int> waits_for;
    const auto read = [&](const std::string& name) {
      Access& access = accesses[name];
      if (access.writer >= 0) waits_for.insert(access.writer);
      access.readers.push_back(i);
    };
    for (const std::string& name : net.op[i].input) read(name);
    for (const std::string& name : net.op[i].control_input) read(name);
    for (const std::string& name : net.op[i].output) {
      Access& access = accesses[name];
      if (access.writer >= 0) waits_for.insert(access.writer);
      waits_for.insert(access.readers.begin(), access.readers.end());
      access = {i, {}};
    }
    waits_for.erase(i);
    for (const int parent : waits_for) children[parent].push_back(i);
    parents[i] = static_cast<int>(waits_for.size());
  }
}

}  // namespace caffe2
