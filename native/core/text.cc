#include "core/text.h"

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/message_fields.h"
#include "core/numbers.h"

namespace caffe2 {
namespace {

constexpr int kMaxDepth = 200;
constexpr int kMaxMessages = 1 << 18;  // one without content takes a hundred times its text

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// Fields have other names today than in old text; the numbers stayed.
std::string_view todays_name(std::string_view field) {
  return field == "cuda_gpu_id" || field == "hip_gpu_id" ? "device_id" : field;
}

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  template <class M>
  void read(M& message, char end, int depth) {
    if (depth > kMaxDepth) fail(concat("messages are nested deeper than ", kMaxDepth));
    if (++messages_ > kMaxMessages) fail("there are too many messages");
    while (true) {
      const char next = peek();
      if (next == end) {
        if (end != '\0') at_++;
        return;
      }
      if (next == '\0') fail("a message does not end");
      FieldReader field{*this, todays_name(word("the name of a field")), depth};
      visit_fields(message, field);
      if (!field.known) fail(concat(M::kName, " has no field '", field.name, "'"));
      if (peek() == ',' || peek() == ';') at_++;
    }
  }

 private:
  struct FieldReader {
    TextReader& in;
    const std::string_view name;
    const int depth;
    bool known = false;

    template <class T>
    void operator()(uint32_t, const char* field, T& member) {
      if (known || name != field) return;
      known = true;
      in.take(member, depth);
    }
  };

  template <class T>
  void take(std::optional<T>& member, int) {
    need(':');
    member = value<T>();
  }
  template <class T>
  void take(Box<T>& member, int depth) {
    if (!member) member.emplace();
    take_message(*member, depth);
  }
  template <class T>
  void take(std::vector<T>& member, int depth) {
    constexpr bool kScalar = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;
    const auto one = [&] {
      if constexpr (kScalar) {
        member.push_back(value<T>());
      } else {
        take_message(member.emplace_back(), depth);
      }
    };
    if (peek() == ':') {
      at_++;
    } else if (kScalar) {
      fail("':' is missing");
    }
    if (peek() != '[') return one();
    at_++;
    for (bool first = true; peek() != ']'; first = false) {
      if (!first) need(',');
      one();
    }
    at_++;
  }
  void take(wire::Floats& member, int depth) {
    std::vector<float> more;
    take(more, depth);
    member.append(wire::Floats(std::move(more)));
  }
  template <class T>
  void take(wire::Packed<T>&, int) {
    fail("values of tensors are not read from text");
  }

  template <class M>
  void take_message(M& message, int depth) {
    if (peek() == ':') at_++;
    const char open = peek();
    if (open != '{' && open != '<') fail("'{' is missing");
    at_++;
    read(message, open == '{' ? '}' : '>', depth + 1);
  }

  template <class T>
  T value() {
    if constexpr (std::is_same_v<T, std::string>) {
      return string();
    } else if constexpr (std::is_same_v<T, wire::Bytes>) {
      return wire::Bytes(string());
    } else if constexpr (std::is_same_v<T, bool>) {
      const std::string_view found = word("true or false");
      if (found == "true" || found == "1" || found == "t" || found == "True") return true;
      if (found == "false" || found == "0" || found == "f" || found == "False") return false;
      fail(concat("'", found, "' is neither true nor false"));
    } else {
      return number<T>();
    }
  }

  template <class T>
  T number() {
    const char* const begin = text_.data() + (peek(), at_);
    const char* const end = text_.data() + text_.size();
    const char* digits = begin + (begin != end && *begin == '-');
    T result{};
    std::from_chars_result got{};
    if constexpr (std::is_floating_point_v<T>) {
      double wide = 0;
      got = read_double({begin, static_cast<size_t>(end - begin)}, wide);
      result = static_cast<T>(wide);
      if (got.ec == std::errc() && got.ptr != end && (*got.ptr == 'f' || *got.ptr == 'F'))
        got.ptr++;
    } else if (end - digits > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
      got = std::from_chars(digits + 2, end, result, 16);
      if (digits != begin) result = static_cast<T>(0 - result);
    } else {
      got = std::from_chars(begin, end, result);
    }
    if (got.ec != std::errc() || (got.ptr != end && is_word(*got.ptr))) fail("here is no number");
    at_ = static_cast<size_t>(got.ptr - text_.data());
    return result;
  }

  // One or several quoted pieces.
  std::string string() {
    std::string out;
    char quote = peek();
    if (quote != '"' && quote != '\'') fail("here is no quoted text");
    for (; quote == '"' || quote == '\''; quote = peek()) {
      at_++;
      while (true) {
        const char c = next();
        if (c == quote) break;
        out += c == '\\' ? escaped() : c;
      }
    }
    return out;
  }

  char next() {
    if (at_ == text_.size()) fail("quoted text does not end");
    return text_[at_++];
  }

  char escaped() {
    const char c = next();
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'a':
        return '\a';
      case 'b':
        return '\b';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return coded(16, 2);
      default:
        break;
    }
    if (digit(c) >= 8) return c;
    at_--;
    return coded(8, 3);
  }

  char coded(int base, int most) {
    int code = 0, n = 0;
    for (; n < most && at_ < text_.size() && digit(text_[at_]) < base; n++) {
      code = code * base + digit(text_[at_++]);
    }
    if (n == 0) fail("'\\x' without digits");
    return static_cast<char>(code);
  }

  std::string_view word(const char* what) {
    peek();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) at_++;
    if (at_ == begin) fail(concat("here is not ", what));
    return text_.substr(begin, at_ - begin);
  }

  void need(char c) {
    if (peek() != c) fail(concat("'", c, "' is missing"));
    at_++;
  }

  // The next character after blanks and comments; 0 at the end.
  char peek() {
    for (; at_ < text_.size(); at_++) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') at_++;
      } else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
        if (c == '\0') fail("here is a zero byte");
        return c;
      }
    }
    return '\0';
  }

  [[noreturn]] void fail(const std::string& problem) const {
    size_t line = 1;
    for (const char c : text_.substr(0, at_)) line += c == '\n';
    caffe2::fail(Code::kInvalidArgument, "the text is no net: ", problem, " (line ", line, ")");
  }

  const std::string_view text_;
  size_t at_ = 0;
  int messages_ = 0;
};

}  // namespace

NetDef parse_net_text(std::string_view text) {
  NetDef net;
  TextReader(text).read(net, '\0', 0);
  return net;
}

}  // namespace caffe2
