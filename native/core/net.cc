#include "core/net.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "core/definitions.h"
#include "core/executor.h"
#include "core/near_names.h"
#include "core/registry.h"
#include "core/workspace.h"

namespace caffe2 {

namespace {

constexpr size_t kMaxListed = 10;  // blobs or operators that one error text lists

uint64_t seed_of(const NetDef& net, const OperatorDef& op, uint64_t fallback) {
  if (op.device_option && op.device_option->random_seed) return *op.device_option->random_seed;
  if (net.device_option && net.device_option->random_seed) return *net.device_option->random_seed;
  return fallback;
}

Device device_of(const NetDef& net, const OperatorDef& op) {
  const auto& option = op.device_option ? op.device_option : net.device_option;
  return static_cast<Device>(option ? option->device_type.value_or(0) : 0);
}

// Types that nobody declared, each once, with near names; also those of nets in arguments.
std::string unknown_operators(const NetDef& net) {
  std::set<std::string> seen;
  std::string text;
  const auto add = [&text](const std::string& more) {
    if (!more.empty()) text += (text.empty() ? "" : ", ") + more;
  };
  for (const OperatorDef& op : net.op) {
    const std::string type = op.type.value_or("");
    if (!find_schema(type) && seen.insert(type).second) {
      add(quoted(type) + near_operators(type));
    }
    for_each_net(op, [&add](const NetDef& inner) { add(unknown_operators(inner)); });
  }
  return text;
}

NetDef with_forced_kernels(NetDef net, const Engine& engine) {
  for (OperatorDef& op : net.op) {
    const std::string_view forced = engine.forced_kernel(op.type.value_or(""));
    if (!forced.empty()) op.engine = std::string(forced);
  }
  return net;
}

std::unique_ptr<Operator> make_operator(const OperatorContext& context, Device device,
                                        const Workspace& workspace) {
  const std::string engine = context.def.engine.value_or("");
  const std::string type = context.def.type.value_or("");
  const bool wants_reference = engine == "REFERENCE";
  if (!wants_reference) {
    auto factory = KernelRegistry::builtin().find(type, device, engine);
    // All blobs are in the memory of the host, so the CPU stands in for a device without kernels.
    if (!factory) factory = KernelRegistry::builtin().find(type, Device::kCPU, engine);
    if (factory) return factory(context);
  }
  if (wants_reference || !context.schema.native) {
    if (workspace.reference_factory()) {
      if (auto op = workspace.reference_factory()(context)) return op;
    }
    fail(Code::kUnsupported, "there is no reference body for it here");
  }
  fail(Code::kUnsupported, "no kernel for device type ", static_cast<int>(device),
       "; registered: ", KernelRegistry::builtin().describe(type));
}

void require_allowed(const OperatorDef& op, const OperatorSchema& schema, uint32_t allowed) {
  const uint32_t refused = touched_by(op, schema) & ~allowed;
  if (refused == 0) return;
  const char* what = (refused & kTouchesFiles) != 0     ? "reads or writes files"
                     : (refused & kTouchesNetwork) != 0 ? "uses the network"
                                                        : "runs code of the host";
  fail(Code::kFailedPrecondition, "it ", what,
       ", which nets that were opened this way may not unless that is allowed");
}

}  // namespace

CompiledNet::CompiledNet(NetDef def, std::vector<std::string> sites, Workspace& workspace,
                         uint64_t seed, NetOptions options)
    : def_(with_forced_kernels(std::move(def), workspace.engine())),
      sites_(std::move(sites)),
      workspace_(workspace),
      seed_(seed) {
  for (const Argument& arg : def_.arg) {
    if (arg.name == "random_state") random_state_ = arg.s.value_or("");
  }
  for (int i = 0; i < size(); i++) annotated(i, [&] { unquote_nets(def_.op[i]); });
  const std::string unknown = unknown_operators(def_);
  if (!unknown.empty()) {
    fail(Code::kNotFound, net_text(), " has unknown operator types: ", unknown);
  }
  std::vector<const OperatorSchema*> schemas;
  for (int i = 0; i < size(); i++) {
    schemas.push_back(find_schema(def_.op[i].type.value_or("")));
    annotated(i, [&] {
      verify(def_.op[i], *schemas[i]);
      require_allowed(def_.op[i], *schemas[i], workspace_.allowed());
    });
  }
  check_inputs();
  check_outputs();
  operators_.reserve(def_.op.size());
  for (int i = 0; i < size(); i++) {
    annotated(i, [&] {
      const OperatorDef& op = def_.op[i];
      const OperatorContext context{op,         *schemas[i], workspace_.engine(),
                                    workspace_, i,           seed_of(def_, op, seed)};
      operators_.push_back(make_operator(context, device_of(def_, op), workspace_));
    });
  }
  const auto ordinary = [&](int i) {
    const Kind kind = schemas[i]->kind;
    return schemas[i]->native && def_.op[i].engine != "REFERENCE" &&
           (kind == Kind::kPure || kind == Kind::kRandom);
  };
  if (options.hide_intermediates) {
    private_ = PrivateBlobs(def_, ordinary, [&](const std::string& name) {
      return workspace_.find_blob(name) != nullptr;
    });
  }
  for (int i = 0; i < size(); i++) ordinary_ &= ordinary(i);
  if (options.own_inputs && ordinary_) find_sole_users();
  const std::string type = def_.type.value_or("");
  if (!type.empty() && type != "simple") {
    graph_.emplace(def_);
  } else {
    steps_ = fuse(def_, {[this](int i) { return operators_[i]->fuses(); },
                         [this](const std::string& name) { return private_.contains(name); }});
    choose_layouts();
  }
  bind();
}

// Tells operators which of their inputs the net mentions nowhere else.
void CompiledNet::find_sole_users() {
  std::map<std::string_view, int> mentions;
  for (const std::string& name : def_.external_output) mentions[name]++;
  for (const OperatorDef& op : def_.op) {
    for (const std::string& name : op.input) mentions[name]++;
    for (const std::string& name : op.output) mentions[name]++;
  }
  for (int i = 0; i < size(); i++) {
    const std::vector<std::string>& inputs = def_.op[i].input;
    for (int k = 0; k < static_cast<int>(inputs.size()) && k < 32; k++) {
      if (mentions[inputs[k]] == 1) operators_[i]->set_sole_user(k);
    }
  }
}

bool CompiledNet::only_reads(const std::string& blob) const {
  const auto names = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), blob) != list.end();
  };
  if (!ordinary_ || names(def_.external_output)) return false;
  for (int i = 0; i < size(); i++) {
    if (names(def_.op[i].output)) return false;
    const std::vector<std::string>& inputs = def_.op[i].input;
    for (int k = 0; k < static_cast<int>(inputs.size()); k++) {
      if (inputs[k] == blob && !operators_[i]->only_reads(k)) return false;
    }
  }
  return true;
}

