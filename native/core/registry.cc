#include "core/registry.h"

#include <algorithm>
#include <vector>

namespace caffe2 {

const KernelRegistry& KernelRegistry::builtin() {
  static const KernelRegistry registry = [] {
    KernelRegistry r;
    register_generated_kernels(r);
    return r;
  }();
  return registry;
}

std::string KernelRegistry::key(std::string_view type, Device device, std::string_view engine) {
  std::string key(type);
  key += '/';
  key += std::to_string(static_cast<int>(device));
  key += '/';
  key += engine;
  return key;
}

void KernelRegistry::add(std::string_view type, Device device, std::string_view engine,
                         OperatorFactory factory) {
  if (!factories_.emplace(key(type, device, engine), factory).second) {
    fail(Code::kInternal, "two kernels are registered as ", key(type, device, engine));
  }
}

OperatorFactory KernelRegistry::find(std::string_view type, Device device,
                                     std::string_view engine) const {
  auto it = factories_.find(key(type, device, engine));
  if (it == factories_.end()) it = factories_.find(key(type, device, ""));
  return it == factories_.end() ? nullptr : it->second;
}

std::string KernelRegistry::describe(std::string_view type) const {
  std::vector<std::string> found;
  const std::string prefix = key(type, Device::kCPU, "");
  for (const auto& [name, factory] : factories_) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    found.push_back(name.size() == prefix.size() ? "CPU" : "CPU/" + name.substr(prefix.size()));
  }
  std::sort(found.begin(), found.end());
  std::string out;
  for (const std::string& name : found) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "none" : out;
}

}  // namespace caffe2
