// Numbers out of text, whatever the language of the process.
#pragma once
#include <charconv>
#include <limits>
#include <string_view>
#include <version>

#ifndef __cpp_lib_to_chars
#include <cstdlib>
#include <string>
#endif

namespace caffe2 {

// As std::from_chars does, which some C++ libraries have for integers alone; but a number out of
// range is infinite, or 0.
inline std::from_chars_result read_double(std::string_view text, double& value) {
#ifdef __cpp_lib_to_chars
  auto got = std::from_chars(text.data(), text.data() + text.size(), value);
  if (got.ec == std::errc::result_out_of_range) {
    got.ec = std::errc();
    const std::string_view number = text.substr(0, static_cast<size_t>(got.ptr - text.data()));
    const bool tiny = number.find("e-") != number.npos || number.find("E-") != number.npos;
    value = tiny ? 0 : std::numeric_limits<double>::infinity();
    if (text.starts_with('-')) value = -value;
  }
  return got;
#else
  constexpr std::string_view kAllowed = "+-.0123456789aefintyAEFINTY";
  const std::string copy(text.substr(0, text.find_first_not_of(kAllowed)));
  char* end = nullptr;
  const double found = copy.starts_with('+') ? 0 : std::strtod(copy.c_str(), &end);
  if (end == nullptr || end == copy.c_str()) return {text.data(), std::errc::invalid_argument};
  value = found;
  return {text.data() + (end - copy.c_str()), std::errc()};
#endif
}

}  // namespace caffe2
