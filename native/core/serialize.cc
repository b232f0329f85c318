#include "core/serialize.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "core/messages.h"

namespace caffe2 {

namespace {

template <class T, class Wide = T>
wire::Packed<Wide> packed(const Tensor& tensor) {
  const std::span<const T> values(tensor.data<T>(), static_cast<size_t>(tensor.size()));
  if constexpr (std::is_same_v<T, Wide>) {
    return wire::Packed<Wide>(values);
  } else {
    const std::vector<Wide> wide(values.begin(), values.end());
    return wire::Packed<Wide>(std::span<const Wide>(wide));
  }
}

TensorProto to_proto(const Tensor& tensor) {
  TensorProto proto;
  proto.dims.assign(tensor.shape().begin(), tensor.shape().end());
  proto.data_type = static_cast<int32_t>(tensor.type());
  switch (tensor.type()) {
    case DataType::kFloat:
      proto.float_data = packed<float>(tensor);
      break;
    case DataType::kDouble:
      proto.double_data = packed<double>(tensor);
      break;
    case DataType::kInt32:
      proto.int32_data = packed<int32_t>(tensor);
      break;
    case DataType::kInt64:
      proto.int64_data = packed<int64_t>(tensor);
      break;
    case DataType::kBool:
      proto.int32_data = packed<bool, int32_t>(tensor);
      break;
    case DataType::kUInt8:
      proto.int32_data = packed<uint8_t, int32_t>(tensor);
      break;
    case DataType::kInt8:
      proto.int32_data = packed<int8_t, int32_t>(tensor);
      break;
    case DataType::kUInt16:
      proto.int32_data = packed<uint16_t, int32_t>(tensor);
      break;
    case DataType::kInt16:
      proto.int32_data = packed<int16_t, int32_t>(tensor);
      break;
    case DataType::kByte:
      proto.byte_data =
          wire::Bytes(std::string(static_cast<const char*>(tensor.raw_data()), tensor.bytes()));
      break;
    case DataType::kString: {
      const auto* strings = tensor.data<std::string>();
      proto.string_data.assign(strings, strings + tensor.size());
      break;
    }
    case DataType::kFloat16: {
      // As their bits, read as unsigned numbers.
      const auto* bits = static_cast<const uint16_t*>(tensor.raw_data());
      const std::vector<int32_t> wide(bits, bits + tensor.size());
      proto.int32_data = wire::Packed<int32_t>(std::span<const int32_t>(wide));
      break;
    }
    case DataType::kUndefined:
      fail(Code::kUnsupported, "tensors of type ", type_name(tensor.type()), " cannot be saved");
  }
  return proto;
}

template <class T, class Values>
void copy_values(const Values& values, Tensor& tensor) {
  CAFFE2_ENFORCE(static_cast<int64_t>(values.size()) == tensor.size(), "a saved tensor of shape ",
                 tensor.shape().text(), " holds ", values.size(), " values");
  values.copy_to(tensor.mutable_data<T>());
}

// Numbers that were saved wider than the type is.
template <class T>
void copy_narrow(const wire::Packed<int32_t>& values, Tensor& tensor, T* out) {
  CAFFE2_ENFORCE(static_cast<int64_t>(values.size()) == tensor.size(), "a saved tensor of shape ",
                 tensor.shape().text(), " holds ", values.size(), " values");
  for (const int32_t value : values.values()) {
    CAFFE2_ENFORCE(value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max(),
                   "a saved tensor of type ", type_name(tensor.type()), " holds ", value);
    *out++ = static_cast<T>(value);
  }
}

Tensor from_proto(const TensorProto& proto, Engine& engine) {
  if (proto.raw_data) fail(Code::kUnsupported, "a saved tensor with raw_data cannot be loaded");
  if (proto.segment) fail(Code::kUnsupported, "a saved segment of a tensor cannot be loaded");
  Shape shape;
  for (const int64_t dim : proto.dims) shape.append(dim);
  const auto type = static_cast<DataType>(proto.data_type.value_or(1));
  // Checked before the allocation: a short file must not ask for much memory.
  const int64_t most = static_cast<int64_t>(proto.float_data.size() + proto.double_data.size() +
                                            proto.int32_data.size() + proto.int64_data.size() +
                                            proto.string_data.size() +
                                            (proto.byte_data ? proto.byte_data->size() : 0));
  CAFFE2_ENFORCE(shape.size() <= most, "a saved tensor of shape ", shape.text(), " holds only ",
                 most, " values");
  Tensor tensor(engine.allocator(), shape, type);
  switch (type) {
    case DataType::kFloat:
      copy_values<float>(proto.float_data, tensor);
      break;
    case DataType::kDouble:
      copy_values<double>(proto.double_data, tensor);
      break;
    case DataType::kInt32:
      copy_values<int32_t>(proto.int32_data, tensor);
      break;
    case DataType::kInt64:
      copy_values<int64_t>(proto.int64_data, tensor);
      break;
    case DataType::kBool:
      copy_values<bool>(proto.int32_data, tensor);
      break;
    case DataType::kUInt8:
      copy_narrow(proto.int32_data, tensor, tensor.mutable_data<uint8_t>());
      break;
    case DataType::kInt8:
      copy_narrow(proto.int32_data, tensor, tensor.mutable_data<int8_t>());
      break;
    case DataType::kUInt16:
      copy_narrow(proto.int32_data, tensor, tensor.mutable_data<uint16_t>());
      break;
    case DataType::kInt16:
      copy_narrow(proto.int32_data, tensor, tensor.mutable_data<int16_t>());
      break;
    case DataType::kFloat16:
      copy_narrow(proto.int32_data, tensor, static_cast<uint16_t*>(tensor.raw_mutable_data()));
      break;
    case DataType::kString:
      CAFFE2_ENFORCE(static_cast<int64_t>(proto.string_data.size()) == tensor.size(),
                     "a saved tensor of shape ", shape.text(), " holds ", proto.string_data.size(),
                     " strings");
      std::copy(proto.string_data.begin(), proto.string_data.end(),
                tensor.mutable_data<std::string>());
      break;
    case DataType::kByte:
      CAFFE2_ENFORCE(proto.byte_data && proto.byte_data->size() == tensor.bytes(),
                     "a saved tensor of shape ", shape.text(), " has another number of bytes");
      std::memcpy(tensor.raw_mutable_data(), proto.byte_data->view().data(), tensor.bytes());
      break;
    default:
      fail(Code::kUnsupported, "tensors of type ", type_name(type), " cannot be loaded");
  }
  return tensor;
}

}  // namespace

std::string serialize_blob(const std::string& name, const BlobValue& value) {
  BlobProto proto;
  proto.name = name;
  if (value.is_tensor()) {
    proto.type = "Tensor";
    proto.tensor = to_proto(value.tensor);
  } else if (value.object) {
    value.object->serialize(proto);
  } else {
    fail(Code::kFailedPrecondition, "blob '", name, "' is empty and cannot be saved");
  }
  return serialize(proto);
}

BlobValue deserialize_blob(std::string_view bytes, Engine& engine) {
  ParseOptions options;
  options.borrow = true;
  const auto proto = parse<BlobProto>(bytes, options);
  const std::string type = proto.type.value_or("");
  if (type == Mutex::kKind) return {Tensor(), std::make_shared<Mutex>()};
  if (type == Counter::kKind && proto.tensor) {
    const Tensor count = from_proto(*proto.tensor, engine);
    CAFFE2_ENFORCE(count.size() == 1, "a saved counter holds ", count.size(), " values");
    return {Tensor(), std::make_shared<Counter>(count.data<int64_t>()[0])};
  }
  if (proto.content_num_chunks.value_or(1) > 1) {
    fail(Code::kUnsupported, "the saved blob is part ", proto.content_chunk_id.value_or(0), " of ",
         *proto.content_num_chunks, ", and parts cannot be loaded by themselves");
  }
  if (proto.tensor && (type == "Tensor" || type.empty())) {
    return {from_proto(*proto.tensor, engine), nullptr};
  }
  if (type == "std::string" && proto.content) {
    return {Tensor(), std::make_shared<Text>(std::string(proto.content->view()))};
  }
  fail(Code::kUnsupported, "a saved blob of type '", type, "' cannot be loaded");
}

}  // namespace caffe2
