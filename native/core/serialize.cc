#include "core/serialize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "core/int8_tensor.h"
#include "core/map.h"
#include "core/messages.h"
#include "core/record_tree.h"

namespace caffe2 {

namespace {

constexpr uint32_t kBfloat16 = 1;  // TensorProto.SerializationFormat

template <class T, class Wide = T>
wire::Packed<Wide> packed(const Tensor& tensor, int64_t begin, int64_t end) {
  const std::span<const T> values(tensor.data<T>() + begin, static_cast<size_t>(end - begin));
  if constexpr (std::is_same_v<T, Wide>) {
    return wire::Packed<Wide>(values);
  } else {
    const std::vector<Wide> wide(values.begin(), values.end());
    return wire::Packed<Wide>(std::span<const Wide>(wide));
  }
}

}  // namespace

TensorProto to_proto(const Tensor& tensor, int64_t begin, int64_t end) {
  TensorProto proto;
  proto.dims.assign(tensor.shape().begin(), tensor.shape().end());
  proto.data_type = static_cast<int32_t>(tensor.type());
  switch (tensor.type()) {
    case DataType::kFloat:
      proto.float_data = packed<float>(tensor, begin, end);
      break;
    case DataType::kDouble:
      proto.double_data = packed<double>(tensor, begin, end);
      break;
    case DataType::kInt32:
      proto.int32_data = packed<int32_t>(tensor, begin, end);
      break;
    case DataType::kInt64:
      proto.int64_data = packed<int64_t>(tensor, begin, end);
      break;
    case DataType::kBool:
      proto.int32_data = packed<bool, int32_t>(tensor, begin, end);
      break;
    case DataType::kUInt8:
      proto.int32_data = packed<uint8_t, int32_t>(tensor, begin, end);
      break;
    case DataType::kInt8:
      proto.int32_data = packed<int8_t, int32_t>(tensor, begin, end);
      break;
    case DataType::kUInt16:
      proto.int32_data = packed<uint16_t, int32_t>(tensor, begin, end);
      break;
    case DataType::kInt16:
      proto.int32_data = packed<int16_t, int32_t>(tensor, begin, end);
      break;
    case DataType::kByte:
      proto.byte_data = wire::Bytes(std::string(static_cast<const char*>(tensor.raw_data()) + begin,
                                                static_cast<size_t>(end - begin)));
      break;
    case DataType::kString: {
      const auto* strings = tensor.data<std::string>();
      proto.string_data.assign(strings + begin, strings + end);
      break;
    }
    case DataType::kFloat16: {
      // As their bits, read as unsigned numbers.
      const auto* bits = static_cast<const uint16_t*>(tensor.raw_data());
      const std::vector<int32_t> wide(bits + begin, bits + end);
      proto.int32_data = wire::Packed<int32_t>(std::span<const int32_t>(wide));
      break;
    }
    case DataType::kUndefined:
      fail(Code::kUnsupported, "tensors of type ", type_name(tensor.type()), " cannot be saved");
  }
  return proto;
}

namespace {

// Floats as bfloat16: their upper halves, rounded.
TensorProto half_proto(const Tensor& tensor, int64_t begin, int64_t end) {
  TensorProto proto;
  proto.dims.assign(tensor.shape().begin(), tensor.shape().end());
  proto.data_type = static_cast<int32_t>(tensor.type());
  proto.data_format = kBfloat16;
  std::string halves;
  halves.reserve(static_cast<size_t>(end - begin) * sizeof(uint16_t));
  for (int64_t i = begin; i < end; i++) {
    const float value = tensor.data<float>()[i];
    constexpr uint32_t kHalf = 0x8000;
    constexpr uint32_t kQuiet = 0x400000;  // keeps what is no number from becoming infinity
    const uint32_t bits = std::isnan(value) ? __builtin_bit_cast(uint32_t, value) | kQuiet
                                            : __builtin_bit_cast(uint32_t, value) +
                                                  (std::isfinite(value) ? kHalf : 0);
    halves.push_back(static_cast<char>(bits >> 16));
    halves.push_back(static_cast<char>(bits >> 24));
  }
  proto.raw_data = wire::Bytes(std::move(halves));
  return proto;
}

Shape shape_of(const TensorProto& proto) {
  Shape shape;
  for (const int64_t dim : proto.dims) shape.append(dim);
  return shape;
}

DataType type_of(const TensorProto& proto) {
  return static_cast<DataType>(proto.data_type.value_or(1));
}

// The values of a saved tensor, or of a part of one, on their way to memory. All that can be wrong
// with them is found when this is made: a short file must not ask for much memory.
class Values {
 public:
  Values(const TensorProto& proto, DataType type, int64_t size, const Shape& shape)
      : proto_(proto), type_(type) {
    if (proto.raw_data && !half()) {
      fail(Code::kUnsupported,
           "a saved tensor with raw_data can only be loaded as bfloat16, not as ", type_name(type),
           " in format ", proto.data_format.value_or(0));
    }
    CAFFE2_ENFORCE(static_cast<int64_t>(count()) == size, "a saved tensor of shape ", shape.text(),
                   " holds ", count(), " values of ", type_name(type), "; ", size, " are needed");
    if (!narrow() || !bytes().empty()) return;
    const bool is_signed = type == DataType::kInt8 || type == DataType::kInt16;
    const int64_t range = int64_t{1} << (8 * type_size(type));
    const int64_t least = is_signed ? -range / 2 : 0;
    for (const int32_t value : proto.int32_data.values()) {
      CAFFE2_ENFORCE(least <= value && value < least + range, "a saved tensor of type ",
                     type_name(type), " holds ", value);
    }
  }

