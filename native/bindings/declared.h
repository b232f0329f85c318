// Operators that were declared in Python after the engine was built.
#pragma once
#include <nanobind/nanobind.h>

namespace caffe2::bindings {

// find(type: bytes) -> Declaration or None, of caffe2/ops. Asked for types that the table of the
// build lacks. What a Declaration says of arguments and types is checked by its NumPy body.
void set_declarations(nanobind::object find);

}  // namespace caffe2::bindings
