// Databases for Python, and databases that Python opens for the engine.
#pragma once
#include <nanobind/nanobind.h>

#include <functional>

#include "core/cancellation.h"

namespace caffe2::bindings {

void bind_databases(nanobind::module_& m);

// callable(type, path, mode: "read", "write" or "new") -> an object with `records()`, an iterator
// of (key, value) in bytes, `put(key, value)` and `commit()`; or None.
decltype(HostHooks::open_database) database_opener(nanobind::object callable);

}  // namespace caffe2::bindings
