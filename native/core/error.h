// The one exception type of the engine and the helpers that raise it.
#pragma once
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace caffe2 {

enum class Code {
  kInvalidArgument,
  kNotFound,
  kOutOfMemory,
  kFailedPrecondition,
  kUnsupported,
  kInternal,
  kCancelled,
};

const char* code_name(Code code);

// Where in a net an error happened. Layers that know a part fill it in on the way up.
struct ErrorLocation {
  std::string op_type;
  int op_index = -1;  // position in the net
  std::string net;
  std::string site;  // the user's line that created the operator
  std::string step;  // of a plan
};

class Error : public std::runtime_error {
 public:
  Error(Code code, std::string text) : Error(code, std::move(text), {}) {}
  // cause: what the host raised, where an error comes from there.
  Error(Code code, std::string text, ErrorLocation location,
        std::shared_ptr<const void> cause = nullptr);

  Code code() const { return code_; }
  const std::string& text() const { return text_; }  // without the location
  const ErrorLocation& location() const { return location_; }
  const std::shared_ptr<const void>& cause() const { return cause_; }

 private:
  Code code_;
  std::string text_;
  ErrorLocation location_;
  std::shared_ptr<const void> cause_;
};

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  throw Error(code, concat(parts...));
}

// A macro, so that the text is put together only when the condition is false.
#define CAFFE2_ENFORCE(condition, ...)                                               \
  do {                                                                               \
    if (!(condition)) ::caffe2::fail(::caffe2::Code::kInvalidArgument, __VA_ARGS__); \
  } while (false)

}  // namespace caffe2
