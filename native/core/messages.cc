#include "core/messages.h"

#include <limits>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "core/message_fields.h"

namespace caffe2 {
namespace {

static_assert(std::is_nothrow_move_constructible_v<OperatorDef> &&
                  std::is_nothrow_move_constructible_v<NetDef>,
              "vectors of messages grow by moving");

template <class T>
constexpr bool kIsText = std::is_same_v<T, std::string> || std::is_same_v<T, wire::Bytes>;

// ---- Reading ----

class Parser {
 public:
  Parser(size_t input_size, const ParseOptions& options)
      : borrow_(options.borrow),
        lender_(options.lender),
        operators_left_(options.max_operators),
        memory_(options.memory_base + options.memory_factor * input_size),
        memory_left_(memory_),
        max_depth_(options.max_depth) {}

  template <class M>
  void read(M& message, wire::Reader in, int depth);

  bool borrow() const { return borrow_; }
  int max_depth() const { return max_depth_; }
  const std::shared_ptr<const MappedFile>& lender() const { return lender_; }

  // Called before memory is taken.
  void charge(const wire::Reader& in, uint64_t bytes) {
    if (bytes > memory_left_) in.fail(concat("the message takes more than ", memory_, " bytes"));
    memory_left_ -= bytes;
  }

  void count_operator(const wire::Reader& in) {
    if (operators_left_ == 0) in.fail("there are too many operators");
    operators_left_--;
  }

 private:
  const bool borrow_;
  const std::shared_ptr<const MappedFile> lender_;
  uint64_t operators_left_;
  const uint64_t memory_;
  uint64_t memory_left_;
  const int max_depth_;
};

// Counts the packed numbers in `body`; fixed ones by their size, others by their last bytes.
template <class T>
size_t count_packed(const wire::Reader& in, std::string_view body) {
  if constexpr (wire::kFixedWidth<T>) {
    if (body.size() % sizeof(T) != 0) {
      in.fail(concat(body.size(), " bytes are no whole count of packed numbers"));
    }
    return body.size() / sizeof(T);
  } else {
    size_t count = 0;
    int continued = 0;
    for (const char byte : body) {
      continued = byte & 0x80 ? continued + 1 : 0;
      count += continued == 0;
      if (continued == wire::kMaxVarintBytes) in.fail("a packed number is too long");
    }
    if (continued > 0) in.fail("a packed number is cut off");
    return count;
  }
}

// Visits the fields of a message to find the one that `tag` announces, and reads its value.
class FieldParser {
 public:
  FieldParser(Parser& parser, wire::Reader& in, size_t start, wire::Tag tag, int depth)
      : parser_(parser), in_(in), tag_(tag), tag_bytes_(in.since(start)), depth_(depth) {}

  template <class T>
  void operator()(uint32_t number, const char* name, T& member) {
    if (number != tag_.number) return;
    in_.enter_field(number, name);
    known_ = take(member);
  }

  // Whether a field was found and had the right wire type.
  bool known() const { return known_; }

 private:
  template <class T>
  bool take(std::optional<T>& member) {
    if constexpr (kIsText<T>) {
      if (tag_.type != wire::Type::kBytes) return false;
      member = text<T>(in_.bytes());
    } else {
      if (tag_.type != wire::kTypeOf<T>) return false;
      member = in_.scalar<T>();
    }
    return true;
  }

  template <class T>
  bool take(Box<T>& member) {
    if (tag_.type != wire::Type::kBytes) return false;
    if (!member) {
      parser_.charge(in_, sizeof(T));
      member.emplace();
    }
    read(*member);
    return true;
  }

  template <class T>
  bool take(std::vector<T>& member) {
    if constexpr (std::is_arithmetic_v<T>) {
      if (tag_.type == wire::kTypeOf<T>) {
        *grow(member, 1) = in_.scalar<T>();
        return true;
      }
    }
    if (tag_.type != wire::Type::kBytes) return false;
    if constexpr (std::is_arithmetic_v<T>) {
      const std::string_view body = in_.bytes();
      const size_t count = count_packed<T>(in_, body);
      T* out = grow(member, count);
      wire::Reader packed(body, "");  // cannot fail: the numbers have been counted
      for (size_t i = 0; i < count; i++) out[i] = packed.scalar<T>();
    } else if constexpr (kIsText<T>) {
      const std::string_view body = in_.bytes();
      *grow(member, 1) = text<T>(body);
    } else {
      if constexpr (std::is_same_v<T, OperatorDef>) parser_.count_operator(in_);
      read(*grow(member, 1));
    }
    return true;
  }

