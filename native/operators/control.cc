// Operators that run nets: If, While, Do.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "operators/nested_net.h"

namespace caffe2 {
namespace {

// What runs its nets depending on a condition, its first input.
class ConditionOperator : public ControlOperator {
 public:
  using ControlOperator::ControlOperator;

 protected:
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
};

class IfOperator : public ConditionOperator {
 public:
  explicit IfOperator(const OperatorContext& context)
      : ConditionOperator(context), then_(nested("then_net")), else_(nested("else_net")) {}

 protected:
  void run() override {
    NestedNet& chosen = condition() ? then_ : else_;
    if (chosen.given()) chosen.run(context());
  }

 private:
  NestedNet then_, else_;
};

// Runs cond_net, where there is one, before each look at the condition.
class WhileOperator : public ConditionOperator {
 public:
  explicit WhileOperator(const OperatorContext& context)
      : ConditionOperator(context), loop_(nested("loop_net")), condition_(nested("cond_net")) {}

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
  struct Entry {
    std::shared_ptr<Workspace> workspace;
    std::set<std::string> copied;  // names that no longer stand for blobs outside
  };

  const char* kind() const override { return "a workspace stack"; }
  bool empty() const {
    std::lock_guard lock(mutex_);
    return entries_.empty();
  }
  void push(Entry entry) {
    std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  std::optional<Entry> top() const {
    std::lock_guard lock(mutex_);
    return entries_.empty() ? std::nullopt : std::optional(entries_.back());
  }
  void pop() {
    Entry last;  // goes after the lock
    std::lock_guard lock(mutex_);
    if (entries_.empty()) return;
    last = std::move(entries_.back());
    entries_.pop_back();
  }

 private:
  mutable ForkMutex mutex_;
  std::vector<Entry> entries_;
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
// Its gradient runs in the workspace that it left in the scope, and takes it away.
class DoOperator : public ControlOperator {
 public:
  explicit DoOperator(const OperatorContext& context)
      : ControlOperator(context),
        is_gradient_(context.def.is_gradient_op.value_or(false)),
        reuse_(args().boolean("reuse_workspace")),
        copies_(args().boolean("copy_external_blobs")),
        inner_(args().texts("inner_blobs")),
        outer_(args().integers("outer_blobs_idx")),
        saved_(args().texts("saved_fwd_blobs")) {
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
  }

 protected:
  void run() override {
    const auto scope = input_object<WorkspaceStack>(inputs() - 1);
    if (is_gradient_) {
      run_gradient(*scope);
      return;
    }
    const std::optional<WorkspaceStack::Entry> left = reuse_ ? scope->top() : std::nullopt;
    const bool fresh = !left;
    if (fresh || left->workspace != inner_workspace_) {
      net_.reset();
      inner_workspace_ =
          fresh ? std::make_shared<Workspace>(workspace_.share_engine()) : left->workspace;
      inner_workspace_->set_reference_factory(workspace_.reference_factory());
    }
    bind(*inner_workspace_, {});
    require_separate_blobs();
    if (fresh) scope->push({inner_workspace_, copied_names()});
    if (!net_) net_.emplace(args().net("net"), *inner_workspace_, seed_);
    net_->run(context());
    if (!copies_) return;
    // As they are now: to later writes this workspace is blind.
    for (const std::string& name : inner_) {
      const BlobValue value = inner_workspace_->get_blob(name)->get();
      inner_workspace_->forward_blob(name, std::make_shared<Blob>());
      inner_workspace_->get_blob(name)->set(value);
    }
  }

 private:
  void run_gradient(WorkspaceStack& scope) {
    const std::optional<WorkspaceStack::Entry> left = scope.top();
    if (!left) {
      fail(Code::kFailedPrecondition, describe_input(inputs() - 1),
           " holds no workspace of the operator that this is the gradient of");
    }
    for (const std::string& name : saved_) left->workspace->get_blob(name);
    bind(*left->workspace, left->copied);
    NestedNet(args().net("net"), *left->workspace, seed_).run(context());
    if (!reuse_) scope.pop();
  }

  std::set<std::string> copied_names() const {
    return copies_ ? std::set<std::string>(inner_.begin(), inner_.end()) : std::set<std::string>();
  }

  // Names in `copied` are read in the workspace itself.
  void bind(Workspace& workspace, const std::set<std::string>& copied) const {
    const int n_inputs = inputs() - 1;
    for (size_t i = 0; i < inner_.size(); i++) {
      const int k = static_cast<int>(outer_[i]);
      if (k < n_inputs && copied.count(inner_[i]) > 0) continue;
      workspace.forward_blob(inner_[i],
                             k < n_inputs ? input_blobs()[k] : output_blobs()[k - n_inputs]);
    }
  }

  // Two names for one blob would hide from the net inside that it works in place.
  void require_separate_blobs() const {
    std::map<const Blob*, const std::string*> names;
    for (const std::string& name : inner_) {
      const auto [known, added] = names.emplace(inner_workspace_->get_blob(name).get(), &name);
      CAFFE2_ENFORCE(added || *known->second == name, "inner blobs '", *known->second, "' and '",
                     name, "' stand for one outer blob");
    }
  }

  const bool is_gradient_, reuse_, copies_;
  const std::vector<std::string> inner_;
  const std::vector<int64_t> outer_;
  const std::vector<std::string> saved_;
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
