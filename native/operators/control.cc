// Operators that run nets: If, While, Do.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/net.h"
#include "core/operator.h"
#include "core/registry.h"
#include "core/workspace.h"

namespace caffe2 {
namespace {

// A net in an argument, compiled when it first runs: its inputs may be outputs of operators that
// come before this one.
class NestedNet {
 public:
  NestedNet(const NetDef* def, Workspace& workspace, uint64_t seed)
      : def_(def), workspace_(workspace), seed_(seed) {}

  bool given() const { return def_ != nullptr; }

  void run(const RunContext& outer) {
    if (outer.depth >= RunContext::kMaxDepth) {
      fail(Code::kInvalidArgument, "nets are nested more than ", RunContext::kMaxDepth, " deep");
    }
    if (!net_) {
      net_ = std::make_unique<CompiledNet>(*def_, std::vector<std::string>(), workspace_, seed_);
    }
    RunContext inner{outer.cancellation, outer.depth + 1};
    net_->run(inner);
  }

 private:
  const NetDef* def_;
  Workspace& workspace_;
  const uint64_t seed_;
  std::unique_ptr<CompiledNet> net_;
};

// Whether an operator of the net, or of nets inside it, may wait.
bool has_blocking_operators(const NetDef& net) {
  for (const OperatorDef& op : net.op) {
    const OperatorSchema* schema = find_schema(op.type.value_or(""));
    if (schema != nullptr && schema->blocks) return true;
    for (const Argument& arg : op.arg) {
      if (arg.n && has_blocking_operators(*arg.n)) return true;
      for (const NetDef& inner : arg.nets) {
        if (has_blocking_operators(inner)) return true;
      }
    }
  }
  return false;
}

class ControlOperator : public Operator {
 public:
  explicit ControlOperator(const OperatorContext& context)
      : Operator(context), workspace_(context.workspace), seed_(context.seed) {
    for (const Argument& arg : context.def.arg) {
      blocks_ = blocks_ || (arg.n && has_blocking_operators(*arg.n));
    }
  }
  bool may_block() const override { return blocks_; }

 protected:
  const NetDef* net_argument(const char* name) const {
    const Argument* arg = args().given(name);
    return arg != nullptr && arg->n ? &*arg->n : nullptr;
  }
  NestedNet nested(const char* name) const {
    return NestedNet(net_argument(name), workspace_, seed_);
  }
  bool condition() const {
    const BlobValue value = present_input(0);
    if (!value.is_tensor() || value.tensor.type() != DataType::kBool || value.tensor.size() != 1) {
      fail(Code::kInvalidArgument, describe_input(0), " holds ", value.kind(),
           value.is_tensor() ? " of type " + std::string(type_name(value.tensor.type())) +
                                   " and shape " + value.tensor.shape().text()
                             : "",
           "; one bool is needed");
    }
    return value.tensor.data<bool>()[0];
  }

  Workspace& workspace_;
  const uint64_t seed_;

 private:
  bool blocks_ = false;
};

class IfOperator : public ControlOperator {
 public:
  explicit IfOperator(const OperatorContext& context)
      : ControlOperator(context), then_(nested("then_net")), else_(nested("else_net")) {}

 protected:
  void run() override {
    NestedNet& chosen = condition() ? then_ : else_;
    if (chosen.given()) chosen.run(context());
  }

 private:
  NestedNet then_, else_;
};

// Runs cond_net, where there is one, before each look at the condition.
class WhileOperator : public ControlOperator {
 public:
  explicit WhileOperator(const OperatorContext& context)
      : ControlOperator(context), loop_(nested("loop_net")), condition_(nested("cond_net")) {}

 protected:
  void run() override {
    while (true) {
      context().cancellation.poll();
      if (condition_.given()) condition_.run(context());
      if (!condition()) return;
      loop_.run(context());
    }
  }