  void copy_to(void* out) const {
    switch (type_) {
      case DataType::kFloat:
        if (half()) return from_half(static_cast<float*>(out));
        return proto_.float_data.copy_to(static_cast<float*>(out));
      case DataType::kDouble:
        return proto_.double_data.copy_to(static_cast<double*>(out));
      case DataType::kInt32:
        return proto_.int32_data.copy_to(static_cast<int32_t*>(out));
      case DataType::kInt64:
        return proto_.int64_data.copy_to(static_cast<int64_t*>(out));
      case DataType::kBool:
        if (bytes().empty()) return proto_.int32_data.copy_to(static_cast<bool*>(out));
        std::transform(bytes().begin(), bytes().end(), static_cast<bool*>(out),
                       [](char byte) { return byte != 0; });
        return;
      case DataType::kString:
        std::copy(proto_.string_data.begin(), proto_.string_data.end(),
                  static_cast<std::string*>(out));
        return;
      default:
        break;
    }
    if (!bytes().empty()) {
      std::memcpy(out, bytes().data(), bytes().size());
    } else if (type_size(type_) == 1) {
      proto_.int32_data.copy_to(static_cast<uint8_t*>(out));
    } else {
      proto_.int32_data.copy_to(static_cast<uint16_t*>(out));
    }
  }

 private:
  // Whether floats are there as their upper halves.
  bool half() const {
    return proto_.raw_data && proto_.data_format == kBfloat16 && type_ == DataType::kFloat;
  }
  void from_half(float* out) const {
    const std::string_view halves = proto_.raw_data->view();
    for (size_t i = 0; i < halves.size() / sizeof(uint16_t); i++) {
      uint16_t upper;
      std::memcpy(&upper, halves.data() + i * sizeof upper, sizeof upper);
      out[i] = __builtin_bit_cast(float, static_cast<uint32_t>(upper) << 16);
    }
  }

