// A net in an argument of an operator.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/definitions.h"
#include "core/net.h"
#include "core/operator.h"
#include "core/workspace.h"

namespace caffe2 {

// Compiled when it first runs: its inputs may be outputs of operators that come before this one.
// The definition outlives it.
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
  const NetDef* const def_;
  Workspace& workspace_;
  const uint64_t seed_;
  std::unique_ptr<CompiledNet> net_;
};

// Whether an operator of the net, or of nets inside it, may wait.
inline bool has_blocking_operators(const NetDef& net) {
  bool found = false;
  for (const OperatorDef& op : net.op) {
    const OperatorSchema* schema = find_schema(op.type.value_or(""));
    found = found || (schema != nullptr && schema->blocks);
    for_each_net(op,
                 [&found](const NetDef& inner) { found = found || has_blocking_operators(inner); });
  }
  return found;
}

// The base of operators that run nets.
class ControlOperator : public Operator {
 public:
  explicit ControlOperator(const OperatorContext& context)
      : Operator(context), workspace_(context.workspace), seed_(context.seed) {
    for_each_net(context.def,
                 [this](const NetDef& net) { blocks_ = blocks_ || has_blocking_operators(net); });
  }
  bool may_block() const override { return blocks_; }

 protected:
  NestedNet nested(const char* name) const { return {args().net(name), workspace_, seed_}; }

  Workspace& workspace_;
  const uint64_t seed_;

 private:
  bool blocks_ = false;
};

}  // namespace caffe2
