// Random plans of nets with queues, counters and stop blobs: every one ends, by itself, by an error
// or when its time is over.
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "core/plan.h"
#include "random_nets.h"

using namespace caffe2;

namespace {

OperatorDef random_queue_operator(fuzz::Bytes& in) {
  constexpr const char* kTypes[] = {
      "CreateBlobsQueue",
      "EnqueueBlobs",
      "SafeEnqueueBlobs",
      "DequeueBlobs",
      "SafeDequeueBlobs",
      "CloseBlobsQueue",
      "CreateCounter",
      "CountDown",
      "CountUp",
      "CreateAtomicBool",
      "ConditionalSetAtomicBool",
      "CheckAtomicBool",
      "ConstantFill",
      "Copy",
  };
  OperatorDef op = fuzz::random_operator(in, *find_schema(kTypes[in.below(std::size(kTypes))]), 3);
  const bool takes_queue = op.type->find("Blobs") != std::string::npos;
  if (takes_queue && !op.input.empty()) op.input[0] = "queue";
  if (*op.type == "CreateBlobsQueue") op.output[0] = "queue";
  return op;
}

ExecutionStep random_step(fuzz::Bytes& in, int nets, int depth) {
  ExecutionStep step;
  step.name = "step";
  const int parts = 1 + in.byte() % 3;
  for (int i = 0; i < parts; i++) {
    if (depth < 3 && in.one_in(2)) {
      step.substep.push_back(random_step(in, nets, depth + 1));
    } else if (step.substep.empty() || in.one_in(8)) {
      step.network.push_back(std::to_string(in.below(static_cast<uint32_t>(nets))));
    }
  }
  if (!step.substep.empty() && !in.one_in(8)) step.network.clear();
  if (in.one_in(2)) step.num_iter = in.byte() % 4;
  if (in.one_in(3)) step.concurrent_substeps = true;
  if (in.one_in(4)) step.should_stop_blob = "condition";
  if (in.one_in(4)) step.only_once = true;
  if (in.one_in(6)) step.create_workspace = true;
  if (in.one_in(6)) step.num_concurrent_instances = in.byte() % 3;
  if (in.one_in(8)) step.run_every_ms = in.byte() % 4;
  if (in.one_in(8)) {
    step.report_net = "0";
    step.report_interval = in.byte() % 2;
  }
  return step;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Sandbox sandbox(2);
  fuzz::Bytes in(data, size);
  {
    const auto workspace = sandbox.workspace();
    fuzz::feed(in, *workspace, sandbox);
    PlanDef plan;
    const int nets = 1 + in.byte() % 4;
    for (int i = 0; i < nets; i++) {
      NetDef& net = plan.network.emplace_back();
      net.name = std::to_string(i);
      net.type = in.one_in(2) ? "dag" : "simple";
      for (int k = 1 + in.byte() % 4; k > 0; k--) net.op.push_back(random_queue_operator(in));
    }
    for (int i = 1 + in.byte() % 2; i > 0; i--) {
      plan.execution_step.push_back(random_step(in, nets, 0));
    }
    try {
      run_plan(*workspace, plan);
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {
    }
  }
  sandbox.engine->scratch().release_free();
  if (sandbox.engine->allocator()->used() != 0) std::abort();
  return 0;
}