// Refuses a second run.
template <class Run>
void CompiledNet::only_one(const Run& run) {
  int other = running_;
  while (other == fork_count() || !running_.compare_exchange_weak(other, fork_count())) {
    if (other != fork_count()) continue;
    fail(Code::kFailedPrecondition, net_text(),
         " is running already, in another thread or in one of its own operators");
  }
  struct Done {
    std::atomic<int>& running;
    ~Done() { running = -1; }
  } done{running_};
  run();
}

// Looks blobs up again where some were removed.
void CompiledNet::rebind() {
  if (bound_epoch_ == workspace_.epoch()) return;
  check_inputs();
  bind();
}

// Goes on where the blob says, and writes where the next run has to go on.
void CompiledNet::take_random_state() {
  if (random_state_.empty()) return;
  const std::shared_ptr<Blob> blob = workspace_.create_blob(random_state_);
  int64_t state[2] = {static_cast<int64_t>(seed_), 0};
  if (const BlobValue kept = blob->get(); !kept.empty()) {
    CAFFE2_ENFORCE(kept.is_tensor() && kept.tensor.type() == DataType::kInt64 &&
                       kept.tensor.size() == 2 && kept.tensor.data<int64_t>()[1] >= 0,
                   net_text(), " keeps the state of its random numbers in blob ",
                   quoted(random_state_), ", which must hold two int64: seed and number of runs");
    std::copy_n(kept.tensor.data<int64_t>(), 2, state);
  }
  for (int i = 0; i < size(); i++) {
    operators_[i]->set_random(seed_of(def_, def_.op[i], static_cast<uint64_t>(state[0])),
                              static_cast<uint32_t>(state[1]));
  }
  state[1]++;
  Tensor next(workspace_.engine().allocator(), {2}, DataType::kInt64);
  std::copy_n(state, 2, next.mutable_data<int64_t>());
  blob->set(std::move(next));
}

void CompiledNet::run() {
  Cancellation cancellation(workspace_.engine().hooks());
  RunContext context{cancellation};
  only_one([&] {
    struct Offer {
      explicit Offer(CompiledNet& net, Cancellation* cancellation) : net(net) { set(cancellation); }
      ~Offer() { set(nullptr); }
      void set(Cancellation* cancellation) {
        std::lock_guard lock(net.cancel_mutex_);
        net.cancellation_ = cancellation;
      }
      CompiledNet& net;
    } offer(*this, &cancellation);
    run_alone(context);
  });
}

