// Plans: nets in steps that run one after the other or side by side, a number of times or until a
// blob says stop.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/cancellation.h"
#include "core/messages.h"
#include "core/workspace.h"

namespace caffe2 {

// For each net of a plan, the user's lines that created its operators. Both may be shorter.
using PlanSites = std::vector<std::vector<std::string>>;

// Runs a plan. The nets that its steps use are made in `workspace`, replace those of the same name
// and stay there; a step with create_workspace makes its own in a workspace inside that one.
//
// Substeps that run side by side, report nets and steps with run_every_ms have threads of their
// own, and each its own copy of a net. The first error ends the run: nothing new starts, what waits
// is woken, all threads are joined, and the error names net, operator and step. Before anything
// runs a malformed plan is refused: an unknown network, values that do not go together, too many
// or too deep steps. criteria_network has no effect.
void run_plan(Workspace& workspace, const PlanDef& plan, const PlanSites& sites = {});

// A plan on a thread of its own. The workspace has to outlive this. It is cancelled as well when
// interrupted() says so; `held` is let go of when it has ended.
class BackgroundPlan {
 public:
  BackgroundPlan(Workspace& workspace, PlanDef plan, PlanSites sites,
                 std::function<bool()> interrupted = nullptr, std::shared_ptr<void> held = nullptr);
  ~BackgroundPlan() { cancel(); }

  bool done() const { return done_.load(std::memory_order_acquire); }
  // Whether it ran to its end; raises its error when it did not, or when it is not done.
  bool succeeded() const;
  // Ends the run and waits for its end.
  void cancel();

 private:
  std::atomic<bool> cancelled_{false}, done_{false};
  std::exception_ptr error_;
  const HostHooks hooks_;
  const pid_t process_;
  std::thread thread_;
};

}  // namespace caffe2
