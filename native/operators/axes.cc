#include "operators/axes.h"

namespace caffe2 {
namespace {

// One pass of a reduction: the last reduced run of `runs`.
struct Pass {
  int64_t outer = 1, n = 1, inner = 1;
};

std::vector<Pass> passes_of(const Runs& runs) {
  std::vector<Pass> passes;
  int64_t behind = 1;
  for (int i = runs.count() - 1; i >= 0; i--) {
    if (!runs.reduced(i)) {
      behind *= runs.size(i);
      continue;
    }
    Pass pass;
    pass.n = runs.size(i), pass.inner = behind;
    for (int k = 0; k < i; k++) pass.outer *= runs.size(k);
    passes.push_back(pass);
  }
  // Nothing to reduce: still the absolute values or squares.
  if (passes.empty()) passes.push_back({1, 1, runs.kept_size()});
  return passes;
}

}  // namespace

int64_t reduce_scratch_bytes(const Runs& runs) {
  int64_t values = 0;
  const auto passes = passes_of(runs);
  for (size_t i = 0; i + 1 < passes.size(); i++) values += passes[i].outer * passes[i].inner;
  return checked_multiply(values, sizeof(float));
}

void reduce(const kernels::Table& table, kernels::Reduction reduction, const Runs& runs,
            const float* x, float* y, void* scratch, const kernels::Parallel& parallel) {
  const auto passes = passes_of(runs);
  float* next = static_cast<float*>(scratch);
  for (size_t i = 0; i < passes.size(); i++) {
    const Pass& pass = passes[i];
    float* to = i + 1 == passes.size() ? y : next;
    table.reduce(reduction, pass.outer, pass.n, pass.inner, x, to, parallel);
    x = to;
    next += pass.outer * pass.inner;
    if (reduction == kernels::Reduction::kSumAbs || reduction == kernels::Reduction::kSumSquares) {
      reduction = kernels::Reduction::kSum;
    }
  }
}

}  // namespace caffe2