void CompiledNet::cancel() {
  std::lock_guard lock(cancel_mutex_);
  if (cancellation_ != nullptr) cancellation_->cancel();
}

void CompiledNet::run(RunContext& context) {
  only_one([&] { run_alone(context); });
}

void CompiledNet::run_alone(RunContext& context) {
  rebind();
  take_random_state();
  if (!graph_) {
    run_in_order(context);
    return;
  }
  const Steps steps{size(), [this](int i, RunContext& inner) { run_observed(i, inner); },
                    [this](int i) { return operators_[i]->may_block(); }};
  run_parallel(steps, *graph_, workspace_.engine().pool(), context);
}

std::vector<double> CompiledNet::time_operators(int runs) {
  CAFFE2_ENFORCE(runs > 0, runs, " runs; at least one is needed");
  using Clock = std::chrono::steady_clock;
  Cancellation cancellation(workspace_.engine().hooks());
  RunContext context{cancellation};
  std::vector<double> times(operators_.size(), 0);
  const auto timed = [&](int op, const auto& step) {
    context.cancellation.poll();
    const auto begin = Clock::now();
    step();
    times[op] += std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / runs;
  };
  only_one([&] {
    rebind();
    for (int r = 0; r < runs; r++) {
      take_random_state();
      for (int i = 0; graph_ && i < size(); i++) {
        timed(i, [&] { annotated(i, [&] { operators_[i]->execute(context); }); });
      }
      for (int i = 0; i < static_cast<int>(steps_.size()); i++) {
        timed(steps_[i].op, [&] { run_step(i, context); });
      }
      end_run();
    }
  });
  return times;
}

void CompiledNet::run_in_order(RunContext& context) {
  if (observer_) {
    for (int i = 0; i < size(); i++) {
      context.cancellation.poll();
      run_observed(i, context);
    }
    return;
  }
  for (int i = 0; i < static_cast<int>(steps_.size()); i++) {
    context.cancellation.poll();
    run_step(i, context);
  }
  end_run();
}

void CompiledNet::end_run() {
  if (!declined_.empty()) unfuse_declined();
  if (graph_) return;
  private_.settle(
      def_, steps_, [this](int i) { return operators_[i]->joined(); },
      workspace_.engine().allocator());
}

void CompiledNet::observe(Observer observer) {
  only_one([&] { observer_ = std::move(observer); });
}

void CompiledNet::run_observed(int op, RunContext& context) {
  if (observer_) annotated(op, [&] { observer_(op, false); });
  annotated(op, [&] { operators_[op]->execute(context); });
  if (observer_) annotated(op, [&] { observer_(op, true); });
}

void CompiledNet::run_step(int step, RunContext& context) {
  const int op = steps_[step].op;
  const std::optional<Fusion>& fusion = steps_[step].fusion;
  if (!fusion) {
    annotated(op, [&] { operators_[op]->execute(context); });
    return;
  }
  bool done = false;
  annotated(op, [&] { done = operators_[op]->execute_fused(context, epilogues_[step]); });
  if (done) return;
  declined_.push_back(step);
  annotated(op, [&] { operators_[op]->execute(context); });
  for (const int next : fusion->absorbed) {
    annotated(next, [&] { operators_[next]->execute(context); });
  }
}

// Backwards, as it depends on those that read a value whether it may be blocked.
void CompiledNet::choose_layouts() {
  struct Readers {
    bool any = false, all_take_blocked = true;
  };
  std::map<std::string_view, Readers> readers;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    const OperatorDef& def = def_.op[step->op];
    Operator& op = *operators_[step->op];
    bool blocked = false;
    for (size_t i = 0; i < def.output.size(); i++) {
      const std::string& name = i == 0 && step->fusion ? step->fusion->output : def.output[i];
      const auto found = readers.find(name);
      if (found == readers.end()) continue;
      if (i == 0) blocked = found->second.any && found->second.all_take_blocked;
      readers.erase(found);
    }
    op.set_prefers_blocked(blocked);
    const bool takes = op.takes_stored() && (blocked || op.chooses_layout());
    const auto read = [&](const std::string& name) {
      Readers& those = readers[name];
      those.any = true;
      those.all_take_blocked &= takes;
    };
    for (const std::string& name : def.input) read(name);
    if (step->fusion && step->fusion->residual) read(*step->fusion->residual);
  }
}