  std::string_view bytes() const {
    return proto_.byte_data ? proto_.byte_data->view() : std::string_view();
  }
  // Types of one or two bytes are saved as these, or as numbers that are wider.
  bool narrow() const {
    switch (type_) {
      case DataType::kUInt8:
      case DataType::kInt8:
      case DataType::kUInt16:
      case DataType::kInt16:
      case DataType::kFloat16:
        return true;
      default:
        return false;
    }
  }
  // How many values of the type the file holds.
  size_t count() const {
    switch (type_) {
      case DataType::kFloat:
        if (!half()) return proto_.float_data.size();
        CAFFE2_ENFORCE(proto_.raw_data->size() % sizeof(uint16_t) == 0,
                       "a saved tensor in bfloat16 has ", proto_.raw_data->size(), " bytes");
        return proto_.raw_data->size() / sizeof(uint16_t);
      case DataType::kDouble:
        return proto_.double_data.size();
      case DataType::kInt32:
        return proto_.int32_data.size();
      case DataType::kInt64:
        return proto_.int64_data.size();
      case DataType::kString:
        return proto_.string_data.size();
      case DataType::kByte:
        return bytes().size();
      default:
        break;
    }
    if (!narrow() && type_ != DataType::kBool) {
      fail(Code::kUnsupported, "tensors of type ", type_name(type_), " cannot be loaded");
    }
    if (bytes().empty()) return proto_.int32_data.size();
    CAFFE2_ENFORCE(bytes().size() % type_size(type_) == 0, "a saved tensor of type ",
                   type_name(type_), " holds ", bytes().size(), " bytes");
    return bytes().size() / type_size(type_);
  }

