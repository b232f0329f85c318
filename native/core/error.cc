#include "core/error.h"

namespace caffe2 {

const char* code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kFailedPrecondition:
      return "failed precondition";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kInternal:
      return "internal";
    case Code::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

namespace {

std::string compose(const std::string& text, const ErrorLocation& where) {
  std::string out;
  if (!where.op_type.empty()) {
    out = "Operator ";
    if (where.op_index >= 0) out += std::to_string(where.op_index) + " ";
    out += "(" + where.op_type + ")";
    if (!where.net.empty()) out += " of net '" + where.net + "'";
    out += ": ";
  }
  out += text;
  if (!where.site.empty()) out += "\n  created at " + where.site;
  if (!where.step.empty()) out += "\n  in step '" + where.step + "'";
  return out;
}

}  // namespace

Error::Error(Code code, std::string text, ErrorLocation location, std::shared_ptr<const void> cause)
    : std::runtime_error(compose(text, location)),
      code_(code),
      text_(std::move(text)),
      location_(std::move(location)),
      cause_(std::move(cause)) {}

}  // namespace caffe2
