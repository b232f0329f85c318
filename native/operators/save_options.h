// How blobs are saved: the argument `options`, a SerializationOptions message.
#pragma once
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "core/serialize.h"
#include "core/wire.h"

namespace caffe2 {

class SaveOptions {
 public:
  struct Option {
    std::optional<std::regex> names;
    int64_t chunk = 0;  // elements of a part; 0: as without options, negative: all
    bool half = false;  // floats as bfloat16
  };

  explicit SaveOptions(const std::string& message) {
    wire::Reader reader(message, "SerializationOptions");
    while (!reader.done()) {
      const wire::Tag tag = reader.tag();
      reader.enter_field(tag.number);
      if (tag == wire::Tag{1, wire::Type::kBytes}) {
        options_.push_back(read(reader.bytes()));
      } else {
        reader.skip(tag, kDepth);
      }
    }
  }

  // The first option whose expression fits the whole name; nullptr without one.
  const Option* find(const std::string& blob) const {
    for (const Option& option : options_) {
      if (option.names && blob.size() <= kLongest && std::regex_match(blob, *option.names)) {
        return &option;
      }
    }
    return nullptr;
  }

 private:
  static constexpr int kDepth = 16;
  static constexpr size_t kLongest = 1000;  // of names and expressions, which recurse

  static Option read(std::string_view message) {
    Option option;
    wire::Reader reader(message, "BlobSerializationOptions");
    while (!reader.done()) {
      const wire::Tag tag = reader.tag();
      reader.enter_field(tag.number);
      if (tag == wire::Tag{1, wire::Type::kBytes}) {
        option.names = expression(std::string(reader.bytes()));
      } else if (tag == wire::Tag{2, wire::Type::kVarint}) {
        option.chunk = reader.scalar<int64_t>();
      } else if (tag == wire::Tag{3, wire::Type::kVarint}) {
        constexpr int kBfloat16 = 2;
        option.half = reader.scalar<int32_t>() == kBfloat16;
      } else {
        reader.skip(tag, kDepth);
      }
    }
    return option;
  }

  static std::regex expression(const std::string& text) {
    CAFFE2_ENFORCE(text.size() <= kLongest, "a blob_name_regex has ", text.size(),
                   " characters; allowed are ", kLongest);
    try {
      return std::regex(text);
    } catch (const std::regex_error& error) {
      fail(Code::kInvalidArgument, "blob_name_regex '", text, "': ", error.what());
    }
  }

  std::vector<Option> options_;
};

}  // namespace caffe2