  const TensorProto& proto_;
  const DataType type_;
};

Tensor from_proto(const TensorProto& proto, Engine& engine) {
  if (proto.segment) fail(Code::kUnsupported, "a part of a saved tensor cannot be loaded alone");
  const Shape shape = shape_of(proto);
  const Values values(proto, type_of(proto), shape.size(), shape);
  Tensor tensor(engine.allocator(), shape, type_of(proto));
  values.copy_to(tensor.raw_mutable_data());
  return tensor;
}

BlobValue from_blob_proto(const BlobProto& proto, Engine& engine) {
  const std::string type = proto.type.value_or("");
  if (type == Mutex::kKind) return {Tensor(), std::make_shared<Mutex>()};
  if (type == Counter::kKind && proto.tensor) {
    const Tensor count = from_proto(*proto.tensor, engine);
    CAFFE2_ENFORCE(count.size() == 1, "a saved counter holds ", count.size(), " values");
    return {Tensor(), std::make_shared<Counter>(count.data<int64_t>()[0])};
  }
  if (type == TreeCursor::kKind) return {Tensor(), TreeCursor::load(proto)};
  if (proto.content_num_chunks.value_or(1) > 1) {
    fail(Code::kUnsupported, "the saved blob is part ", proto.content_chunk_id.value_or(0), " of ",
         *proto.content_num_chunks, ", and parts cannot be loaded by themselves");
  }
  if (proto.tensor && (type == "Tensor" || type.empty())) {
    return {from_proto(*proto.tensor, engine), nullptr};
  }
  if (type == Int8Tensor::kSavedKind && proto.qtensor) {
    return {Tensor(), Int8Tensor::load(*proto.qtensor, engine)};
  }
  if (type == "std::string" && proto.content) {
    return {Tensor(), std::make_shared<Text>(std::string(proto.content->view()))};
  }
  if (proto.content) {
    if (auto map = Map::load(type, proto.content->view())) return {Tensor(), std::move(map)};
  }
  fail(Code::kUnsupported, "a saved blob of type '", type, "' cannot be loaded");
}

bool is_tensor(const BlobProto& proto) {
  return proto.tensor && (!proto.type || proto.type->empty() || *proto.type == "Tensor");
}

constexpr std::string_view kChunkMark = "#%";

}  // namespace

std::string serialize_blob(const std::string& name, const BlobValue& value) {
  BlobProto proto;
  proto.name = name;
  if (value.is_tensor()) {
    proto.type = "Tensor";
    proto.tensor = to_proto(value.tensor, 0, value.tensor.size());
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
  return from_blob_proto(parse<BlobProto>(bytes, options), engine);
}

void serialize_chunks(const std::string& name, const BlobValue& value, int64_t chunk, bool half,
                      const std::function<void(std::string key, std::string bytes)>& put) {
  if (!value.is_tensor()) return put(name, serialize_blob(name, value));
  const int64_t size = value.tensor.size();
  const int64_t step = chunk > 0 ? chunk : std::max<int64_t>(size, 1);
  int64_t number = 0, begin = 0;
  do {
    const int64_t end = begin + std::min(step, size - begin);
    BlobProto proto;
    proto.name = name;
    proto.type = "Tensor";
    proto.tensor = half && value.tensor.type() == DataType::kFloat
                       ? half_proto(value.tensor, begin, end)
                       : to_proto(value.tensor, begin, end);
    proto.tensor->name = name;
    proto.tensor->segment.emplace().begin = begin;
    proto.tensor->segment->end = end;
    put(concat(name, kChunkMark, number++), serialize(proto));
    begin = end;
  } while (begin < size);
}

std::string_view name_of_key(std::string_view key) {
  const size_t mark = key.rfind(kChunkMark);
  return key.substr(0, mark == std::string_view::npos ? key.size() : mark);
}

void BlobAssembler::add(std::string_view bytes) {
  CAFFE2_ENFORCE(!complete_, "it is there twice");
  ParseOptions options;
  options.borrow = true;
  const auto proto = parse<BlobProto>(bytes, options);
  if (!is_tensor(proto) || !proto.tensor->segment) {
    CAFFE2_ENFORCE(parts_.empty(), "it is there in parts and as a whole");
    value_ = from_blob_proto(proto, engine_);
    complete_ = true;
    return;
  }
  const TensorProto& tensor = *proto.tensor;
  const Shape shape = shape_of(tensor);
  const DataType type = type_of(tensor);
  const int64_t begin = tensor.segment->begin.value_or(0), end = tensor.segment->end.value_or(0);
  CAFFE2_ENFORCE(0 <= begin && begin <= end && end <= shape.size(), "a part has the elements ",
                 begin, " to ", end, " of a tensor of shape ", shape.text());
  if (!parts_.empty()) {
    const DataType known = parts_[0].values.type();
    CAFFE2_ENFORCE(shape == shape_ && type == known,
                   "its parts do not go together: ", type_name(type), " of shape ", shape.text(),
                   " and ", type_name(known), " of ", shape_.text());
  }
  const Values values(tensor, type, end - begin, shape);
  Part part{begin, Tensor(engine_.allocator(), {end - begin}, type)};
  values.copy_to(part.values.raw_mutable_data());
  shape_ = shape;
  parts_.push_back(std::move(part));
  CAFFE2_ENFORCE(!__builtin_add_overflow(read_, end - begin, &read_) && read_ <= shape.size(),
                 "its parts overlap");
  if (read_ == shape.size()) join();
}

void BlobAssembler::join() {
  std::sort(parts_.begin(), parts_.end(),
            [](const Part& a, const Part& b) { return a.begin < b.begin; });
  int64_t next = 0;
  for (const Part& part : parts_) {
    // An empty part says nothing.
    CAFFE2_ENFORCE(part.begin == next || part.values.size() == 0, "its parts overlap");
    next += part.values.size();
  }
  const DataType type = parts_[0].values.type();
  if (parts_.size() == 1) {
    value_.tensor = Tensor(parts_[0].values.storage(), shape_, type);
  } else {
    value_.tensor = Tensor(engine_.allocator(), shape_, type);
    for (const Part& part : parts_) {
      const int64_t n = part.values.size();
      if (type == DataType::kString) {
        std::copy_n(part.values.data<std::string>(), n,
                    value_.tensor.mutable_data<std::string>() + part.begin);
      } else if (n > 0) {
        std::memcpy(static_cast<char*>(value_.tensor.raw_mutable_data()) +
                        static_cast<size_t>(part.begin) * type_size(type),
                    part.values.raw_data(), part.values.bytes());
      }
    }
  }
  parts_.clear();
  complete_ = true;
}

std::string BlobAssembler::missing_text() const {
  return parts_.empty() ? "is not there"
                        : concat("has only ", read_, " of ", shape_.size(), " elements in ",
                                 parts_.size(), " part(s)");
}

TensorItem::TensorItem(const TensorProto& proto)
    : proto_(&proto), shape_(shape_of(proto)), type_(type_of(proto)) {
  Values(proto, type_, shape_.size(), shape_);
  saved_type_ = type_;
  if (type_ == DataType::kByte) type_ = DataType::kUInt8;
}

void TensorItem::copy_to(void* out) const {
  Values(*proto_, saved_type_, shape_.size(), shape_).copy_to(out);
}

}  // namespace caffe2
