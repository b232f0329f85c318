#include "core/plan.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/definitions.h"
#include "core/near_names.h"
#include "core/net.h"

namespace caffe2 {

namespace {

constexpr int64_t kMaxSteps = 1 << 16;    // of one plan, those in concurrent instances counted each
constexpr int64_t kMaxThreads = 1 << 12;  // that one plan may start

// Names the step in an error that comes out of `work`, unless a step inside it is named.
template <class Work>
void in_step(const ExecutionStep& step, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    if (!error.location().step.empty()) throw;
    ErrorLocation where = error.location();
    where.step = step.name.value_or("");
    throw Error(error.code(), error.text(), where, error.cause());
  }
}

// ---- What a plan says, checked ----

bool runs_side_by_side(const ExecutionStep& step) {
  return step.concurrent_substeps.value_or(false);
}

int64_t instances(const ExecutionStep& step) {
  return runs_side_by_side(step) ? std::max(1, step.num_concurrent_instances.value_or(1)) : 1;
}

class Plan {
 public:
  Plan(const PlanDef& def, const PlanSites& sites) : sites_(sites) {
    for (size_t i = 0; i < def.network.size(); i++) {
      const NetDef& net = def.network[i];
      const std::string name = net.name.value_or("");
      CAFFE2_ENFORCE(nets_.emplace(name, Entry{&net, i}).second,
                     "the plan has two networks of the name '", name, "'");
    }
    for (const ExecutionStep& step : def.execution_step) check(step, 1, 1);
  }

  const NetDef& net(const std::string& name) const {
    const auto found = nets_.find(name);
    if (found != nets_.end()) return *found->second.def;
    std::vector<std::string> names;
    for (const auto& [known, entry] : nets_) names.push_back(known);
    fail(Code::kNotFound, "the plan has no network '", name, "'", near_names(name, names));
  }
  std::vector<std::string> sites(const std::string& name) const {
    const size_t i = nets_.at(name).index;
    return i < sites_.size() ? sites_[i] : std::vector<std::string>();
  }

 private:
  struct Entry {
    const NetDef* def;
    size_t index;
  };

  // copies: how many of this step there are at one time.
  void check(const ExecutionStep& step, int depth, int64_t copies) {
    in_step(step, [&] { check_alone(step, depth, copies); });
    for (const ExecutionStep& substep : step.substep) {
      check(substep, depth + 1, copies * instances(step));
    }
  }

  void check_alone(const ExecutionStep& step, int depth, int64_t copies) {
    CAFFE2_ENFORCE(depth <= RunContext::kMaxDepth, "steps are nested more than ",
                   RunContext::kMaxDepth, " deep");
    CAFFE2_ENFORCE(step.substep.empty() || step.network.empty(),
                   "a step has either substeps or networks; this one has ", step.substep.size(),
                   " and ", step.network.size());
    for (const std::string& name : step.network) net(name);
    CAFFE2_ENFORCE(!step.should_stop_blob || !step.num_iter, "num_iter = ", *step.num_iter,
                   " and should_stop_blob = '", *step.should_stop_blob,
                   "' are given; a step has one or the other");
    CAFFE2_ENFORCE(step.should_stop_blob || !step.only_once.value_or(false),
                   "only_once needs a should_stop_blob; without one, num_iter says how often");
    if (step.report_net) {
      net(*step.report_net);
      CAFFE2_ENFORCE(step.report_interval.has_value(),
                     "a report_interval, in seconds, has to be given with report_net = '",
                     *step.report_net, "'");
    }
    not_negative("num_iter", step.num_iter);
    not_negative("report_interval", step.report_interval);
    not_negative("run_every_ms", step.run_every_ms);
    not_negative("num_concurrent_instances", step.num_concurrent_instances);
    CAFFE2_ENFORCE(instances(step) <= kMaxThreads, "num_concurrent_instances = ", instances(step),
                   " is more than ", kMaxThreads);
    count(steps_, copies, kMaxSteps, "steps");
    if (step.report_net) count(threads_, copies, kMaxThreads, "threads");
    if (step.run_every_ms) count(threads_, copies, kMaxThreads, "threads");
    if (runs_side_by_side(step)) {
      const auto substeps = static_cast<int64_t>(step.substep.size());
      count(threads_, copies * instances(step) * substeps, kMaxThreads, "threads");
    }
  }

