// The messages that the engine reads and writes, and their way to the wire format and back.
//
// They mirror caffe2/proto/caffe2.proto, which says what the fields mean. Optional fields are
// std::optional, optional messages Box; whatever a reader does not know it keeps in `unknown`, so
// that reading and writing loses nothing. Required fields are not enforced: who needs one checks.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/wire.h"

namespace caffe2 {

// A message or none. Copies are deep.
template <class T>
class Box {
 public:
  Box() = default;
  Box(T value) : pointer_(std::make_unique<T>(std::move(value))) {}
  Box(const Box& other) : pointer_(other ? std::make_unique<T>(*other) : nullptr) {}
  Box(Box&&) noexcept = default;
  Box& operator=(Box other) noexcept {
    pointer_ = std::move(other.pointer_);
    return *this;
  }

  T& emplace() { return *(pointer_ = std::make_unique<T>()); }
  T& operator*() { return *pointer_; }
  const T& operator*() const { return *pointer_; }
  T* operator->() { return pointer_.get(); }
  const T* operator->() const { return pointer_.get(); }
  explicit operator bool() const { return pointer_ != nullptr; }
  bool operator==(std::nullptr_t) const { return pointer_ == nullptr; }

 private:
  std::unique_ptr<T> pointer_;
};

struct NetDef;

struct DeviceOption {
  static constexpr const char* kName = "DeviceOption";
  std::optional<int32_t> device_type;
  std::optional<int32_t> device_id;
  std::optional<uint32_t> random_seed;
  std::optional<std::string> node_name;
  std::optional<int32_t> numa_node_id;
  std::vector<std::string> extra_info;
  std::string unknown;
};

struct TensorSegment {
  static constexpr const char* kName = "TensorProto.Segment";
  std::optional<int64_t> begin;
  std::optional<int64_t> end;
  std::string unknown;
};

struct TensorProto {
  static constexpr const char* kName = "TensorProto";
  std::vector<int64_t> dims;
  std::optional<int32_t> data_type;  // a DataType; FLOAT where absent
  wire::Packed<float> float_data;
  wire::Packed<int32_t> int32_data;
  std::optional<wire::Bytes> byte_data;
  std::vector<std::string> string_data;
  std::optional<std::string> name;
  Box<DeviceOption> device_detail;
  wire::Packed<double> double_data;
  wire::Packed<int64_t> int64_data;
  Box<TensorSegment> segment;
  std::optional<wire::Bytes> raw_data;
  std::optional<uint32_t> data_format;
  std::string unknown;
};

struct QTensorProto {
  static constexpr const char* kName = "QTensorProto";
  std::vector<int64_t> dims;
  std::optional<int32_t> precision;
  std::optional<double> scale;
  std::optional<double> bias;
  std::optional<bool> is_signed;
  wire::Packed<int32_t> data;
  std::optional<std::string> name;
  std::optional<int32_t> data_type;  // a DataType; INT32 where absent
  std::vector<double> scales;
  std::vector<double> biases;
  std::optional<int32_t> axis;
  std::optional<bool> is_multiparam;
  std::string unknown;
};

struct TensorProtos {
  static constexpr const char* kName = "TensorProtos";
  std::vector<TensorProto> protos;
  std::string unknown;
};

struct BlobProto {
  static constexpr const char* kName = "BlobProto";
  std::optional<std::string> name;
  std::optional<std::string> type;
  Box<TensorProto> tensor;
  std::optional<wire::Bytes> content;
  Box<QTensorProto> qtensor;
  std::optional<int32_t> content_num_chunks;
  std::optional<int32_t> content_chunk_id;
  std::string unknown;
};

struct Argument {
  static constexpr const char* kName = "Argument";
  std::optional<std::string> name;
  std::optional<float> f;
  std::optional<int64_t> i;
  std::optional<std::string> s;
  wire::Floats floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  Box<NetDef> n;
  std::vector<NetDef> nets;
  Box<TensorProto> t;
  std::vector<TensorProto> tensors;
  std::vector<QTensorProto> qtensors;
  std::string unknown;
};

struct OperatorDef {
  static constexpr const char* kName = "OperatorDef";
  std::vector<std::string> input;
  std::vector<std::string> output;
  std::optional<std::string> name;
  std::optional<std::string> type;
  std::vector<Argument> arg;
  Box<DeviceOption> device_option;
  std::optional<std::string> engine;
  std::vector<std::string> control_input;
  std::optional<bool> is_gradient_op;
  std::optional<std::string> debug_info;
  std::optional<std::string> domain;
  std::optional<int64_t> op_version;
  std::string unknown;
};

// Also an entry of a map of strings, which has the same wire form. Of equal keys the last counts.
struct MapFieldEntry {
  static constexpr const char* kName = "MapFieldEntry";
  std::optional<std::string> key;
  std::optional<std::string> val;
  std::string unknown;
};

struct BackendOptions {
  static constexpr const char* kName = "BackendOptions";
  std::optional<std::string> backend_name;
  std::vector<MapFieldEntry> option;
  std::string unknown;
};

struct PartitionInfo {
  static constexpr const char* kName = "PartitionInfo";
  std::optional<std::string> name;
  std::vector<int32_t> device_id;
  std::optional<std::string> extra_info;
  std::vector<BackendOptions> backend_options;
  std::string unknown;
};

struct NetDef {
  static constexpr const char* kName = "NetDef";
  std::optional<std::string> name;
  std::vector<OperatorDef> op;
  std::optional<std::string> type;
  std::optional<int32_t> num_workers;
  Box<DeviceOption> device_option;
  std::vector<Argument> arg;
  std::vector<std::string> external_input;
  std::vector<std::string> external_output;
  std::vector<PartitionInfo> partition_info;
  std::vector<MapFieldEntry> metadata;
  std::string unknown;
};

struct ModelDef {
  static constexpr const char* kName = "ModelDef";
  std::optional<std::string> name;
  std::vector<NetDef> net;
  std::vector<MapFieldEntry> metadata;
  std::string unknown;
};

struct ExecutionStep {
  static constexpr const char* kName = "ExecutionStep";
  std::optional<std::string> name;
  std::vector<ExecutionStep> substep;
  std::vector<std::string> network;
  std::optional<int64_t> num_iter;
  std::optional<std::string> criteria_network;
  std::optional<bool> concurrent_substeps;
  std::optional<std::string> report_net;
  std::optional<int32_t> report_interval;
  std::optional<std::string> should_stop_blob;
  std::optional<bool> only_once;
  std::optional<int64_t> run_every_ms;
  std::optional<bool> create_workspace;
  std::optional<int32_t> num_concurrent_instances;
  std::string unknown;
};

struct PlanDef {
  static constexpr const char* kName = "PlanDef";
  std::optional<std::string> name;
  std::vector<NetDef> network;
  std::vector<ExecutionStep> execution_step;
  std::string unknown;
};

// What input may ask for. Two bytes of input can stand for a message of some hundred bytes, so
// memory is bounded apart from the input's size: memory_base + memory_factor * size bytes are
// handed out at most (vectors that grow may for a moment hold three times that).
struct ParseOptions {
  int max_depth = 100;  // messages inside messages; protobuf's own limit
  uint64_t max_operators = 1'000'000;
  uint64_t memory_base = uint64_t{16} << 20;
  uint64_t memory_factor = 32;

  // Leave byte_data, raw_data, content, packed numbers and the floats of arguments where they are:
  // no copy is made of a big tensor, and the input has to outlive the message and all copies of it.
  bool borrow = false;
  // With borrow, for input in a file: keeps it alive for whoever goes on using floats of arguments.
  std::shared_ptr<const MappedFile> lender;
};

// Reads a message as protobuf does: of a field given twice the last value counts, messages given
// twice are merged, repeated numbers may be packed or not, a known field of a wrong wire type is
// an unknown one. Raises Error (kInvalidArgument) for input that is malformed or over a limit.
template <class Message>
Message parse(std::string_view input, const ParseOptions& options = {});

// Writes fields in the order of their numbers, unknown ones last, as protobuf does. Raises Error
// (kInvalidArgument) over 2 GiB, which no protobuf reader takes.
template <class Message>
void serialize_to(const Message& message, std::string& out);

template <class Message>
std::string serialize(const Message& message) {
  std::string out;
  serialize_to(message, out);
  return out;
}

}  // namespace caffe2
