// Running the operators of a net, each as soon as those it waits for are done.
#pragma once
#include <functional>

#include "core/cancellation.h"
#include "core/graph.h"
#include "core/thread_pool.h"

namespace caffe2 {

// What an executor needs to know of the net.
struct Steps {
  int count;
  std::function<void(int step, RunContext& context)> execute;  // raises
  std::function<bool(int step)> may_block;
};

// Raises the first error; what runs at that moment is finished, the rest is left out.
void run_parallel(const Steps& steps, const DependencyGraph& graph, ThreadPool& pool,
                  RunContext& context);

}  // namespace caffe2