  template <class T>
  static void not_negative(const char* name, const std::optional<T>& value) {
    CAFFE2_ENFORCE(!value || *value >= 0, name, " = ", *value, " is negative");
  }
  static void count(int64_t& total, int64_t more, int64_t limit, const char* what) {
    total += more;
    CAFFE2_ENFORCE(total <= limit, "the plan asks for more than ", limit, " ", what);
  }

  const PlanSites& sites_;
  std::map<std::string, Entry> nets_;
  int64_t steps_ = 0, threads_ = 0;
};

// ---- The threads of a step ----

// The first error ends the others, and is raised when all threads are done.
class Group {
 public:
  explicit Group(RunContext& outer) : outer_(outer), cancellation_(outer.cancellation) {}
  ~Group() {
    end(nullptr);
    join();
  }

  using Work = std::function<void(RunContext&)>;

  void start(Work work) {
    {
      std::lock_guard lock(mutex_);
      running_++;
    }
    try {
      threads_.emplace_back([this, work = std::move(work)] {
        run(work);
        std::lock_guard lock(mutex_);
        running_--;
        changed_.notify_all();
      });
    } catch (const std::system_error&) {
      {
        std::lock_guard lock(mutex_);
        running_--;
      }
      end(std::make_exception_ptr(
          Error(Code::kUnsupported, "the system gives no thread for a step of the plan")));
    }
  }

  // Runs `work` on this thread, unless an error came before.
  void run(const Work& work) {
    try {
      cancellation_.require();
      RunContext context{cancellation_, outer_.depth};
      work(context);
    } catch (...) {
      end(std::current_exception());
    }
  }

  // After the end of all threads: runs `work` also when there was an error.
  void run_last(const Work& work) {
    try {
      outer_.cancellation.poll();
      work(outer_);
    } catch (...) {
      end(std::current_exception());
    }
  }

  // Waits for the end of all threads.
  void wait() {
    std::unique_lock lock(mutex_);
    const auto none_runs = [this] { return running_ == 0; };
    while (!changed_.wait_for(lock, Cancellation::kPeriod, none_runs)) {
      lock.unlock();
      try {
        outer_.cancellation.poll();
      } catch (...) {
        end(std::current_exception());
      }
      lock.lock();
    }
    lock.unlock();
    join();
  }

  void end(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);  // others follow from the cancellation
    cancellation_.cancel();
    changed_.notify_all();
  }

  // For threads that run something now and then: false once the rest is done or failed.
  bool pause(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time,
                              [this] { return rest_done_ || cancellation_.cancelled(); });
  }
  void rest_is_done() {
    std::lock_guard lock(mutex_);
    rest_done_ = true;
    changed_.notify_all();
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  RunContext& outer_;
  Cancellation cancellation_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
  int running_ = 0;
  bool rest_done_ = false;
  std::exception_ptr error_;
};

// ---- Steps made ready to run ----

// Copies of a net draw different random numbers, also where the net names its seed.
void vary_seeds(NetDef& net, uint32_t copy) {
  const auto vary = [copy](Box<DeviceOption>& option) {
    if (option && option->random_seed) *option->random_seed ^= 0x9e3779b9u * copy;
  };
  vary(net.device_option);
  for (OperatorDef& op : net.op) {
    vary(op.device_option);
    unquote_nets(op);
    for_each_net(op, [copy](NetDef& inner) { vary_seeds(inner, copy); });
  }
}

// The nets of steps that never run at the same time.
using Lane = std::map<std::string, std::shared_ptr<CompiledNet>>;

// The nets of a plan in one workspace. As a net cannot run twice at a time, each lane has its own
// copy; the first is the one that the workspace knows.
class Nets {
 public:
  Nets(const Plan& plan, Workspace& workspace) : plan_(plan), workspace_(workspace) {}

