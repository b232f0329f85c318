#include "api/error.h"

#include <charconv>
#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>

#include "core/error.h"

namespace caffe2::api {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kCut = "...";

bool between(char c, int low, int high) {
  const int value = static_cast<unsigned char>(c);
  return value >= low && value <= high;
}

// Bytes of the character at the start of a text; 0 where there is none that is well-formed (The
// Unicode Standard, table 3-7). NUL, which would end the text, is none.
size_t character_size(std::string_view text) {
  const char first = text[0];
  if (between(first, 0x01, 0x7F)) return 1;
  const size_t size = between(first, 0xC2, 0xDF)   ? 2
                      : between(first, 0xE0, 0xEF) ? 3
                      : between(first, 0xF0, 0xF4) ? 4
                                                   : 0;
  if (size == 0 || text.size() < size) return 0;
  const int first_byte = static_cast<unsigned char>(first);
  const int low = first_byte == 0xE0 ? 0xA0 : first_byte == 0xF0 ? 0x90 : 0x80;
  const int high = first_byte == 0xED ? 0x9F : first_byte == 0xF4 ? 0x8F : 0xBF;
  if (!between(text[1], low, high)) return 0;
  for (size_t i = 2; i < size; i++) {
    if (!between(text[i], 0x80, 0xBF)) return 0;
  }
  return size;
}

caffe2_code number(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return CAFFE2_INVALID_ARGUMENT;
    case Code::kNotFound:
      return CAFFE2_NOT_FOUND;
    case Code::kOutOfMemory:
      return CAFFE2_OUT_OF_MEMORY;
    case Code::kFailedPrecondition:
      return CAFFE2_FAILED_PRECONDITION;
    case Code::kUnsupported:
      return CAFFE2_UNSUPPORTED;
    case Code::kInternal:
      return CAFFE2_INTERNAL;
    case Code::kCancelled:
      return CAFFE2_CANCELLED;
  }
  return CAFFE2_INTERNAL;
}

// Writes text that always ends with its NUL. What is no UTF-8 becomes U+FFFD; text that does not
// fit is cut between characters and ends with "...".
class Writer {
 public:
  template <size_t capacity>
  explicit Writer(char (&out)[capacity]) : out_(out), room_(capacity - 1) {
    out_[0] = '\0';
  }

  Writer& operator<<(std::string_view text) {
    while (!text.empty() && !full_) {
      const size_t taken = character_size(text);
      put(taken > 0 ? text.substr(0, taken) : kReplacement);
      text.remove_prefix(taken > 0 ? taken : 1);
    }
    return *this;
  }

  Writer& operator<<(int number) {
    char digits[12];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return *this << std::string_view(digits, static_cast<size_t>(end - digits));
  }

 private:
  void put(std::string_view character) {
    full_ = size_ + character.size() > room_;
    const std::string_view piece = full_ ? kCut : character;
    if (full_) size_ = cut_;
    std::memcpy(out_ + size_, piece.data(), piece.size());
    size_ += piece.size();
    out_[size_] = '\0';
    if (size_ + kCut.size() <= room_) cut_ = size_;
  }

  char* out_;
  size_t room_;
  size_t size_ = 0;
  size_t cut_ = 0;  // where the mark of a text that goes on can still stand
  bool full_ = false;
};

caffe2_code report(caffe2_error* error, caffe2_code code, std::string_view text,
                   const ErrorLocation& where = {}) {
  if (error == nullptr) return code;
  error->code = code;
  error->operator_index = where.op_index;
  Writer(error->operator_type) << where.op_type;
  Writer(error->net) << where.net;
  // As Error::what() has it, but with names that are cut: a long one must not hide the reason.
  Writer whole(error->text);
  if (!where.op_type.empty()) {
    whole << "Operator ";
    if (where.op_index >= 0) whole << where.op_index << " ";
    whole << "(" << error->operator_type << ")";
    if (!where.net.empty()) whole << " of net '" << error->net << "'";
    whole << ": ";
  }
  whole << text;
  return code;
}

}  // namespace

bool usable(const caffe2_error* error) noexcept {
  return error == nullptr || error->struct_size >= sizeof(caffe2_error);
}

caffe2_code report_success(caffe2_error* error) noexcept { return report(error, CAFFE2_OK, ""); }

caffe2_code report_exception(caffe2_error* error) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return report(error, number(e.code()), e.text(), e.location());
  } catch (const std::bad_alloc&) {
    return report(error, CAFFE2_OUT_OF_MEMORY, "the system has no memory left");
  } catch (const std::exception& e) {
    return report(error, CAFFE2_INTERNAL, e.what());
  } catch (...) {
    return report(error, CAFFE2_INTERNAL, "an exception of unknown type");
  }
}

}  // namespace caffe2::api
