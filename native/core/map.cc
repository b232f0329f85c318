#include "core/map.h"

#include <span>
#include <string>
#include <vector>

#include "core/serialize.h"

namespace caffe2 {

namespace {

// Names of types in saved blobs, as the original writes them.
constexpr struct {
  DataType key, value;
  const char* name;
} kKinds[] = {
    {DataType::kInt32, DataType::kInt32, "(std::unordered_map<int32_t, int32_t>)"},
    {DataType::kInt32, DataType::kInt64, "(std::unordered_map<int32_t, int64_t>)"},
    {DataType::kInt64, DataType::kInt32, "(std::unordered_map<int64_t, int32_t>)"},
    {DataType::kInt64, DataType::kInt64, "(std::unordered_map<int64_t, int64_t>)"},
};

TensorProto to_proto(const std::vector<int64_t>& numbers, DataType type) {
  TensorProto proto;
  proto.dims = {static_cast<int64_t>(numbers.size())};
  proto.data_type = static_cast<int32_t>(type);
  if (type == DataType::kInt64) {
    proto.int64_data = wire::Packed<int64_t>(std::span<const int64_t>(numbers));
  } else {
    const std::vector<int32_t> narrow(numbers.begin(), numbers.end());
    proto.int32_data = wire::Packed<int32_t>(std::span<const int32_t>(narrow));
  }
  return proto;
}

std::vector<int64_t> numbers_of(const TensorProto& proto, DataType type) {
  const TensorItem item(proto);
  CAFFE2_ENFORCE(item.type() == type, "a saved map of ", type_name(type), " holds ",
                 type_name(item.type()));
  if (type == DataType::kInt64) return proto.int64_data.values();
  const std::vector<int32_t> narrow = proto.int32_data.values();
  return {narrow.begin(), narrow.end()};
}

}  // namespace

const char* Map::kind() const {
  for (const auto& kind : kKinds) {
    if (kind.key == key_type && kind.value == value_type) return kind.name;
  }
  fail(Code::kInternal, "a map from ", type_name(key_type), " to ", type_name(value_type));
}

void Map::serialize(BlobProto& proto) const {
  std::vector<int64_t> keys, mapped;
  for (const auto& [key, value] : values) {
    keys.push_back(key);
    mapped.push_back(value);
  }
  TensorProtos content;
  content.protos = {to_proto(keys, key_type), to_proto(mapped, value_type)};
  proto.type = kind();
  proto.content = wire::Bytes(caffe2::serialize(content));
}

std::shared_ptr<Map> Map::load(std::string_view type, std::string_view content) {
  for (const auto& kind : kKinds) {
    if (type != kind.name) continue;
    ParseOptions options;
    options.borrow = true;
    const auto saved = parse<TensorProtos>(content, options);
    CAFFE2_ENFORCE(saved.protos.size() == 2, "a saved map holds ", saved.protos.size(),
                   " tensors; 2 are needed");
    const std::vector<int64_t> keys = numbers_of(saved.protos[0], kind.key);
    const std::vector<int64_t> values = numbers_of(saved.protos[1], kind.value);
    CAFFE2_ENFORCE(keys.size() == values.size(), "a saved map holds ", keys.size(), " keys and ",
                   values.size(), " values");
    auto map = std::make_shared<Map>(kind.key, kind.value);
    for (size_t i = 0; i < keys.size(); i++) map->values.emplace(keys[i], values[i]);
    return map;
  }
  return nullptr;
}

}  // namespace caffe2
