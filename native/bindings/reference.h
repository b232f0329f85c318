// Operators that run on their NumPy body.
#pragma once
#include <nanobind/nanobind.h>

#include "core/workspace.h"

namespace caffe2::bindings {

// callable(op_def: bytes) -> body(inputs: list of arrays, stream: (seed, op, run)) -> sequence of
// arrays. The first call is made once for each operator that is created.
ReferenceFactory reference_factory(nanobind::object callable);

}  // namespace caffe2::bindings
