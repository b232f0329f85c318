// The protobuf wire format: reading and writing single values, with every length checked.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace caffe2 {
class MappedFile;
}

namespace caffe2::wire {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

enum class Type : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kGroupBegin = 3,
  kGroupEnd = 4,
  kFixed32 = 5,
};

struct Tag {
  uint32_t number = 0;
  Type type = Type::kVarint;
  friend bool operator==(const Tag&, const Tag&) = default;
};

template <class T>
inline constexpr Type kTypeOf = std::is_same_v<T, float>    ? Type::kFixed32
                                : std::is_same_v<T, double> ? Type::kFixed64
                                                            : Type::kVarint;

// Numbers of fixed width lie on the wire as they lie in memory.
template <class T>
inline constexpr bool kFixedWidth = std::is_floating_point_v<T>;

// Negative numbers of any width are written with 64 bits.
template <class T>
constexpr uint64_t to_varint(T value) {
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

inline constexpr int kMaxVarintBytes = 10;

constexpr size_t varint_size(uint64_t value) {
  return 1 + (static_cast<size_t>(std::bit_width(value | 1)) - 1) / 7;
}

void append_varint(std::string& out, uint64_t value);

// Reads values from a part of a message. Every error names the message and field that are being
// read and the place in the outermost message, as "Argument.floats at byte 57: ...".
class Reader {
 public:
  // `offset`: where `input` begins in the outermost message.
  Reader(std::string_view input, const char* message, size_t offset = 0)
      : next_(input.data()),
        end_(input.data() + input.size()),
        begin_(input.data()),
        offset_(offset),
        message_(message) {}

  // What is being read, for errors; without a name, the field's number stands for it.
  void enter_field(uint32_t number, const char* name = nullptr) {
    number_ = number;
    field_ = name;
  }

  bool done() const { return next_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - next_); }
  size_t offset() const { return offset_ + static_cast<size_t>(next_ - begin_); }
  // What was read since the offset `start`.
  std::string_view since(size_t start) const {
    const char* from = begin_ + (start - offset_);
    return {from, static_cast<size_t>(next_ - from)};
  }

  Tag tag();
  uint64_t varint();
  std::string_view bytes();
  template <class T>
  T scalar() {
    if constexpr (kFixedWidth<T>) {
      T value;
      std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
      return value;
    } else if constexpr (std::is_same_v<T, bool>) {
      return varint() != 0;
    } else {
      return static_cast<T>(varint());
    }
  }

  // The next bytes, as many as that.
  std::string_view take(size_t size);

  // Passes over the value of `tag`, whose groups may be nested `depth` deep.
  void skip(Tag tag, int depth);

  // How many pieces that begin with `prefix` and are `size` bytes long come next.
  size_t count_run(std::string_view prefix, size_t size) const;

  [[noreturn]] void fail(const std::string& text) const;

 private:
  void skip_group(uint32_t number, int depth);

  const char* next_;
  const char* end_;
  const char* begin_;
  size_t offset_;
  const char* message_;
  const char* field_ = nullptr;
  uint32_t number_ = 0;
};

// Bytes that are either owned, or borrowed from memory which then has to outlive them.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::string bytes) : owned_(std::move(bytes)) {}
  static Bytes borrow(std::string_view bytes) {
    Bytes result;
    result.borrowed_ = bytes;
    return result;
  }

  std::string_view view() const { return borrowed_.data() ? borrowed_ : owned_; }
  size_t size() const { return view().size(); }

  void append(std::string_view bytes) {
    if (borrowed_.data()) owned_ = std::exchange(borrowed_, {});
    owned_.append(bytes);
  }

 private:
  std::string owned_;
  std::string_view borrowed_;
};

// The numbers of a repeated field, kept as they lie on the wire: much shorter than in memory where
// they are small, and floats can stay in the file they came from. T: float, double, int32_t,
// int64_t.
template <class T>
class Packed {
 public:
  Packed() = default;
  explicit Packed(std::span<const T> values) : size_(values.size()) {
    std::string bytes;
    if constexpr (kFixedWidth<T>) {
      bytes.assign(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    } else {
      for (const T value : values) append_varint(bytes, to_varint(value));
    }
    bytes_ = std::move(bytes);
  }
  static Packed borrow(std::span<const T> values)
    requires(kFixedWidth<T>)
  {
    return borrow_encoded({reinterpret_cast<const char*>(values.data()), values.size_bytes()},
                          values.size());
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Writes the size() numbers to `out`, converted to its type.
  template <class Out>
  void copy_to(Out* out) const {
    if constexpr (std::is_same_v<T, Out> && kFixedWidth<T>) {
      if (size_ > 0) std::memcpy(out, encoded().data(), encoded().size());
    } else {
      Reader in(encoded(), "");
      for (size_t i = 0; i < size_; i++) out[i] = static_cast<Out>(in.scalar<T>());
    }
  }
  std::vector<T> values() const {
    std::vector<T> result(size_);
    copy_to(result.data());
    return result;
  }

  // The wire form of `count` whole numbers.
  std::string_view encoded() const { return bytes_.view(); }
  void append_encoded(std::string_view bytes, size_t count) {
    bytes_.append(bytes);
    size_ += count;
  }
  static Packed borrow_encoded(std::string_view bytes, size_t count) {
    Packed result;
    result.bytes_ = Bytes::borrow(bytes);
    result.size_ = count;
    return result;
  }

 private:
  Bytes bytes_;
  size_t size_ = 0;
};

// The floats of a field that is not declared packed: owned, or borrowed where they lie on the wire,
// in a row or each behind its tag.
class Floats {
 public:
  Floats() = default;
  Floats(std::vector<float> values) : owned_(std::move(values)) {}
  // `count` floats, the first at `first`, each `step` bytes behind the one before. The lender,
  // where they are in a file, keeps them alive.
  static Floats borrow(const char* first, size_t count, size_t step,
                       std::shared_ptr<const MappedFile> lender) {
    Floats result;
    result.first_ = first;
    result.count_ = count;
    result.step_ = step;
    result.lender_ = std::move(lender);
    return result;
  }

  size_t size() const { return first_ != nullptr ? count_ : owned_.size(); }
  bool empty() const { return size() == 0; }
  float operator[](size_t i) const {
    float value;
    std::memcpy(&value, at() + i * step_, sizeof(float));
    return value;
  }
  void copy_to(float* out) const {
    if (step_ == sizeof(float)) {
      if (!empty()) std::memcpy(out, at(), size() * sizeof(float));
    } else {
      for (size_t i = 0; i < count_; i++) out[i] = (*this)[i];
    }
  }
  std::vector<float> values() const {
    std::vector<float> result(size());
    copy_to(result.data());
    return result;
  }
  void append(const Floats& more) {
    if (first_ != nullptr) *this = Floats(values());
    owned_.resize(owned_.size() + more.size());
    more.copy_to(owned_.data() + (owned_.size() - more.size()));
  }
  void push_back(float value) { append(Floats({value})); }

  // Where they lie in a row in a file, or nullptr.
  const char* lent() const { return lender_ && step_ == sizeof(float) ? first_ : nullptr; }
  const std::shared_ptr<const MappedFile>& lender() const { return lender_; }

 private:
  const char* at() const {
    return first_ != nullptr ? first_ : reinterpret_cast<const char*>(owned_.data());
  }

  std::vector<float> owned_;
  const char* first_ = nullptr;
  size_t count_ = 0;
  size_t step_ = sizeof(float);
  std::shared_ptr<const MappedFile> lender_;
};

}  // namespace caffe2::wire