 private:
  NestedNet loop_, condition_;
};

// The workspaces that the Do operators of a scope have left, the last one on top.
class WorkspaceStack : public Object {
 public:
  const char* kind() const override { return "a workspace stack"; }
  bool empty() const {
    std::lock_guard lock(mutex_);
    return workspaces_.empty();
  }
  void push(std::shared_ptr<Workspace> workspace) {
    std::lock_guard lock(mutex_);
    workspaces_.push_back(std::move(workspace));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<Workspace>> workspaces_;
};

class CreateScopeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { output_object(0, std::make_shared<WorkspaceStack>()); }
};

class HasScopeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const bool has = !input_object<WorkspaceStack>(0)->empty();
    output(0, {1}, DataType::kBool).mutable_data<bool>()[0] = has;
  }
};

// Runs a net in a workspace of its own, where inner_blobs stand for blobs outside: number k of
// outer_blobs_idx counts the inputs and then the outputs, without the scope that is last in both.
class DoOperator : public ControlOperator {
 public:
  explicit DoOperator(const OperatorContext& context)
      : ControlOperator(context),
        reuse_(args().boolean("reuse_workspace")),
        outer_(args().integers("outer_blobs_idx")) {
    if (const Argument* arg = args().given("inner_blobs")) inner_ = arg->strings;
    const auto most =
        static_cast<int64_t>(context.def.input.size() + context.def.output.size()) - 2;
    CAFFE2_ENFORCE(inner_.size() == outer_.size(), "it has ", inner_.size(), " inner_blobs but ",
                   outer_.size(), " outer_blobs_idx; they come in pairs");
    for (const int64_t k : outer_) {
      CAFFE2_ENFORCE(k >= 0 && k < most, "outer_blobs_idx holds ", k, "; allowed are 0 to ",
                     most - 1);
    }
    CAFFE2_ENFORCE(context.def.input.back() == context.def.output.back(),
                   "its last input and its last output must be one scope, but are '",
                   context.def.input.back(), "' and '", context.def.output.back(), "'");
    if (context.def.is_gradient_op.value_or(false)) {
      fail(Code::kUnsupported, "the gradient of Do has no kernel");
    }
  }

 protected:
  void run() override {
    const auto scope = input_object<WorkspaceStack>(inputs() - 1);
    if (!inner_workspace_ || !reuse_) {
      net_.reset();
      inner_workspace_ = std::make_shared<Workspace>(workspace_.share_engine());
      inner_workspace_->set_reference_factory(workspace_.reference_factory());
      scope->push(inner_workspace_);
    }
    const int n_inputs = inputs() - 1;
    for (size_t i = 0; i < inner_.size(); i++) {
      const int k = static_cast<int>(outer_[i]);
      inner_workspace_->forward_blob(
          inner_[i], k < n_inputs ? input_blobs()[k] : output_blobs()[k - n_inputs]);
    }
    require_separate_blobs();
    if (!net_) net_.emplace(net_argument("net"), *inner_workspace_, seed_);
    net_->run(context());
  }

 private:
  // Two names for one blob would hide from the net inside that it works in place.
  void require_separate_blobs() const {
    std::map<const Blob*, const std::string*> names;
    for (const std::string& name : inner_) {
      const auto [known, added] = names.emplace(inner_workspace_->get_blob(name).get(), &name);
      CAFFE2_ENFORCE(added || *known->second == name, "inner blobs '", *known->second, "' and '",
                     name, "' stand for one outer blob");
    }
  }

  const bool reuse_;
  std::vector<std::string> inner_;
  const std::vector<int64_t> outer_;
  std::shared_ptr<Workspace> inner_workspace_;
  std::optional<NestedNet> net_;
};

}  // namespace

REGISTER_CPU_OPERATOR(If, IfOperator)
REGISTER_CPU_OPERATOR(AsyncIf, IfOperator)
REGISTER_CPU_OPERATOR(While, WhileOperator)
REGISTER_CPU_OPERATOR(CreateScope, CreateScopeOperator)
REGISTER_CPU_OPERATOR(HasScope, HasScopeOperator)
REGISTER_CPU_OPERATOR(Do, DoOperator)

}  // namespace caffe2
