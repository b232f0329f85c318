// Blobs as BlobProto bytes, the form in which files and databases hold them.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/blob.h"
#include "core/engine.h"
#include "core/messages.h"

namespace caffe2 {

std::string serialize_blob(const std::string& name, const BlobValue& value);

// Raises Error(kInvalidArgument) for malformed bytes or when sizes contradict each other.
BlobValue deserialize_blob(std::string_view bytes, Engine& engine);

// Elements begin to end of a tensor, whose dimensions it has.
TensorProto to_proto(const Tensor& tensor, int64_t begin, int64_t end);

// The records of a blob in a database: a tensor in parts of so many elements (0: in one), each
// under the key "<name>#%<number>", and anything else under its name. half: floats as bfloat16.
constexpr int64_t kDefaultChunk = 1'000'000;
void serialize_chunks(const std::string& name, const BlobValue& value, int64_t chunk, bool half,
                      const std::function<void(std::string key, std::string bytes)>& put);
// The name of the blob that a key stands for.
std::string_view name_of_key(std::string_view key);

// Puts a blob together of its records, which may come in any order.
class BlobAssembler {
 public:
  explicit BlobAssembler(Engine& engine) : engine_(engine) {}
  void add(std::string_view bytes);
  bool complete() const { return complete_; }
  // What is there of it and what is missing, for errors.
  std::string missing_text() const;
  // Once, when it is complete.
  BlobValue take() { return std::move(value_); }

 private:
  struct Part {
    int64_t begin;
    Tensor values;  // of one dimension
  };
  void join();

  Engine& engine_;
  bool complete_ = false;
  BlobValue value_;
  Shape shape_;
  std::vector<Part> parts_;
  int64_t read_ = 0;  // elements
};

// One tensor of a record of a data set, which has been checked. Bytes become uint8, as in the
// original.
class TensorItem {
 public:
  explicit TensorItem(const TensorProto& proto);  // which outlives it
  DataType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  void copy_to(void* out) const;  // shape().size() elements

 private:
  const TensorProto* proto_;
  Shape shape_;
  DataType type_, saved_type_;
};

}  // namespace caffe2
