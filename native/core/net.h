// A net made ready to run in a workspace.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "core/messages.h"
#include "core/operator.h"

namespace caffe2 {

class Workspace;

class CompiledNet {
 public:
  // sites: the user's line that created each operator; may be shorter than the net.
  // seed: of random operators whose device option names none.
  // Raises, and leaves the workspace as it was, when an operator is unknown, malformed or has no
  // kernel, or when a blob is read that neither the workspace nor an earlier operator provides.
  CompiledNet(NetDef def, std::vector<std::string> sites, Workspace& workspace, uint64_t seed);

  // Runs all operators: in order, or, for net types other than "simple", each as soon as those it
  // waits for are done. The first error ends the run; its text names the operator. One run at a
  // time: a second one is refused.
  void run();
  void run(RunContext& context);  // as a part of another run

  // Whether an operator may wait for something outside of this net.
  bool may_block() const;

  const NetDef& def() const { return def_; }

 private:
  int size() const { return static_cast<int>(def_.op.size()); }
  std::string net_text() const;
  void check_inputs() const;
  void bind();
  // Runs `step` and names operator i in any error that comes out of it.
  template <class Step>
  void annotated(int i, const Step& step) const;

  const NetDef def_;
  const std::vector<std::string> sites_;
  Workspace& workspace_;
  std::vector<std::unique_ptr<Operator>> operators_;
  std::optional<DependencyGraph> graph_;  // for parallel runs
  uint64_t bound_epoch_ = 0;
  // fork_count() of the process in which a run is going on; the child of a fork has none.
  std::atomic<int> running_{-1};
};

}  // namespace caffe2
