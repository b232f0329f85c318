// Maps from integers to integers.
#include <memory>

#include "core/map.h"
#include "core/operator.h"
#include "core/registry.h"
#include "operators/dispatch.h"

namespace caffe2 {
namespace {

class CreateMapOperator : public Operator {
 public:
  explicit CreateMapOperator(const OperatorContext& context)
      : Operator(context), key_(type("key_dtype")), value_(type("value_dtype")) {}

 protected:
  void run() override { output_object(0, std::make_shared<Map>(key_, value_)); }

 private:
  DataType type(const char* name) const {
    const auto type = static_cast<DataType>(args().int32(name));
    CAFFE2_ENFORCE(type == DataType::kInt32 || type == DataType::kInt64, name, " = ",
                   args().int32(name), "; allowed are 2 (int32) and 10 (int64)");
    return type;
  }

  const DataType key_, value_;
};

// Calls f(T()) for the type, int32 or int64.
template <class F>
void with_numbers(DataType type, const F& f) {
  dispatch<int32_t, int64_t>(type, f);
}

class KeyValueToMapOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &keys = input(0), &values = input(1);
    CAFFE2_ENFORCE(keys.size() == values.size(), describe_input(1), " has ", values.size(),
                   " elements; ", describe_input(0), " has ", keys.size());
    auto map = std::make_shared<Map>(keys.type(), values.type());
    with_numbers(keys.type(), [&](auto key) {
      with_numbers(values.type(), [&](auto value) {
        for (int64_t i = 0; i < keys.size(); i++) {
          map->values.emplace(keys.data<decltype(key)>()[i], values.data<decltype(value)>()[i]);
        }
      });
    });
    output_object(0, std::move(map));
  }
};

class MapToKeyValueOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto map = input_object<Map>(0);
    const auto n = static_cast<int64_t>(map->values.size());
    Tensor &keys = output(0, {n}, map->key_type), &values = output(1, {n}, map->value_type);
    with_numbers(keys.type(), [&](auto type) {
      auto* out = keys.mutable_data<decltype(type)>();
      for (const auto& entry : map->values) *out++ = static_cast<decltype(type)>(entry.first);
    });
    with_numbers(values.type(), [&](auto type) {
      auto* out = values.mutable_data<decltype(type)>();
      for (const auto& entry : map->values) *out++ = static_cast<decltype(type)>(entry.second);
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateMap, CreateMapOperator)
REGISTER_CPU_OPERATOR(KeyValueToMap, KeyValueToMapOperator)
REGISTER_CPU_OPERATOR(MapToKeyValue, MapToKeyValueOperator)

}  // namespace caffe2
