// Indexes: numbers for keys, in the order in which these first came.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/dispatch.h"

namespace caffe2 {
namespace {

// Number 0 stands for keys that are not known; it counts in the size. Several threads may use an
// index at the same time, under its mutex.
class Index : public Object {
 public:
  Index(DataType type, int64_t most) : type(type), most(most) {}
  const char* kind() const override { return "std::unique_ptr<caffe2::IndexBase>"; }

  const DataType type;  // of the keys
  const int64_t most;   // the largest size
  std::mutex mutex;
  bool frozen = false;
};

template <class T>
class IndexOf : public Index {
 public:
  explicit IndexOf(int64_t most) : Index(TypeOf<T>::value, most) {}

  int64_t size() const { return static_cast<int64_t>(keys.size()) + 1; }

  std::unordered_map<T, int64_t> numbers;
  std::vector<T> keys;  // key i has number i + 1
};

template <class T>
class CreateIndexOperator : public Operator {
 public:
  explicit CreateIndexOperator(const OperatorContext& context)
      : Operator(context), most_(args().integer("max_elements")) {}

 protected:
  void run() override { output_object(0, std::make_shared<IndexOf<T>>(most_)); }

 private:
  const int64_t most_;
};

// Operators on an index, input 0: calls f(index) with the index of its type, which is held.
class IndexOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  template <class F>
  void with_index(const F& f) {
    const std::shared_ptr<Index> index = input_object<Index>(0);
    const std::lock_guard<std::mutex> lock(index->mutex);
    dispatch<int32_t, int64_t, std::string>(
        index->type, [&](auto key) { f(static_cast<IndexOf<decltype(key)>&>(*index)); });
  }
  void check_keys(const Index& index) const {
    CAFFE2_ENFORCE(input(1).type() == index.type, describe_input(1), " is ",
                   type_name(input(1).type()), "; the keys of ", describe_input(0), " are ",
                   type_name(index.type));
  }
  void check_room(const Index& index, int64_t size) const {
    CAFFE2_ENFORCE(size <= index.most, describe_input(0), " would have ", size,
                   " numbers; max_elements = ", index.most);
  }
};

class IndexGetOperator : public IndexOperator {
 public:
  using IndexOperator::IndexOperator;

 protected:
  void run() override {
    with_index([this](auto& index) {
      check_keys(index);
      using T = typename std::decay_t<decltype(index.keys)>::value_type;
      const T* keys = input(1).template data<T>();
      const int64_t n = input(1).size();
      std::unordered_map<T, int64_t> added;
      std::vector<int64_t> numbers(n);
      std::vector<T> order;
      for (int64_t j = 0; j < n; j++) {
        if (const auto known = index.numbers.find(keys[j]); known != index.numbers.end()) {
          numbers[j] = known->second;
        } else if (!index.frozen) {
          const auto [place, fresh] = added.emplace(keys[j], index.size() + order.size());
          if (fresh) order.push_back(keys[j]);
          numbers[j] = place->second;
        }
      }
      check_room(index, index.size() + static_cast<int64_t>(order.size()));
      Tensor& y = output(0, input(1).shape(), DataType::kInt64);
      index.keys.insert(index.keys.end(), order.begin(), order.end());
      index.numbers.merge(added);
      std::copy(numbers.begin(), numbers.end(), y.mutable_data<int64_t>());
    });
  }
};

class IndexLoadOperator : public IndexOperator {
 public:
  explicit IndexLoadOperator(const OperatorContext& context)
      : IndexOperator(context), skip_first_(args().boolean("skip_first_entry")) {}

 protected:
  void run() override {
    with_index([this](auto& index) {
      check_keys(index);
      using T = typename std::decay_t<decltype(index.keys)>::value_type;
      CAFFE2_ENFORCE(!index.frozen, describe_input(0), " is frozen");
      CAFFE2_ENFORCE(input(1).rank() == 1, describe_input(1), " has shape ",
                     input(1).shape().text(), "; one dimension is needed");
      const int64_t first = skip_first_ && input(1).size() > 0;
      const T* items = input(1).template data<T>();
      std::vector<T> keys(items + first, items + input(1).size());
      check_room(index, static_cast<int64_t>(keys.size()) + 1);
      std::unordered_map<T, int64_t> numbers;
      for (const T& key : keys) {
        CAFFE2_ENFORCE(numbers.emplace(key, numbers.size() + 1).second, describe_input(1),
                       " holds a key twice");
      }
      output_value(0, input_value(0));
      index.keys = std::move(keys);
      index.numbers = std::move(numbers);
    });
  }

 private:
  const bool skip_first_;
};

class IndexStoreOperator : public IndexOperator {
 public:
  using IndexOperator::IndexOperator;

 protected:
  void run() override {
    with_index([this](auto& index) {
      using T = typename std::decay_t<decltype(index.keys)>::value_type;
      Tensor& y = output(0, {index.size() - 1}, index.type);
      std::copy(index.keys.begin(), index.keys.end(), y.template mutable_data<T>());
    });
  }
};

class IndexSizeOperator : public IndexOperator {
 public:
  using IndexOperator::IndexOperator;

 protected:
  void run() override {
    with_index([this](auto& index) {
      output(0, {}, DataType::kInt64).template mutable_data<int64_t>()[0] = index.size();
    });
  }
};

class IndexFreezeOperator : public IndexOperator {
 public:
  using IndexOperator::IndexOperator;

 protected:
  void run() override {
    with_index([this](auto& index) {
      output_value(0, input_value(0));
      index.frozen = true;
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(IntIndexCreate, CreateIndexOperator<int32_t>)
REGISTER_CPU_OPERATOR(LongIndexCreate, CreateIndexOperator<int64_t>)
REGISTER_CPU_OPERATOR(StringIndexCreate, CreateIndexOperator<std::string>)
REGISTER_CPU_OPERATOR(IndexGet, IndexGetOperator)
REGISTER_CPU_OPERATOR(IndexLoad, IndexLoadOperator)
REGISTER_CPU_OPERATOR(IndexStore, IndexStoreOperator)
REGISTER_CPU_OPERATOR(IndexSize, IndexSizeOperator)
REGISTER_CPU_OPERATOR(IndexFreeze, IndexFreezeOperator)

}  // namespace caffe2
