// Nets and plans made of the bytes of a fuzzer, and how long they may run.
#pragma once
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/engine.h"
#include "core/schema.h"
#include "core/serialize.h"
#include "core/workspace.h"

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

constexpr const char* kBlobs[] = {"a", "b", "c", "d", "e", "f", "condition", "queue"};
inline std::string blob(Bytes& in) { return kBlobs[in.below(std::size(kBlobs))]; }

// An engine with little memory, whose runs end soon.
class Sandbox {
 public:
  explicit Sandbox(int threads)
      : engine(std::make_shared<Engine>(EngineOptions{threads, "auto", size_t{32} << 20, ""})) {
    engine->hooks().interrupted = [this] { return Clock::now() > end_; };
  }
  std::unique_ptr<Workspace> workspace() {
    end_ = Clock::now() + std::chrono::milliseconds(200);
    auto made = std::make_unique<Workspace>(engine);
    made->allow(0);
    made->set_random_seed(1);
    return made;
  }

  const std::shared_ptr<Engine> engine;

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

inline void feed(Bytes& in, Workspace& workspace) {
  for (const char* name : kBlobs) {
    const uint8_t kind = in.byte();
    if (kind % 8 == 0) continue;  // does not exist
    constexpr DataType kTypes[] = {DataType::kFloat,  DataType::kFloat, DataType::kFloat,
                                   DataType::kInt32,  DataType::kInt64, DataType::kBool,
                                   DataType::kDouble, DataType::kByte};
    const DataType type = kTypes[in.below(std::size(kTypes))];
    Shape shape;
    for (int rank = in.byte() % 5; rank > 0; rank--) shape.append(in.byte() % 5);
    Tensor tensor(workspace.engine().allocator(), shape, type);
    auto* bytes = static_cast<uint8_t*>(tensor.raw_mutable_data());
    std::memset(bytes, 0, tensor.bytes());
    for (size_t i = 0; i < tensor.bytes() && !in.empty(); i += type_size(type)) {
      bytes[i] = type == DataType::kBool ? in.byte() % 2 : in.byte();
    }
    if (type == DataType::kFloat) {
      for (int64_t i = 0; i < tensor.size(); i++) {
        tensor.mutable_data<float>()[i] = static_cast<float>(bytes[4 * i] % 17) - 8;
      }
    }
    workspace.create_blob(name)->set(std::move(tensor));
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
      if (depth < 3) arg.n = random_net(in, depth + 1);
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
  const auto names = [&](int least, int most, std::vector<std::string>& out) {
    const int range = std::min(most, least + 3) - least + 1;
    const int count = least + static_cast<int>(in.below(static_cast<uint32_t>(range)));
    for (int i = 0; i < count; i++) out.push_back(blob(in));
  };
  names(schema.min_inputs, schema.max_inputs, op.input);
  names(schema.min_outputs, schema.max_outputs, op.output);
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

// Operators that neither touch what is outside nor run on bodies that are not here.
inline const OperatorSchema& random_schema(Bytes& in) {
  for (uint32_t i = in.below(static_cast<uint32_t>(kOperatorSchemaCount));; i++) {
    const OperatorSchema& schema =
        kOperatorSchemas[i % static_cast<uint32_t>(kOperatorSchemaCount)];
    if (schema.touches == 0 && schema.native) return schema;
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
