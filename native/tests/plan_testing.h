// What tests of plans build them of, and operators that do what a test says.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/plan.h"

namespace caffe2::plan_testing {

inline OperatorDef op(const std::string& type, std::vector<std::string> in,
                      std::vector<std::string> out) {
  OperatorDef def;
  def.type = type;
  def.input = std::move(in);
  def.output = std::move(out);
  return def;
}

inline NetDef net(const std::string& name, std::vector<OperatorDef> ops) {
  NetDef def;
  def.name = name;
  def.op = std::move(ops);
  return def;
}

inline ExecutionStep step(const std::string& name, std::vector<std::string> networks,
                          std::optional<int64_t> num_iter = {}) {
  ExecutionStep def;
  def.name = name;
  def.network = std::move(networks);
  def.num_iter = num_iter;
  return def;
}

inline ExecutionStep steps(const std::string& name, std::vector<ExecutionStep> substeps,
                           std::optional<int64_t> num_iter = {}) {
  ExecutionStep def;
  def.name = name;
  def.substep = std::move(substeps);
  def.num_iter = num_iter;
  return def;
}

inline ExecutionStep side_by_side(ExecutionStep def) {
  def.concurrent_substeps = true;
  return def;
}

inline ExecutionStep until(const std::string& blob, ExecutionStep def) {
  def.should_stop_blob = blob;
  return def;
}

inline ExecutionStep every_ms(int64_t time, ExecutionStep def) {
  def.run_every_ms = time;
  return def;
}

inline ExecutionStep reporting(const std::string& report, int32_t seconds, ExecutionStep def) {
  def.report_net = report;
  def.report_interval = seconds;
  return def;
}

inline ExecutionStep in_own_workspace(ExecutionStep def) {
  def.create_workspace = true;
  return def;
}

template <class F>
Error error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::kInternal, "no error");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What operators with engine REFERENCE do here: they note their name, then act.
struct Actions {
  std::mutex mutex;
  std::vector<std::string> log;
  std::set<std::thread::id> threads;
  std::map<std::string, std::function<void(int call, RunContext&)>> act;
  std::map<std::string, int> calls;

  void call(const std::string& name, RunContext& context) {
    std::function<void(int, RunContext&)> action;
    int number = 0;
    {
      std::lock_guard lock(mutex);
      log.push_back(name);
      threads.insert(std::this_thread::get_id());
      number = ++calls[name];
      if (const auto found = act.find(name); found != act.end()) action = found->second;
    }
    if (action) action(number, context);
  }
  std::string text() {
    std::lock_guard lock(mutex);
    std::string out;
    for (const std::string& name : log) out += (out.empty() ? "" : " ") + name;
    log.clear();
    return out;
  }
};

class ActionOperator : public Operator {
 public:
  ActionOperator(const OperatorContext& context, Actions& actions)
      : Operator(context), actions_(actions) {}

 protected:
  void run() override { actions_.call(def().name.value_or(""), context()); }

 private:
  Actions& actions_;
};

struct Fixture {
  std::shared_ptr<Engine> engine = std::make_shared<Engine>(EngineOptions{2, "auto", 0});
  Actions actions;
  Workspace workspace{engine};

  Fixture() {
    workspace.set_reference_factory([this](const OperatorContext& context) {
      return std::make_unique<ActionOperator>(context, actions);
    });
  }

  // A net of one operator that is noted and does what `act` says for its name.
  static NetDef acting(const std::string& name) {
    OperatorDef def = op("ConstantFill", {}, {"out_of_" + name});
    def.name = name;
    def.engine = "REFERENCE";
    return net(name, {def});
  }
  static PlanDef plan_of(std::vector<ExecutionStep> steps, std::vector<NetDef> nets = {}) {
    PlanDef def;
    def.name = "plan";
    for (const char* name : {"a", "b", "c", "r"}) nets.push_back(acting(name));
    def.network = std::move(nets);
    def.execution_step = std::move(steps);
    return def;
  }
  std::string run(std::vector<ExecutionStep> steps, std::vector<NetDef> nets = {}) {
    run_plan(workspace, plan_of(std::move(steps), std::move(nets)));
    return actions.text();
  }
  Error error(std::vector<ExecutionStep> steps, std::vector<NetDef> nets = {}) {
    return error_of([&] { run(std::move(steps), std::move(nets)); });
  }

  void feed_flag(const std::string& name, bool value) {
    Tensor tensor(engine->allocator(), {}, DataType::kBool);
    *tensor.mutable_data<bool>() = value;
    workspace.create_blob(name)->set(std::move(tensor));
  }
  void feed(const std::string& name, std::vector<float> values) {
    Tensor tensor(engine->allocator(), {static_cast<int64_t>(values.size())}, DataType::kFloat);
    std::copy(values.begin(), values.end(), tensor.mutable_data<float>());
    workspace.create_blob(name)->set(std::move(tensor));
  }
  template <class T>
  std::vector<T> fetch(const std::string& name) {
    const Tensor tensor = workspace.get_blob(name)->get().tensor;
    return {tensor.data<T>(), tensor.data<T>() + tensor.size()};
  }
  // From call number `call` of the operator on, the flag is set.
  void stop_at(const std::string& name, int call) {
    feed_flag("stop", false);
    actions.calls.clear();
    actions.act.clear();
    actions.act[name] = [this, call](int number, RunContext&) {
      if (number >= call) feed_flag("stop", true);
    };
  }
};

// Lets `count` threads go on together; false when they do not all come.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  bool wait() {
    std::unique_lock lock(mutex_);
    missing_--;
    changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};

inline void wait_until_cancelled(int, RunContext& context) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  context.cancellation.wait(never, lock, [] { return false; }, [] { return std::string(); });
}

}  // namespace caffe2::plan_testing
