// A map from integers to integers, as a blob.
#pragma once
#include <map>
#include <memory>
#include <string_view>

#include "core/blob.h"

namespace caffe2 {

class Map : public Object {
 public:
  // The types of keys and of values: kInt32 or kInt64.
  Map(DataType key_type, DataType value_type) : key_type(key_type), value_type(value_type) {}
  const char* kind() const override;
  void serialize(BlobProto& proto) const override;

  // What a saved blob holds; none where `type` is that of another kind.
  static std::shared_ptr<Map> load(std::string_view type, std::string_view content);

  const DataType key_type, value_type;
  std::map<int64_t, int64_t> values;
};

}  // namespace caffe2
