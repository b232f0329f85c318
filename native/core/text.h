// Nets in protobuf's text format, as old nets have them quoted in arguments.
#pragma once
#include <string_view>

#include "core/messages.h"

namespace caffe2 {

// Raises Error(kInvalidArgument), which says where in the text, for what is no net. Values of
// tensors are not read.
NetDef parse_net_text(std::string_view text);

}  // namespace caffe2
