// Nets and plans made of the bytes of a fuzzer, and how long they may run.
#pragma once
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "core/int8_tensor.h"
#include "core/schema.h"
#include "core/serialize.h"
#include "core/workspace.h"
#include "memory_database.h"

namespace caffe2::fuzz {

// The bytes of the fuzzer, one decision after the other; 0 when they are used up.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  uint8_t byte() {
    if (size_ == 0) return 0;
    size_--;
    return *data_++;
  }
  uint32_t below(uint32_t n) { return n == 0 ? 0 : (byte() | byte() << 8) % n; }
  bool one_in(uint32_t n) { return byte() % n == 0; }
  int64_t integer() {
    constexpr int64_t kSpecial[] = {0, 1, -1, INT32_MAX, INT32_MIN, 1 << 20};
    return one_in(8) ? kSpecial[below(std::size(kSpecial))] : byte() % 9 - 2;
  }
  float real() {
    constexpr float kSpecial[] = {0, 1, -1, 0.5F, 1e30F, -1e-30F};
    return one_in(2) ? kSpecial[below(std::size(kSpecial))] : static_cast<float>(integer());
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

struct Fed {
  const char* name;
  DataType type;
};
// What a workspace begins with; those of type kUndefined are Int8 tensors.
constexpr Fed kBlobs[] = {{"a", DataType::kFloat},          {"b", DataType::kFloat},
                          {"c", DataType::kFloat},          {"d", DataType::kFloat},
                          {"e", DataType::kInt32},          {"f", DataType::kInt64},
                          {"text", DataType::kString},      {"condition", DataType::kBool},
                          {"queue", DataType::kFloat},      {"bytes", DataType::kUInt8},
                          {"int8_x", DataType::kUndefined}, {"int8_w", DataType::kUndefined},
                          {"int8_b", DataType::kUndefined}};
inline std::string blob(Bytes& in) { return kBlobs[in.below(std::size(kBlobs))].name; }

// Mostly one that input i takes.
inline std::string blob_for(Bytes& in, const OperatorSchema& schema, int i) {
  const bool int8 = std::string_view(schema.name).substr(0, 4) == "Int8";
  const uint32_t mask = schema.type_mask(i);
  if (in.one_in(8) || (mask == 0 && !int8)) return blob(in);
  std::vector<const char*> fitting;
  for (const Fed& fed : kBlobs) {
    const bool fits =
        int8 ? fed.type == DataType::kUndefined : (mask >> static_cast<int>(fed.type) & 1) != 0;
    if (fits) fitting.push_back(fed.name);
  }
  return fitting.empty() ? blob(in) : fitting[in.below(static_cast<uint32_t>(fitting.size()))];
}

// An engine with little memory, whose runs end soon.
class Sandbox {
 public:
  explicit Sandbox(int threads)
      : engine(std::make_shared<Engine>(EngineOptions{threads, "auto", size_t{32} << 20, ""})) {
    engine->hooks().interrupted = [this] { return Clock::now() > end_; };
    engine->hooks().open_database = [this](const std::string&, const std::string& path,
                                           DatabaseMode mode) {
      return databases_.open(path, mode);
    };
  }
  std::unique_ptr<Workspace> workspace() {
    end_ = Clock::now() + std::chrono::milliseconds(200);
    auto made = std::make_unique<Workspace>(engine);
    made->allow(kTouchesFiles);  // of which there are none: databases are in memory
    made->set_root_folder("/dev/null");
    made->set_random_seed(1);
    return made;
  }

  const std::shared_ptr<Engine> engine;
  // What a database holds that nobody has written.
  void add_record(std::string key, std::string value) {
    databases_.first.emplace_back(std::move(key), std::move(value));
  }

 private:
  using Clock = std::chrono::steady_clock;
  Databases databases_;
  Clock::time_point end_;
};

inline Tensor random_tensor(Bytes& in, const std::shared_ptr<Allocator>& allocator, DataType type) {
  Shape shape;
  for (int rank = in.byte() % 5; rank > 0; rank--) shape.append(in.byte() % 7);
  Tensor tensor(allocator, shape, type);
  for (int64_t i = 0; i < tensor.size(); i++) {
    const uint8_t byte = in.byte();
    switch (type) {
      case DataType::kFloat:
        tensor.mutable_data<float>()[i] = byte == 255   ? NAN
                                          : byte == 254 ? INFINITY
                                          : byte == 253 ? 1e30F
                                                        : static_cast<float>(byte % 17) - 8;
        break;
      case DataType::kInt32:
        tensor.mutable_data<int32_t>()[i] = byte > 250 ? INT32_MIN + (255 - byte) : byte % 9 - 1;
        break;
      case DataType::kInt64:
        tensor.mutable_data<int64_t>()[i] = byte > 250 ? INT64_MAX - (255 - byte) : byte % 9 - 1;
        break;
      case DataType::kString:
        tensor.mutable_data<std::string>()[i].assign(byte % 4, 'x');
        break;
      case DataType::kBool:
        tensor.mutable_data<bool>()[i] = byte % 2;
        break;
      case DataType::kDouble:
        tensor.mutable_data<double>()[i] = byte - 128;
        break;
      default:
        static_cast<uint8_t*>(tensor.raw_mutable_data())[i] = byte;
    }
  }
  return tensor;
}

inline BlobValue random_value(Bytes& in, const std::shared_ptr<Allocator>& allocator,
                              DataType type) {
  if (type != DataType::kUndefined) return {random_tensor(in, allocator, type), nullptr};
  Tensor values = random_tensor(in, allocator, in.one_in(3) ? DataType::kInt32 : DataType::kUInt8);
  return {Tensor(), std::make_shared<Int8Tensor>(std::move(values), 0.25F, in.byte())};
}

inline void feed(Bytes& in, Workspace& workspace, Sandbox& sandbox) {
  constexpr DataType kOthers[] = {DataType::kDouble, DataType::kByte, DataType::kFloat16,
                                  DataType::kInt8};
  const auto& allocator = workspace.engine().allocator();
  for (const Fed& fed : kBlobs) {
    if (in.one_in(8)) continue;  // does not exist
    const DataType type = in.one_in(8) ? kOthers[in.below(std::size(kOthers))] : fed.type;
    workspace.create_blob(fed.name)->set(random_value(in, allocator, type));
  }
  for (int records = in.byte() % 4; records > 0; records--) {
    const std::string name = blob(in);
    const auto known = workspace.find_blob(name);
    if (in.one_in(2) && known && known->get().is_tensor()) {
      sandbox.add_record(name, serialize_blob(name, known->get()));
      continue;
    }
    TensorProtos item;
    for (int protos = in.byte() % 3; protos > 0; protos--) {
      const Tensor values = random_tensor(in, allocator, DataType::kFloat);
      TensorProto& proto = item.protos.emplace_back();
      for (const int64_t size : values.shape()) proto.dims.push_back(size - in.one_in(16));
      proto.float_data =
          wire::Packed<float>(std::span(values.data<float>(), static_cast<size_t>(values.size())));
    }
    sandbox.add_record(name, serialize(item));
  }
}

inline NetDef random_net(Bytes& in, int depth);

inline Argument random_argument(Bytes& in, const ArgumentSchema& schema, int depth) {
  Argument arg;
  arg.name = schema.name;
  const uint32_t count = in.byte() % 4;
  switch (in.one_in(16) ? static_cast<ArgumentKind>(in.below(12)) : schema.kind) {
    case ArgumentKind::kInt:
      arg.i = in.integer();
      break;
    case ArgumentKind::kBool:
      arg.i = in.byte() % 2;
      break;
    case ArgumentKind::kFloat:
    case ArgumentKind::kAny:
      arg.f = in.real();
      break;
    case ArgumentKind::kString:
      arg.s = schema.choices == nullptr || in.one_in(4)
                  ? blob(in)
                  : std::string(schema.choices).substr(0, std::strcspn(schema.choices, " "));
      break;
    case ArgumentKind::kInts:
      for (uint32_t i = 0; i < count; i++) arg.ints.push_back(in.integer());
      break;
    case ArgumentKind::kFloats:
    case ArgumentKind::kAnys:
      for (uint32_t i = 0; i < count; i++) arg.floats.push_back(in.real());
      break;
    case ArgumentKind::kStrings:
      for (uint32_t i = 0; i < count; i++) arg.strings.push_back(blob(in));
      break;
    case ArgumentKind::kNet:
      if (in.one_in(8)) {
        arg.s = "op { type: 'Relu' input: '" + blob(in) + "' output: 'y' }";
      } else if (depth < 3) {
        arg.n = random_net(in, depth + 1);
      }
      break;
    case ArgumentKind::kNets:
      break;
    case ArgumentKind::kTensor:
      arg.t = TensorProto();
      break;
  }
  return arg;
}

inline OperatorDef random_operator(Bytes& in, const OperatorSchema& schema, int depth) {
  OperatorDef op;
  op.type = schema.name;
  const auto count = [&in](int least, int most) {
    const int range = std::min(most, least + 3) - least + 1;
    return least + static_cast<int>(in.below(static_cast<uint32_t>(range)));
  };
  for (int i = 0, n = count(schema.min_inputs, schema.max_inputs); i < n; i++) {
    op.input.push_back(blob_for(in, schema, i));
  }
  for (int n = count(schema.min_outputs, schema.max_outputs); n > 0; n--) {
    op.output.push_back(blob(in));
  }
  for (int i = 0; i < schema.n_enforced; i++) {
    const auto& pair = schema.enforced_inplace[i];
    if (pair[0] < op.input.size() && pair[1] < op.output.size()) {
      op.output[pair[1]] = op.input[pair[0]];
    }
  }
  for (int i = 0; i < schema.n_args; i++) {
    if (schema.args[i].required || in.one_in(3)) {
      op.arg.push_back(random_argument(in, schema.args[i], depth));
    }
  }
  op.is_gradient_op = in.one_in(16);
  return op;
}

// Operators that touch nothing outside but databases and do not run on bodies that are not here.
inline const OperatorSchema& random_schema(Bytes& in) {
  for (uint32_t i = in.below(static_cast<uint32_t>(kOperatorSchemaCount));; i++) {
    const OperatorSchema& schema =
        kOperatorSchemas[i % static_cast<uint32_t>(kOperatorSchemaCount)];
    const bool on_database = schema.find_argument("db_type") != nullptr;
    if ((schema.touches == 0 || on_database) && schema.native) return schema;
  }
}

inline NetDef random_net(Bytes& in, int depth) {
  constexpr const char* kTypes[] = {"simple", "dag", ""};
  NetDef net;
  net.name = "net";
  net.type = kTypes[in.below(std::size(kTypes))];
  const int count = 1 + in.byte() % (depth == 0 ? 8 : 3);
  for (int i = 0; i < count; i++) {
    net.op.push_back(random_operator(in, random_schema(in), depth));
  }
  return net;
}

}  // namespace caffe2::fuzz
