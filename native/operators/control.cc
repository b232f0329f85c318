// Operators that run nets: If, While, ONNXWhile, Do.
#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "operators/elements.h"
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

// The loop of ONNX. The body takes the number of the turn, the condition and carried values; it
// gives the next condition, the next carried values and what is collected over the turns.
class ONNXWhileOperator : public ControlOperator {
 public:
  explicit ONNXWhileOperator(const OperatorContext& context)
      : ControlOperator(context),
        has_count_(args().boolean("has_trip_count")),
        has_condition_(args().boolean("has_cond")),
        body_(args().net("body")),
        carried_(context.def.input.size() - 2),
        inner_(&context.workspace, context.seed),
        scope_(args().boolean("disable_scopes") ? workspace_ : inner_),
        net_(body_, scope_, seed_) {
    const size_t takes = body_->external_input.size(), gives = body_->external_output.size();
    const size_t outputs = context.def.output.size();
    CAFFE2_ENFORCE(takes >= carried_ + 2, "the body has ", takes, " external_inputs for the turn, ",
                   "the condition and ", carried_, " carried values");
    CAFFE2_ENFORCE(gives == outputs + 1 && outputs >= carried_, "the body has ", gives,
                   " external_outputs for the condition and ", outputs, " outputs, of which ",
                   carried_, " are carried values");
    if (&scope_ == &workspace_) return;
    for (size_t i = 0; i < carried_ + 2; i++) own(body_->external_input[i]);
    for (const OperatorDef& op : body_->op) {
      for (const std::string& name : op.output) own(name);
    }
  }

 protected:
  void run() override {
    const int64_t turns = has_count_ ? one<int64_t>(input_value(0), describe_input(0))
                                     : std::numeric_limits<int64_t>::max();
    bool goes_on = !has_condition_ || one<bool>(input_value(1), describe_input(1));
    std::vector<BlobValue> values;  // carried
    for (size_t k = 0; k < carried_; k++) values.push_back(input_value(static_cast<int>(k) + 2));
    std::vector<std::vector<Tensor>> collected(body_->external_output.size() - 1 - carried_);
    for (int64_t turn = 0; turn < turns && goes_on; turn++) {
      context().cancellation.poll();
      set<int64_t>(0, turn);
      set<bool>(1, goes_on);
      for (size_t k = 0; k < carried_; k++) {
        scope_.create_blob(body_->external_input[k + 2])->set(values[k]);
      }
      net_.run(context());
      for (size_t k = 0; k < carried_; k++) values[k] = result(k + 1);
      for (size_t k = 0; k < collected.size(); k++) {
        collected[k].push_back(result(carried_ + 1 + k).tensor);
      }
      if (has_condition_) goes_on = one<bool>(result(0), body_->external_output[0]);
    }
    for (size_t k = 0; k < collected.size(); k++) {
      values.push_back(BlobValue{collect(collected[k]), nullptr});
    }
    for (size_t k = 0; k < values.size(); k++) output_value(static_cast<int>(k), values[k]);
  }

 private:
  void own(const std::string& name) { inner_.forward_blob(name, std::make_shared<Blob>()); }

  template <class T, class What>
  static T one(const BlobValue& value, const What& what) {
    CAFFE2_ENFORCE(
        value.is_tensor() && value.tensor.type() == TypeOf<T>::value && value.tensor.size() == 1,
        what, " holds ", value.kind(), "; one ", type_name(TypeOf<T>::value), " is needed");
    return value.tensor.data<T>()[0];
  }

  template <class T>
  void set(size_t input, T value) {
    Tensor tensor(engine().allocator(), {}, TypeOf<T>::value);
    *tensor.mutable_data<T>() = value;
    scope_.create_blob(body_->external_input[input])->set(std::move(tensor));
  }

  BlobValue result(size_t i) const {
    const std::string& name = body_->external_output[i];
    const BlobValue value = scope_.get_blob(name)->get();
    CAFFE2_ENFORCE(value.is_tensor(), "the body left in '", name, "' ", value.kind(),
                   "; a tensor is needed");
    return value;
  }

  // One after the other along the first dimension, single values as if they had one.
  Tensor collect(const std::vector<Tensor>& parts) {
    if (parts.empty()) return Tensor(engine().allocator(), {0}, DataType::kInt32);
    const Tensor& first = parts[0];
    Shape shape{0};
    for (int axis = 1; axis < first.rank(); axis++) shape.append(first.dim(axis));
    int64_t rows = 0;
    for (const Tensor& part : parts) {
      Shape rest{0};
      for (int axis = 1; axis < part.rank(); axis++) rest.append(part.dim(axis));
      CAFFE2_ENFORCE(part.type() == first.type() && rest == shape, "the turns gave ",
                     type_name(first.type()), " of shape ", first.shape().text(), " and ",
                     type_name(part.type()), " of shape ", part.shape().text(),
                     ", which cannot be collected");
      rows += part.rank() == 0 ? 1 : part.dim(0);
    }
    Shape whole{rows};
    for (int axis = 1; axis < shape.rank(); axis++) whole.append(shape[axis]);
    Tensor all(engine().allocator(), whole, first.type());
    int64_t place = 0;
    for (const Tensor& part : parts) {
      copy_elements(part, 0, part.size(), all, place);
      place += part.size();
    }
    return all;
  }

  const bool has_count_, has_condition_;
  const NetDef* const body_;
  const size_t carried_;
  Workspace inner_;   // for what the body writes
  Workspace& scope_;  // that one, or the one around it
  NestedNet net_;
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
REGISTER_CPU_OPERATOR(ONNXWhile, ONNXWhileOperator)
REGISTER_CPU_OPERATOR(CreateScope, CreateScopeOperator)
REGISTER_CPU_OPERATOR(HasScope, HasScopeOperator)
REGISTER_CPU_OPERATOR(Do, DoOperator)

}  // namespace caffe2