  const Plan& plan() const { return plan_; }
  Workspace& workspace() const { return workspace_; }

  std::shared_ptr<CompiledNet> get(const std::string& name, Lane& lane) {
    std::shared_ptr<CompiledNet>& net = lane[name];
    if (net) return net;
    NetDef def = plan_.net(name);
    const uint32_t copy = copies_[name]++;
    if (copy == 0) return net = workspace_.create_net(std::move(def), plan_.sites(name), true);
    vary_seeds(def, copy);
    return net = std::make_shared<CompiledNet>(std::move(def), plan_.sites(name), workspace_,
                                               workspace_.next_seed());
  }

 private:
  const Plan& plan_;
  Workspace& workspace_;
  std::map<std::string, uint32_t> copies_;
};

class Step {
 public:
  // Makes the nets in the workspace of `nets`. Those of a step with create_workspace are made for
  // each run, by a second Step `inside` the workspace of that run.
  Step(const ExecutionStep& def, Nets& nets, Lane& lane, bool inside = false)
      : def_(def),
        outer_(nets),
        opens_workspace_(def.create_workspace.value_or(false) && !inside),
        seed_(opens_workspace_ ? nets.workspace().next_seed() : 0) {
    if (!opens_workspace_) in_step(def_, [&] { make(lane); });
  }

  void run(RunContext& outer) {
    RunContext context{outer.cancellation, outer.depth + 1};
    in_step(def_, [&] {
      if (opens_workspace_) {
        Workspace workspace(&outer_.workspace(), seed_ + runs_++);
        Nets nets(outer_.plan(), workspace);
        Lane lane;
        Step(def_, nets, lane, true).run_with_reports(context);
      } else {
        run_with_reports(context);
      }
    });
  }

 private:
  // Something that runs now and then on a thread of its own.
  struct Report {
    std::chrono::milliseconds interval;
    Group::Work work;
  };

  void make(Lane& lane) {
    for (const std::string& name : def_.network) nets_.push_back(outer_.get(name, lane));
    if (def_.report_net) {
      Lane own;
      const auto net = outer_.get(*def_.report_net, own);
      add_report(int64_t{*def_.report_interval} * 1000, [net](RunContext& c) { net->run(c); });
    }
    std::vector<const ExecutionStep*> regular;
    for (const ExecutionStep& substep : def_.substep) {
      if (!substep.run_every_ms) {
        regular.push_back(&substep);
        continue;
      }
      Lane own;
      const auto step = std::make_shared<Step>(substep, outer_, own);
      add_report(*substep.run_every_ms, [step](RunContext& c) { step->run(c); });
    }
    const size_t count = regular.size() * static_cast<size_t>(instances(def_));
    side_by_side_ = runs_side_by_side(def_) && count > 1;
    for (size_t i = 0; i < count; i++) {
      Lane own;
      const ExecutionStep& substep = *regular[i % regular.size()];
      substeps_.push_back(std::make_unique<Step>(substep, outer_, side_by_side_ ? own : lane));
    }
    if (def_.should_stop_blob) stop_blob();
  }