  template <class T>
  bool take(wire::Packed<T>& member) {
    size_t count = 1;
    std::string_view body;
    if (tag_.type == wire::kTypeOf<T>) {
      const size_t start = in_.offset();
      in_.scalar<T>();
      body = in_.since(start);
    } else if (tag_.type == wire::Type::kBytes) {
      body = in_.bytes();
      count = count_packed<T>(in_, body);
    } else {
      return false;
    }
    if (parser_.borrow() && member.empty()) {
      member = wire::Packed<T>::borrow_encoded(body, count);
    } else {
      parser_.charge(in_, body.size());
      member.append_encoded(body, count);
    }
    return true;
  }

  bool take(wire::Floats& member) {
    std::string_view body;
    size_t count = 1, step = sizeof(float);
    if (tag_.type == wire::Type::kFixed32) {
      // They mostly stand in a row, each behind its tag.
      step += tag_bytes_.size();
      const size_t start = in_.offset();
      in_.scalar<float>();
      const size_t more = in_.count_run(tag_bytes_, step);
      in_.take(more * step);
      body = in_.since(start);
      count += more;
    } else if (tag_.type == wire::Type::kBytes) {
      body = in_.bytes();
      count = count_packed<float>(in_, body);
    } else {
      return false;
    }
    wire::Floats found = wire::Floats::borrow(body.data(), count, step, parser_.lender());
    if (parser_.borrow() && member.empty()) {
      member = std::move(found);
    } else {
      parser_.charge(in_, count * uint64_t{sizeof(float)});
      member.append(found);
    }
    return true;
  }

  template <class T>
  T* grow(std::vector<T>& member, size_t count) {
    parser_.charge(in_, count * uint64_t{sizeof(T)});
    member.resize(member.size() + count);
    return member.data() + (member.size() - count);
  }

  template <class T>
  T text(std::string_view body) {
    if constexpr (std::is_same_v<T, wire::Bytes>) {
      if (parser_.borrow()) return wire::Bytes::borrow(body);
    }
    parser_.charge(in_, body.size());
    return T(std::string(body));
  }

  template <class M>
  void read(M& message) {
    if (depth_ == 0) in_.fail(concat("messages are nested deeper than ", parser_.max_depth()));
    const std::string_view body = in_.bytes();
    parser_.read(message, wire::Reader(body, M::kName, in_.offset() - body.size()), depth_ - 1);
  }

  Parser& parser_;
  wire::Reader& in_;
  const wire::Tag tag_;
  const std::string_view tag_bytes_;
  const int depth_;
  bool known_ = false;
};

template <class M>
void Parser::read(M& message, wire::Reader in, int depth) {
  while (!in.done()) {
    const size_t start = in.offset();
    const wire::Tag tag = in.tag();
    FieldParser field(*this, in, start, tag, depth);
    visit_fields(message, field);
    if (field.known()) continue;
    in.skip(tag, depth);
    const std::string_view bytes = in.since(start);
    charge(in, bytes.size());
    message.unknown.append(bytes);
  }
}

// ---- Writing ----

// Adds up what is written, and notes the size of each message inside in the order of their
// beginnings, which is the order in which Output asks for them.
class Measure {
 public:
  explicit Measure(std::vector<uint64_t>& sizes) : sizes_(sizes) {}

  uint64_t total() const { return total_; }

  void varint(uint64_t value) { total_ += wire::varint_size(value); }
  void raw(std::string_view bytes) { total_ += bytes.size(); }
  template <class Body>
  void message(const Body& body) {
    const size_t slot = sizes_.size();
    sizes_.push_back(0);
    const uint64_t before = std::exchange(total_, 0);
    body();
    sizes_[slot] = total_;
    total_ += before + wire::varint_size(sizes_[slot]);
  }

