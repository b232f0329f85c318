// From the element type of a tensor to a C++ type, or to a type of the kernels.
#pragma once
#include <optional>

#include "core/types.h"
#include "kernels/kernels.h"

namespace caffe2 {

// Calls f(T()) for the one of the types Ts that is `type`; an error when there is none.
template <class... Ts, class F>
void dispatch(DataType type, const F& f) {
  const bool found = ((TypeOf<Ts>::value == type && (f(Ts()), true)) || ...);
  if (!found) fail(Code::kUnsupported, "type ", type_name(type), " has no kernel here");
}

inline std::optional<kernels::Type> kernel_type(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return kernels::Type::kFloat;
    case DataType::kDouble:
      return kernels::Type::kDouble;
    case DataType::kInt32:
      return kernels::Type::kInt32;
    case DataType::kInt64:
      return kernels::Type::kInt64;
    case DataType::kUInt8:
      return kernels::Type::kUint8;
    case DataType::kBool:
      return kernels::Type::kBool;
    default:
      return std::nullopt;
  }
}

}  // namespace caffe2