  void add_report(int64_t interval_ms, Group::Work work) {
    constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);
    reports_.push_back(
        {std::min(std::chrono::milliseconds(interval_ms), kLongest), std::move(work)});
  }

  void run_with_reports(RunContext& context) {
    if (reports_.empty()) return run_passes(context);
    Group group(context);
    for (const Report& report : reports_) {
      group.start([&group, &report](RunContext& c) {
        while (group.pause(report.interval)) report.work(c);
      });
    }
    group.run([this](RunContext& c) { run_passes(c); });
    group.rest_is_done();
    group.wait();
    for (const Report& report : reports_) group.run_last(report.work);
    group.rethrow();
  }

  void run_passes(RunContext& context) {
    if (nets_.empty() && substeps_.empty()) return;
    const bool endless = def_.should_stop_blob && !def_.only_once.value_or(false);
    const int64_t passes = def_.num_iter.value_or(1);
    for (int64_t i = 0; endless || i < passes; i++) {
      if (stops_in_pass(context)) return;
    }
  }

  // The stop blob is looked at after each net or substep.
  bool stops_in_pass(RunContext& context) {
    if (side_by_side_) {
      Group group(context);
      for (const auto& substep : substeps_) {
        group.start([&substep](RunContext& c) { substep->run(c); });
      }
      group.wait();
      group.rethrow();
      return stops();
    }
    for (const auto& net : nets_) {
      context.cancellation.poll();
      net->run(context);
      if (stops()) return true;
    }
    for (const auto& substep : substeps_) {
      context.cancellation.poll();
      substep->run(context);
      if (stops()) return true;
    }
    return false;
  }

  bool stops() const {
    if (!def_.should_stop_blob) return false;
    const BlobValue value = stop_blob()->get();
    if (value.empty()) return false;  // nobody has written it yet
    if (!value.is_tensor() || value.tensor.type() != DataType::kBool || value.tensor.size() != 1) {
      fail(Code::kInvalidArgument, "should_stop_blob '", *def_.should_stop_blob, "' holds ",
           value.kind(),
           value.is_tensor() ? concat(" of type ", type_name(value.tensor.type()), " and shape ",
                                      value.tensor.shape().text())
                             : "",
           "; one bool is needed");
    }
    return value.tensor.data<bool>()[0];
  }

  std::shared_ptr<Blob> stop_blob() const {
    const Workspace& workspace = outer_.workspace();
    if (auto blob = workspace.find_blob(*def_.should_stop_blob)) return blob;
    fail(Code::kNotFound, "should_stop_blob '", *def_.should_stop_blob, "' does not exist",
         near_names(*def_.should_stop_blob, workspace.blob_names()));
  }

  const ExecutionStep& def_;
  Nets& outer_;
  const bool opens_workspace_;
  const uint64_t seed_;
  uint64_t runs_ = 0;
  std::vector<std::shared_ptr<CompiledNet>> nets_;
  std::vector<std::unique_ptr<Step>> substeps_;
  bool side_by_side_ = false;
  std::vector<Report> reports_;
};

void run_plan(Workspace& workspace, const PlanDef& def, const PlanSites& sites,
              const HostHooks& hooks) {
  Cancellation cancellation(hooks);
  RunContext context{cancellation};
  const Plan plan(def, sites);
  Nets nets(plan, workspace);
  Lane lane;
  for (const ExecutionStep& step : def.execution_step) {
    // Made after the steps before it have run: its nets may read what those write.
    Step(step, nets, lane).run(context);
  }
}

}  // namespace

void run_plan(Workspace& workspace, const PlanDef& plan, const PlanSites& sites) {
  run_plan(workspace, plan, sites, workspace.engine().hooks());
}

BackgroundPlan::BackgroundPlan(Workspace& workspace, PlanDef plan, PlanSites sites,
                               std::function<bool()> interrupted, std::shared_ptr<void> held)
    : hooks_{[this, interrupted = std::move(interrupted)] {
               return cancelled_ || (interrupted && interrupted());
             },
             workspace.engine().hooks().on_stall, workspace.engine().hooks().stall_seconds.load(),
             workspace.engine().hooks().print, workspace.engine().hooks().open_database},
      process_(getpid()) {
  try {
    thread_ = std::thread([this, &workspace, plan = std::move(plan), sites = std::move(sites),
                           held = std::move(held)]() mutable {
      try {
        run_plan(workspace, plan, sites, hooks_);
      } catch (...) {
        error_ = std::current_exception();
      }
      done_.store(true, std::memory_order_release);
      held.reset();
    });
  } catch (const std::system_error&) {
    fail(Code::kUnsupported, "the system gives no thread for a plan");
  }
}

void BackgroundPlan::cancel() {
  cancelled_ = true;
  if (!thread_.joinable()) return;
  if (getpid() == process_) {
    thread_.join();
  } else {
    thread_.detach();  // there is no such thread in the child of a fork
  }
}

bool BackgroundPlan::succeeded() const {
  if (!done()) fail(Code::kFailedPrecondition, "the plan is still running");
  if (error_) std::rethrow_exception(error_);
  return true;
}

}  // namespace caffe2
