#include "core/wire.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/messages.h"

using namespace caffe2;
using wire::Type;

namespace {

std::string from_hex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

std::string varint(uint64_t value) {
  std::string out;
  wire::append_varint(out, value);
  return out;
}

std::string tag(uint32_t number, Type type) {
  return varint(uint64_t{number} << 3 | static_cast<uint64_t>(type));
}

std::string field(uint32_t number, uint64_t value) {
  return tag(number, Type::kVarint) + varint(value);
}

std::string field(uint32_t number, std::string_view bytes) {
  return tag(number, Type::kBytes) + varint(bytes.size()) + std::string(bytes);
}

std::string fixed(float value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class Message>
std::string rewritten(std::string_view bytes) {
  return serialize(parse<Message>(bytes));
}

// The text of the error that parsing raises; empty without one.
template <class Message>
std::string refusal(std::string_view bytes, const ParseOptions& options = {}) {
  try {
    parse<Message>(bytes, options);
  } catch (const Error& error) {
    CHECK(error.code() == Code::kInvalidArgument);
    return error.text();
  }
  return "";
}

// Written by Caffe2: an FC and a Conv operator with arguments, a device and an engine.
const std::string kNet = from_hex(
    "0a016e12240a01780a01770a01621201791a00220246432a080a04617869731801320608011002180712430a01610a"
    "01631201641a002204436f6e762a0a0a066b65726e656c18032a0e0a047061647330013001300130012a0d0a056f72"
    "64657222044e4348573a054355444e4e12421201711a00220c436f6e7374616e7446696c6c2a0b0a05736861706530"
    "0230032a0c0a0576616c7565150000003f2a120a05647479706518ffffffffffffffffff011a0364616720023a0178"
    "3a01773a01623a01613a0163420179");

// Written by Caffe2: the int8 tensor [-1, -2].
const std::string kInt8Blob = from_hex(
    "0a0162120654656e736f721a27080210072214ffffffffffffffffff01feffffffffffffffff013a0162420208005a"
    "0408001002");

}  // namespace

TEST_CASE("wire: a net of Caffe2 has the values it was written with, and its bytes again") {
  const auto net = parse<NetDef>(kNet);
  CHECK(net.name == "n");
  CHECK(net.type == "dag");
  CHECK(net.num_workers == 2);
  CHECK(net.external_input == std::vector<std::string>{"x", "w", "b", "a", "c"});
  CHECK(net.external_output == std::vector<std::string>{"y"});
  REQUIRE(net.op.size() == 3);

  const OperatorDef& fc = net.op[0];
  CHECK(fc.type == "FC");
  CHECK(fc.name == "");
  CHECK_FALSE(fc.engine.has_value());
  CHECK(fc.input == std::vector<std::string>{"x", "w", "b"});
  CHECK(fc.arg[0].name == "axis");
  CHECK(fc.arg[0].i == 1);
  REQUIRE(fc.device_option);
  CHECK(fc.device_option->device_type == 1);
  CHECK(fc.device_option->device_id == 2);
  CHECK(fc.device_option->random_seed == 7u);

  const OperatorDef& conv = net.op[1];
  CHECK(conv.engine == "CUDNN");
  CHECK(conv.device_option == nullptr);
  CHECK(conv.arg[1].ints == std::vector<int64_t>{1, 1, 1, 1});
  CHECK(conv.arg[2].s == "NCHW");

  const OperatorDef& fill = net.op[2];
  CHECK(fill.input.empty());
  CHECK(fill.arg[1].f == 0.5f);
  CHECK_FALSE(fill.arg[1].i.has_value());
  CHECK(fill.arg[2].i == -1);

  CHECK(serialize(net) == kNet);
}

TEST_CASE("wire: blobs of Caffe2, by type") {
  const auto blob = parse<BlobProto>(kInt8Blob);
  CHECK(blob.name == "b");
  CHECK(blob.type == "Tensor");
  REQUIRE(blob.tensor);
  CHECK(blob.tensor->dims == std::vector<int64_t>{2});
  CHECK(blob.tensor->data_type == 7);
  CHECK(blob.tensor->int32_data.values() == std::vector<int32_t>{-1, -2});
  CHECK(blob.tensor->segment->begin == 0);
  CHECK(blob.tensor->segment->end == 2);
  CHECK(serialize(blob) == kInt8Blob);

  const std::string floats = from_hex(
      "0a0162120654656e736f721a21080310011a0c0000803f00000000000040403a0162420208005a0408001003780"
      "0");
  const auto f = parse<BlobProto>(floats);
  CHECK(f.tensor->float_data.values() == std::vector<float>{1, 0, 3});
  CHECK(f.tensor->data_format == 0u);
  CHECK(serialize(f) == floats);

  const std::string doubles = from_hex(
      "0a0162120654656e736f721a2b0803100d3a0162420208004a18000000000000f03f000000000000000000000000"
      "0"
      "00008405a0408001003");
  CHECK(parse<BlobProto>(doubles).tensor->double_data.values() == std::vector<double>{1, 0, 3});
  CHECK(rewritten<BlobProto>(doubles) == doubles);

  const std::string longs =
      from_hex("0a0162120654656e736f721a160803100a3a01624202080052030100035a0408001003");
  CHECK(parse<BlobProto>(longs).tensor->int64_data.values() == std::vector<int64_t>{1, 0, 3});
  CHECK(rewritten<BlobProto>(longs) == longs);

  const std::string strings =
      from_hex("0a0162120654656e736f721a190802100432026162320263003a0162420208005a0408001002");
  CHECK(parse<BlobProto>(strings).tensor->string_data ==
        std::vector<std::string>{"ab", std::string("c\0", 2)});
  CHECK(rewritten<BlobProto>(strings) == strings);

  const std::string text = from_hex("0a0162120b7374643a3a737472696e67220568656c6c6f");
  CHECK(parse<BlobProto>(text).content->view() == "hello");
  CHECK(rewritten<BlobProto>(text) == text);
}

TEST_CASE("wire: a plan of Caffe2") {
  const std::string bytes = from_hex(
      "0a02706c123a0a016912351201771a00220f476976656e54656e736f7246696c6c2a090a05736861706530022a12"
      "0a"
      "0676616c7565732d0000003f2d0000c0bf1a080a01731a01692003");
  const auto plan = parse<PlanDef>(bytes);
  CHECK(plan.name == "pl");
  CHECK(plan.network[0].op[0].arg[1].floats.values() == std::vector<float>{0.5f, -1.5f});
  CHECK(plan.execution_step[0].network == std::vector<std::string>{"i"});
  CHECK(plan.execution_step[0].num_iter == 3);
  CHECK(serialize(plan) == bytes);
}

TEST_CASE("wire: what is set is written, in the order of the numbers") {
  CHECK(serialize(NetDef{}).empty());

  Argument arg;
  arg.i = 0;
  arg.name = "";
  CHECK(serialize(arg) == from_hex("0a001800"));

  ModelDef model;
  model.name = "m";
  model.net.resize(2);
  model.net[1].metadata.push_back({.key = "version", .val = "1.0.3", .unknown = ""});
  model.metadata.push_back({.key = "a", .val = "b", .unknown = ""});
  const std::string entry = field(1, "version") + field(2, "1.0.3");
  CHECK(serialize(model) == field(1, "m") + field(2, "") + field(2, field(1000, entry)) +
                                field(3, field(1, "a") + field(2, "b")));
  CHECK(parse<ModelDef>(serialize(model)).net[1].metadata[0].val == "1.0.3");

  std::string out = "before";
  serialize_to(arg, out);
  CHECK(out == "before" + from_hex("0a001800"));
}

TEST_CASE("wire: numbers at the ends of their ranges") {
  for (const int64_t value : {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{0},
                              int64_t{127}, int64_t{128}, std::numeric_limits<int64_t>::max()}) {
    Argument arg;
    arg.i = value;
    arg.ints = {value, value};
    const auto back = parse<Argument>(serialize(arg));
    CHECK(back.i == value);
    CHECK(back.ints == arg.ints);
  }
  DeviceOption device;
  device.device_id = -1;
  device.numa_node_id = std::numeric_limits<int32_t>::min();
  device.random_seed = std::numeric_limits<uint32_t>::max();
  const std::string bytes = serialize(device);
  CHECK(bytes == from_hex("10ffffffffffffffffff01"
                          "18ffffffff0f"
                          "2880808080f8ffffffff01"));
  CHECK(parse<DeviceOption>(bytes).device_id == -1);
  CHECK(parse<DeviceOption>(bytes).numa_node_id == std::numeric_limits<int32_t>::min());
  CHECK(parse<DeviceOption>(bytes).random_seed == std::numeric_limits<uint32_t>::max());

  // A negative int32 of five bytes, and higher bits that do not fit, as protobuf takes them.
  CHECK(parse<DeviceOption>(from_hex("10ffffffff0f")).device_id == -1);
  CHECK(parse<DeviceOption>(field(2, (uint64_t{5} << 32) + 7)).device_id == 7);
  CHECK(parse<OperatorDef>(field(9, 2)).is_gradient_op == true);

  // The bits of a NaN survive.
  const std::string nan = from_hex("150100807f");
  CHECK(std::isnan(*parse<Argument>(nan).f));
  CHECK(rewritten<Argument>(nan) == nan);
}

TEST_CASE("wire: repeated numbers, packed or not") {
  const std::string one = fixed(1), two = fixed(2), three = fixed(3);
  const std::string floats = tag(5, Type::kFixed32);
  const std::vector<float> expected{1, 2, 3};
  for (const std::string& bytes :
       {floats + one + floats + two + floats + three, field(5, one + two + three),
        floats + one + field(5, two + three),
        field(5, "") + field(5, one) + floats + two + field(1, "x") + floats + three}) {
    for (const bool borrow : {false, true}) {
      ParseOptions options;
      options.borrow = borrow;
      const auto argument = parse<Argument>(bytes, options);
      CHECK(argument.floats.values() == expected);
      CHECK(argument.floats.size() == 3);
      CHECK(argument.floats[1] == 2);
      CHECK(argument.floats.lent() == nullptr);  // there is no file
    }
  }
  CHECK(rewritten<Argument>(field(5, one + two)) == floats + one + floats + two);

  const std::string minus = varint(~uint64_t{0});
  CHECK(parse<Argument>(field(6, 5) + field(6, varint(300) + minus)).ints ==
        std::vector<int64_t>{5, 300, -1});

  const std::string data = tag(3, Type::kFixed32);
  for (const bool borrow : {false, true}) {
    ParseOptions options;
    options.borrow = borrow;
    const std::string bytes = field(3, one + two) + data + three + field(3, "") + field(4, 9) +
                              field(4, minus + varint(300));
    const auto tensor = parse<TensorProto>(bytes, options);
    CHECK(tensor.float_data.values() == expected);
    CHECK(tensor.int32_data.values() == std::vector<int32_t>{9, -1, 300});
    CHECK(serialize(tensor) ==
          field(3, one + two + three) + field(4, varint(9) + minus + varint(300)));
  }
  CHECK(rewritten<TensorProto>(field(3, "")).empty());

  CHECK(refusal<TensorProto>(field(3, "12345")) ==
        "TensorProto.float_data at byte 7: 5 bytes are no whole count of packed numbers");
  CHECK(refusal<Argument>(field(6, "\x80")) ==
        "Argument.ints at byte 3: a packed number is cut off");
  CHECK(refusal<TensorProto>(field(10, std::string(10, '\x80') + '\1')) ==
        "TensorProto.int64_data at byte 13: a packed number is too long");
}

TEST_CASE("wire: packed numbers made here") {
  const std::vector<float> values{1.5f, -2};
  const wire::Packed<float> owned{std::span<const float>(values)};
  const auto borrowed = wire::Packed<float>::borrow(values);
  CHECK(owned.values() == values);
  CHECK(borrowed.values() == values);
  CHECK(borrowed.encoded().data() == reinterpret_cast<const char*>(values.data()));
  CHECK(owned.encoded().data() != borrowed.encoded().data());

  const std::vector<int32_t> ints{0, -1, 300};
  const wire::Packed<int32_t> packed{std::span<const int32_t>(ints)};
  CHECK(packed.encoded() == varint(0) + varint(~uint64_t{0}) + varint(300));
  std::vector<uint8_t> narrow(3);
  packed.copy_to(narrow.data());
  CHECK(narrow == std::vector<uint8_t>{0, 255, 44});

  auto grown = borrowed;
  grown.append_encoded(fixed(4), 1);
  CHECK(grown.values() == std::vector<float>{1.5f, -2, 4});
  CHECK(borrowed.values() == values);
}

TEST_CASE("wire: of a field given twice the last counts, and messages are merged") {
  CHECK(parse<Argument>(field(3, 1) + field(3, 2)).i == 2);
  CHECK(parse<OperatorDef>(field(4, "A") + field(4, "B")).type == "B");
  const auto op = parse<OperatorDef>(field(6, field(1, 1)) + field(6, field(2, 3)));
  CHECK(op.device_option->device_type == 1);
  CHECK(op.device_option->device_id == 3);
}

TEST_CASE("wire: nothing unknown is lost") {
  const std::string group = tag(77, Type::kGroupBegin) + field(1, 5) + tag(2, Type::kGroupBegin) +
                            tag(2, Type::kGroupEnd) + tag(77, Type::kGroupEnd);
  const std::string unknown = field(100, 7) + field(99, "bytes") + group + tag(98, Type::kFixed64) +
                              std::string(8, 'x') + tag(97, Type::kFixed32) + "1234" +
                              field((1u << 29) - 1, 1);
  const std::string known = field(1, "net");
  CHECK(rewritten<NetDef>(unknown + known) == known + unknown);
  CHECK(parse<NetDef>(unknown + known).name == "net");

  // Inside other messages too.
  const std::string op = field(2, field(4, "Relu") + field(6, field(55, 1)) + unknown);
  CHECK(rewritten<NetDef>(op) == op);
}

TEST_CASE("wire: a field of a wrong wire type is an unknown one") {
  const std::string number = field(1, 5), text = field(3, "text"),
                    fixed32 = tag(2, Type::kFixed32) + "abcd";
  const auto arg = parse<Argument>(number + text);
  CHECK_FALSE(arg.name.has_value());
  CHECK_FALSE(arg.i.has_value());
  CHECK(serialize(arg) == number + text);
  CHECK(rewritten<Argument>(field(8, 1) + field(5, 1)) == field(8, 1) + field(5, 1));
  CHECK(rewritten<OperatorDef>(field(5, 1)) == field(5, 1));
  CHECK(rewritten<TensorProto>(field(3, 1) + fixed32) == field(3, 1) + fixed32);
}

TEST_CASE("wire: input that is cut off anywhere is refused") {
  const std::string whole = field(2, kNet);
  CHECK(refusal<PlanDef>(whole).empty());
  for (size_t size = 1; size < whole.size(); size++) {
    // Exact copies, so that a sanitizer sees any read beyond the end.
    const std::vector<char> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    CHECK_FALSE(refusal<PlanDef>({part.data(), part.size()}).empty());
  }
  // The same with lengths that fit: the cut is inside the values.
  for (size_t size = 0; size < kNet.size(); size++) {
    refusal<PlanDef>(field(2, std::string_view(kNet).substr(0, size)));
  }
}

TEST_CASE("wire: errors name the message, the field and the byte") {
  CHECK(refusal<NetDef>(field(1, "abc").substr(0, 4)) ==
        "NetDef.name at byte 2: has length 3 where 2 bytes are left");
  const std::string arg = field(1, "k") + tag(2, Type::kFixed32) + "12";
  CHECK(refusal<NetDef>(field(2, field(5, arg))) ==
        "Argument.f at byte 8: needs 4 bytes where 2 are left");
  CHECK(refusal<NetDef>(tag(77, Type::kFixed64)) ==
        "NetDef field 77 at byte 2: needs 8 bytes where 0 are left");
  CHECK(refusal<NetDef>("\x80") == "NetDef at byte 1: a number is cut off");
}

TEST_CASE("wire: lengths beyond the input are refused before memory is taken") {
  for (const uint64_t size :
       {uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    for (const uint32_t number : {1u, 2u, 5u, 6u, 99u}) {
      CHECK(refusal<NetDef>(tag(number, Type::kBytes) + varint(size)).find("has length") !=
            std::string::npos);
    }
    CHECK_FALSE(refusal<Argument>(tag(5, Type::kBytes) + varint(size)).empty());
    CHECK_FALSE(refusal<TensorProto>(tag(4, Type::kBytes) + varint(size)).empty());
  }
}

TEST_CASE("wire: varints have ten bytes at most") {
  const std::string tail(9, '\x80');
  CHECK(parse<Argument>(tag(3, Type::kVarint) + tail + '\0').i == 0);
  CHECK(parse<Argument>(tag(3, Type::kVarint) + "\x85" + tail.substr(1) + '\1').i ==
        std::numeric_limits<int64_t>::min() + 5);
  CHECK(refusal<Argument>(tag(3, Type::kVarint) + tail + "\x80" + '\1') ==
        "Argument.i at byte 11: a number is longer than 10 bytes");
}

TEST_CASE("wire: tags that cannot be") {
  CHECK(refusal<NetDef>(varint(0)) == "NetDef at byte 1: no field can be number 0");
  CHECK(refusal<NetDef>(varint(uint64_t{1} << 32)).find("no field can be number 536870912") !=
        std::string::npos);
  CHECK(refusal<NetDef>(varint(8 + 6)).find("no wire type is number 6") != std::string::npos);
  CHECK(refusal<NetDef>(varint(8 + 7)).find("no wire type is number 7") != std::string::npos);
  CHECK(refusal<NetDef>(tag(20, Type::kGroupEnd)).find("never began") != std::string::npos);
  CHECK(refusal<NetDef>(tag(20, Type::kGroupBegin)).find("never ends") != std::string::npos);
  CHECK(
      refusal<NetDef>(tag(20, Type::kGroupBegin) + tag(21, Type::kGroupEnd)).find("never began") !=
      std::string::npos);
}

TEST_CASE("wire: nesting is bounded") {
  const auto nested = [](int depth) {
    std::string bytes;
    for (int i = 0; i < depth; i++) bytes = field(2, bytes);
    return bytes;
  };
  CHECK(rewritten<ExecutionStep>(nested(100)) == nested(100));
  CHECK(refusal<ExecutionStep>(nested(101)).find("nested deeper than 100") != std::string::npos);
  ParseOptions shallow;
  shallow.max_depth = 3;
  CHECK(refusal<ExecutionStep>(nested(3), shallow).empty());
  CHECK_FALSE(refusal<ExecutionStep>(nested(4), shallow).empty());

  const auto groups = [](int depth) {
    std::string bytes;
    for (int i = 0; i < depth; i++) bytes += tag(50, Type::kGroupBegin);
    for (int i = 0; i < depth; i++) bytes += tag(50, Type::kGroupEnd);
    return bytes;
  };
  CHECK(rewritten<NetDef>(groups(100)) == groups(100));
  CHECK(refusal<NetDef>(groups(101)).find("nested too deep") != std::string::npos);
  CHECK_FALSE(refusal<NetDef>(std::string(1'000'000, '\x0b')).empty());
}

TEST_CASE("wire: operators and memory are bounded") {
  std::string bytes;
  for (int i = 0; i < 10; i++) bytes += field(2, field(4, "Relu"));
  ParseOptions options;
  options.max_operators = 10;
  CHECK(refusal<NetDef>(bytes, options).empty());
  // Operators of all nets count together.
  CHECK(refusal<PlanDef>(field(2, bytes) + field(2, field(2, "")), options) ==
        "NetDef.op at byte 85: there are too many operators");

  // Two bytes of input stand for a whole Argument.
  std::string arguments;
  for (int i = 0; i < 1'000'000; i++) arguments += field(5, "");
  CHECK(refusal<OperatorDef>(arguments).find("the message takes more than 80777216 bytes") !=
        std::string::npos);
  options.memory_base = uint64_t{1} << 30;
  CHECK(parse<OperatorDef>(arguments, options).arg.size() == 1'000'000);

  options.memory_base = 0;
  options.memory_factor = 1;
  CHECK(refusal<Argument>(field(4, "text"), options).empty());
  CHECK_FALSE(refusal<Argument>(field(7, "text"), options).empty());
  CHECK_FALSE(refusal<Argument>(field(6, std::string(100, '\1')), options).empty());
}

TEST_CASE("wire: big values are borrowed when asked, else owned") {
  const std::string data(1000, 'd');
  const std::string tensor = field(3, data) + field(5, data) + field(13, data);
  const std::string bytes = field(3, tensor) + field(4, data);
  const auto inside = [&](std::string_view part) {
    return part.data() >= bytes.data() && part.data() + part.size() <= bytes.data() + bytes.size();
  };
  ParseOptions options;
  for (const bool borrow : {true, false}) {
    options.borrow = borrow;
    const BlobProto copy = BlobProto(parse<BlobProto>(bytes, options));
    CHECK(inside(copy.tensor->float_data.encoded()) == borrow);
    CHECK(inside(copy.tensor->byte_data->view()) == borrow);
    CHECK(inside(copy.tensor->raw_data->view()) == borrow);
    CHECK(inside(copy.content->view()) == borrow);
    CHECK(copy.tensor->raw_data->view() == data);
    CHECK(serialize(copy) == bytes);
  }
}

TEST_CASE("wire: copies of messages are deep") {
  const auto net = parse<NetDef>(kNet);
  NetDef copy = net;
  copy.op[0].device_option->device_id = 9;
  copy.op[0].arg[0].name = "other";
  CHECK(net.op[0].device_option->device_id == 2);
  CHECK(serialize(net) == kNet);
  copy = net;
  CHECK(serialize(copy) == kNet);
}

TEST_CASE("wire: messages over 2 GiB are not written") {
  TensorProto tensor;
  // Refused by its size alone: the bytes are never looked at.
  tensor.raw_data = wire::Bytes::borrow({"", size_t{1} << 31});
  CHECK_THROWS_WITH_AS(serialize(tensor),
                       "TensorProto of 2147483654 bytes: protobuf messages have at most 2 GiB",
                       Error);
}