// From now on one by one, at the place where they were one step.
void CompiledNet::unfuse_declined() {
  std::vector<Step> steps;
  for (int i = 0; i < static_cast<int>(steps_.size()); i++) {
    const bool split = std::find(declined_.begin(), declined_.end(), i) != declined_.end();
    if (!split) {
      steps.push_back(steps_[i]);
      continue;
    }
    steps.push_back({steps_[i].op, std::nullopt});
    for (const int next : steps_[i].fusion->absorbed) steps.push_back({next, std::nullopt});
  }
  steps_ = std::move(steps);
  declined_.clear();
  choose_layouts();
  bind();
}

bool CompiledNet::may_block() const {
  return std::any_of(operators_.begin(), operators_.end(),
                     [](const auto& op) { return op->may_block(); });
}

std::string CompiledNet::net_text() const {
  return def_.name && !def_.name->empty() ? "Net " + quoted(*def_.name) : "The net";
}

void CompiledNet::check_inputs() const {
  std::set<std::string_view> written;
  std::string list;
  size_t missing = 0;
  for (int i = 0; i < size(); i++) {
    for (const std::string& name : def_.op[i].input) {
      if (written.count(name) || workspace_.find_blob(name)) continue;
      written.insert(name);  // reported once
      if (++missing > kMaxListed) continue;
      list += "\n  " + quoted(name) + " (operator " + std::to_string(i) + ", " +
              def_.op[i].type.value_or("");
      if (i < static_cast<int>(sites_.size()) && !sites_[i].empty()) list += ", " + sites_[i];
      list += ")" + near_names(name, workspace_.blob_names());
    }
    for (const std::string& name : def_.op[i].output) written.insert(name);
  }
  if (missing == 0) return;
  if (missing > kMaxListed) list += "\n  and " + std::to_string(missing - kMaxListed) + " more";
  fail(Code::kNotFound, net_text(), " reads ", missing,
       " blob(s) that do not exist and that no earlier operator writes:", list);
}

// As in the original, an output comes from an operator or is an input.
void CompiledNet::check_outputs() const {
  std::set<std::string_view> known(def_.external_input.begin(), def_.external_input.end());
  for (const OperatorDef& op : def_.op) known.insert(op.output.begin(), op.output.end());
  for (const std::string& name : def_.external_output) {
    if (known.count(name)) continue;
    fail(Code::kNotFound, net_text(), " declares ", quoted(name),
         " as an output, but no operator writes it", near_names(name, known));
  }
}

void CompiledNet::bind() {
  const auto blobs = [&](const std::vector<std::string>& names) {
    std::vector<std::shared_ptr<Blob>> out;
    for (const std::string& name : names) out.push_back(blob(name));
    return out;
  };
  // Read before the look-ups: a blob removed meanwhile is looked up again by the next run.
  const uint64_t epoch = workspace_.epoch();
  for (int i = 0; i < size(); i++) {
    operators_[i]->bind(blobs(def_.op[i].input), blobs(def_.op[i].output));
  }
  epilogues_.assign(steps_.size(), {});
  for (size_t i = 0; i < steps_.size(); i++) {
    const std::optional<Fusion>& fusion = steps_[i].fusion;
    if (!fusion) continue;
    epilogues_[i] = {fusion->residual ? blob(*fusion->residual) : nullptr,
                     fusion->bounds.value_or(kernels::Bounds()), blob(fusion->output)};
  }
  bound_epoch_ = epoch;
}

std::shared_ptr<Blob> CompiledNet::blob(const std::string& name) {
  auto own = private_.find(name);
  return own ? own : workspace_.create_blob(name);
}

template <class Step>
void CompiledNet::annotated(int i, const Step& step) const {
  const auto where = [&] {
    ErrorLocation at;
    at.op_type = def_.op[i].type.value_or("");
    at.op_index = size() > 1 || def_.name ? i : -1;
    at.net = def_.name.value_or("");
    if (i < static_cast<int>(sites_.size())) at.site = sites_[i];
    return at;
  };
  try {
    step();
  } catch (const Error& error) {
    // An error out of a nested net keeps the innermost place.
    if (!error.location().op_type.empty()) throw;
    throw Error(error.code(), error.text(), where(), error.cause());
  } catch (const std::bad_alloc&) {
    throw Error(Code::kOutOfMemory, "the system has no memory left", where());
  } catch (const std::exception& error) {
    throw Error(Code::kInternal, error.what(), where());
  }
}

}  // namespace caffe2
