// NumPy arrays in and out of blobs.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "core/workspace.h"

namespace caffe2::bindings {

namespace nb = nanobind;

// C-contiguous, on the CPU; any element type, checked by data_type().
using InputArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

DataType data_type(nb::dlpack::dtype dtype);  // raises for types that no tensor has
bool is_data_type(nb::dlpack::dtype dtype);
Shape shape_of(const InputArray& array);

// A copy of an array as a tensor of `engine`.
Tensor to_tensor(const InputArray& array, Engine& engine);

// The same without a copy: the tensor reads the array, which must not change while it does.
Tensor lend_tensor(const InputArray& array, Engine& engine);

// A NumPy array of bytes objects as a tensor of strings.
Tensor to_string_tensor(const nb::object& array, Engine& engine);

// A new array with a copy of the tensor; strings become bytes objects.
nb::object to_array(const Tensor& tensor);
// An array on the tensor's own memory, which stays alive as long as the array.
nb::object view_array(const Tensor& tensor);

}  // namespace caffe2::bindings
