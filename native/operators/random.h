// From the engine's random streams to those of the kernels.
#pragma once
#include "core/operator.h"
#include "kernels/kernels.h"

namespace caffe2 {

inline kernels::RandomState random_state(const RandomStream& stream) {
  kernels::RandomState state;
  state.key = stream.seed;
  state.stream = static_cast<uint64_t>(stream.op) << 32 | stream.run;
  return state;
}

}  // namespace caffe2
