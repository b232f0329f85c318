#include "operators/axes.h"

namespace caffe2 {
namespace {

// One step of a reduction: the last reduced run of `runs`.
struct Step {
  int64_t outer = 1, n = 1, inner = 1;
};

std::vector<Step> steps_of(const Runs& runs) {
  std::vector<Step> steps;
  int64_t behind = 1;
  for (int i = runs.count() - 1; i >= 0; i--) {
    if (!runs.reduced(i)) {
      behind *= runs.size(i);
      continue;
    }
    Step step;
    step.n = runs.size(i), step.inner = behind;
    for (int k = 0; k < i; k++) step.outer *= runs.size(k);
    steps.push_back(step);
  }
  // Nothing to reduce: still the absolute values or squares.
  if (steps.empty()) steps.push_back({1, 1, runs.kept_size()});
  return steps;
}

}  // namespace

size_t reduce_scratch_bytes(const Runs& runs) {
  int64_t values = 0;
  const auto steps = steps_of(runs);
  for (size_t i = 0; i + 1 < steps.size(); i++) values += steps[i].outer * steps[i].inner;
  return static_cast<size_t>(values) * sizeof(float);
}

void reduce(const kernels::Table& table, kernels::Reduction reduction, const Runs& runs,
            const float* x, float* y, void* scratch, const kernels::Parallel& parallel) {
  const auto steps = steps_of(runs);
  float* next = static_cast<float*>(scratch);
  for (size_t i = 0; i < steps.size(); i++) {
    const Step& step = steps[i];
    float* to = i + 1 == steps.size() ? y : next;
    table.reduce(reduction, step.outer, step.n, step.inner, x, to, parallel);
    x = to;
    next += step.outer * step.inner;
    if (reduction == kernels::Reduction::kSumAbs || reduction == kernels::Reduction::kSumSquares) {
      reduction = kernels::Reduction::kSum;
    }
  }
}

}  // namespace caffe2
