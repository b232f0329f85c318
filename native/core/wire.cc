#include "core/wire.h"

#include "core/error.h"

namespace caffe2::wire {
namespace {

constexpr uint32_t kMaxFieldNumber = (uint32_t{1} << 29) - 1;

}  // namespace

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

uint64_t Reader::varint() {
  uint64_t value = 0;
  for (int i = 0; i < kMaxVarintBytes; i++) {
    if (next_ == end_) fail("a number is cut off");
    const uint64_t byte = static_cast<unsigned char>(*next_++);
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value;
  }
  fail(concat("a number is longer than ", kMaxVarintBytes, " bytes"));
}

Tag Reader::tag() {
  enter_field(0);
  const uint64_t value = varint();
  const uint64_t number = value >> 3, type = value & 7;
  if (number == 0 || number > kMaxFieldNumber) fail(concat("no field can be number ", number));
  enter_field(static_cast<uint32_t>(number));
  if (type > static_cast<uint64_t>(Type::kFixed32)) fail(concat("no wire type is number ", type));
  return {static_cast<uint32_t>(number), static_cast<Type>(type)};
}

std::string_view Reader::take(size_t size) {
  if (size > left()) fail(concat("needs ", size, " bytes where ", left(), " are left"));
  const std::string_view result(next_, size);
  next_ += size;
  return result;
}

std::string_view Reader::bytes() {
  const uint64_t size = varint();
  if (size > left()) fail(concat("has length ", size, " where ", left(), " bytes are left"));
  return take(static_cast<size_t>(size));
}

void Reader::skip(Tag tag, int depth) {
  switch (tag.type) {
    case Type::kVarint:
      varint();
      return;
    case Type::kFixed64:
      take(8);
      return;
    case Type::kBytes:
      bytes();
      return;
    case Type::kGroupBegin:
      skip_group(tag.number, depth);
      return;
    case Type::kGroupEnd:
      fail("a group ends that never began");
    case Type::kFixed32:
      take(4);
      return;
  }
}

void Reader::skip_group(uint32_t number, int depth) {
  if (depth <= 0) fail("groups and messages are nested too deep");
  while (!done()) {
    const Tag inner = tag();
    if (inner == Tag{number, Type::kGroupEnd}) return;
    skip(inner, depth - 1);
  }
  enter_field(number);
  fail("a group never ends");
}

size_t Reader::count_run(std::string_view prefix, size_t size) const {
  size_t count = 0;
  for (const char* at = next_; static_cast<size_t>(end_ - at) >= size; at += size, count++) {
    if (std::memcmp(at, prefix.data(), prefix.size()) != 0) break;
  }
  return count;
}

void Reader::fail(const std::string& text) const {
  std::string where = message_;
  if (field_) {
    where += concat(".", field_);
  } else if (number_ > 0) {
    where += concat(" field ", number_);
  }
  throw Error(Code::kInvalidArgument, concat(where, " at byte ", offset(), ": ", text));
}

}  // namespace caffe2::wire
