// Models in files, and nets without their values.
#pragma once
#include <nanobind/nanobind.h>

namespace caffe2::bindings {

void bind_models(nanobind::module_& m);

}  // namespace caffe2::bindings