 private:
  std::vector<uint64_t>& sizes_;
  uint64_t total_ = 0;
};

class Output {
 public:
  Output(std::string& out, const std::vector<uint64_t>& sizes) : out_(out), sizes_(sizes) {}

  void varint(uint64_t value) { wire::append_varint(out_, value); }
  void raw(std::string_view bytes) { out_.append(bytes); }
  template <class Body>
  void message(const Body& body) {
    varint(sizes_[next_++]);
    body();
  }

 private:
  std::string& out_;
  const std::vector<uint64_t>& sizes_;
  size_t next_ = 0;
};

template <class Sink>
class Writer {
 public:
  explicit Writer(Sink& sink) : sink_(sink) {}

  template <class M>
  void write(const M& message) {
    visit_fields(message, *this);
    sink_.raw(message.unknown);
  }

  template <class T>
  void operator()(uint32_t number, const char*, const T& member) {
    put(number, member);
  }

 private:
  template <class T>
  void put(uint32_t number, const std::optional<T>& member) {
    if (member) put_one(number, *member);
  }
  template <class T>
  void put(uint32_t number, const Box<T>& member) {
    if (member) put_one(number, *member);
  }
  template <class T>
  void put(uint32_t number, const std::vector<T>& member) {
    for (const T& value : member) put_one(number, value);
  }
  template <class T>
  void put(uint32_t number, const wire::Packed<T>& member) {
    if (!member.empty()) put_text(number, member.encoded());
  }

  void put(uint32_t number, const wire::Floats& member) {
    for (size_t i = 0; i < member.size(); i++) put_one(number, member[i]);
  }

  template <class T>
  void put_one(uint32_t number, const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      tag(number, wire::kTypeOf<T>);
      if constexpr (wire::kFixedWidth<T>) {
        sink_.raw({reinterpret_cast<const char*>(&value), sizeof(T)});
      } else {
        sink_.varint(wire::to_varint(value));
      }
    } else if constexpr (std::is_same_v<T, wire::Bytes>) {
      put_text(number, value.view());
    } else if constexpr (std::is_same_v<T, std::string>) {
      put_text(number, value);
    } else {
      tag(number, wire::Type::kBytes);
      sink_.message([&] { write(value); });
    }
  }

  void put_text(uint32_t number, std::string_view bytes) {
    tag(number, wire::Type::kBytes);
    sink_.varint(bytes.size());
    sink_.raw(bytes);
  }
  void tag(uint32_t number, wire::Type type) {
    sink_.varint(uint64_t{number} << 3 | static_cast<uint64_t>(type));
  }

  Sink& sink_;
};

}  // namespace

template <class Message>
Message parse(std::string_view input, const ParseOptions& options) {
  Message message;
  Parser(input.size(), options)
      .read(message, wire::Reader(input, Message::kName), options.max_depth);
  return message;
}

template <class Message>
void serialize_to(const Message& message, std::string& out) {
  std::vector<uint64_t> sizes;
  Measure measure(sizes);
  Writer(measure).write(message);
  if (measure.total() > std::numeric_limits<int32_t>::max()) {
    fail(Code::kInvalidArgument, Message::kName, " of ", measure.total(),
         " bytes: protobuf messages have at most 2 GiB");
  }
  out.reserve(out.size() + static_cast<size_t>(measure.total()));
  Output output(out, sizes);
  Writer(output).write(message);
}

#define CAFFE2_MESSAGE(Message)                                           \
  template Message parse<Message>(std::string_view, const ParseOptions&); \
  template void serialize_to<Message>(const Message&, std::string&);
CAFFE2_MESSAGE(Argument)
CAFFE2_MESSAGE(BlobProto)
CAFFE2_MESSAGE(DeviceOption)
CAFFE2_MESSAGE(ExecutionStep)
CAFFE2_MESSAGE(ModelDef)
CAFFE2_MESSAGE(NetDef)
CAFFE2_MESSAGE(OperatorDef)
CAFFE2_MESSAGE(PlanDef)
CAFFE2_MESSAGE(QTensorProto)
CAFFE2_MESSAGE(TensorProto)
CAFFE2_MESSAGE(TensorProtos)
#undef CAFFE2_MESSAGE

}  // namespace caffe2
