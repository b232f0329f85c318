// A net made ready to run in a workspace.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph.h"
#include "core/messages.h"
#include "core/operator.h"
#include "core/private_blobs.h"

namespace caffe2 {

class Workspace;

struct NetOptions {
  // What the net writes and does not name as external output is its own: it is no blob of the
  // workspace, is not computed where nothing needs it, and shares memory.
  bool hide_intermediates = false;
  // Nobody else uses what the net reads: it may be released once operators have it in another form.
  bool own_inputs = false;
};

class CompiledNet {
 public:
  // sites: the user's line that created each operator; may be shorter than the net.
  // seed: of random operators whose device option names none.
  // Raises, and leaves the workspace as it was, when an operator is unknown, malformed or has no
  // kernel, or when a blob is read that neither the workspace nor an earlier operator provides.
  CompiledNet(NetDef def, std::vector<std::string> sites, Workspace& workspace, uint64_t seed,
              NetOptions options = {});

  // Runs all operators: in order, or, for net types other than "simple", each as soon as those it
  // waits for are done. Operators in order do the work of those after them where nobody can see it.
  // The first error ends the run; its text names the operator. One run at a time: a second one is
  // refused.
  void run();
  void run(RunContext& context);  // as a part of another run
  // Ends the run that is going on, if there is one, from another thread: it raises
  // Error(kCancelled), at the latest when the operators at work are done.
  void cancel();

  // Called before (done: false) and after each operator, by the thread that runs it; what it raises
  // ends the run. While there is one, every operator is a step of its own. Not during a run.
  using Observer = std::function<void(int op, bool done)>;
  void observe(Observer observer);

  // Milliseconds of each operator, in order, on average over `runs` runs (> 0): 0 for those whose
  // work another one does on the way. In a net of which operators run side by side, all take turns.
  std::vector<double> time_operators(int runs);

  // Whether an operator may wait for something outside of this net.
  bool may_block() const;

  // Whether the operators only read what this blob holds, and forget it.
  bool only_reads(const std::string& blob) const;

  const NetDef& def() const { return def_; }

 private:
  int size() const { return static_cast<int>(def_.op.size()); }
  std::string net_text() const;
  void check_inputs() const;
  void check_outputs() const;
  void find_sole_users();
  void bind();
  void rebind();
  std::shared_ptr<Blob> blob(const std::string& name);
  template <class Run>
  void only_one(const Run& run);
  void run_alone(RunContext& context);
  void run_in_order(RunContext& context);
  void run_step(int step, RunContext& context);
  void run_observed(int op, RunContext& context);
  void take_random_state();
  void end_run();
  void unfuse_declined();
  void choose_layouts();
  // Runs `step` and names operator i in any error that comes out of it.
  template <class Step>
  void annotated(int i, const Step& step) const;

  NetDef def_;  // as it came, but for quoted nets; stays once operators refer to it
  const std::vector<std::string> sites_;
  Workspace& workspace_;
  const uint64_t seed_;
  std::string random_state_;  // the blob that keeps seed and number of runs; "": none
  std::vector<std::unique_ptr<Operator>> operators_;
  bool ordinary_ = true;  // operators touch no blobs but their inputs and outputs
  PrivateBlobs private_;
  std::vector<Step> steps_;  // for runs in order
  std::vector<Epilogue> epilogues_;
  Observer observer_;
  std::vector<int> declined_;             // steps whose fusion did not fit the values
  std::optional<DependencyGraph> graph_;  // for parallel runs
  uint64_t bound_epoch_ = 0;
  // fork_count() of the process in which a run is going on; the child of a fork has none.
  std::atomic<int> running_{-1};
  ForkMutex cancel_mutex_;
  Cancellation* cancellation_ = nullptr;  // of the outermost run
};

}  // namespace caffe2
