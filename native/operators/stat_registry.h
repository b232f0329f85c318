// Statistics of a process: named counts that operators add to.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core/operator.h"

namespace caffe2 {

inline int64_t wrapping_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

class StatRegistry : public Object {
 public:
  const char* kind() const override { return "std::unique_ptr<caffe2::StatRegistry>"; }
  // Of the process: what operators write, and what is meant where no other is given.
  static StatRegistry& global() {
    static StatRegistry registry;
    return registry;
  }

  void add(const std::string& key, int64_t value) {
    std::lock_guard lock(mutex_);
    int64_t& stat = stats_[key];
    stat = wrapping_sum(stat, value);
  }
  std::map<std::string, int64_t> export_all(bool reset) {
    std::lock_guard lock(mutex_);
    std::map<std::string, int64_t> copy = stats_;
    if (reset) {
      for (auto& [key, value] : stats_) value = 0;
    }
    return copy;
  }

 private:
  ForkMutex mutex_;
  std::map<std::string, int64_t> stats_;
};

}  // namespace caffe2
