// A sample of all rows that came along.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/map.h"
#include "core/registry.h"
#include "operators/elements.h"
#include "operators/random.h"

namespace caffe2 {
namespace {

class ReservoirSamplingOperator : public Operator {
 public:
  explicit ReservoirSamplingOperator(const OperatorContext& context)
      : Operator(context),
        most_(args().integer("num_to_collect")),
        objects_(context.def.input.size() > 4) {
    const size_t inputs = context.def.input.size(), outputs = context.def.output.size();
    CAFFE2_ENFORCE((inputs == 4 && outputs == 2) || (inputs == 7 && outputs == 4), "it has ",
                   inputs, " inputs and ", outputs, " outputs; allowed are 4 and 2, or 7 and 4");
  }
  bool takes_empty(int i) const override { return i == 0; }

 protected:
  void run() override {
    const Tensor& data = input(2);
    CAFFE2_ENFORCE(data.rank() > 0, describe_input(2), " has shape (); rows are needed");
    const auto mutex = input_object<Mutex>(3);
    const std::lock_guard lock(mutex->mutex);
    // What the blobs hold under the lock, and they get the results under it, too.
    const Tensor before = present_input(0).tensor;
    const int64_t old = check_rows(before, data);
    int64_t seen = check_seen(old);
    State state = objects_ ? objects(old, data.dim(0)) : State();
    const int64_t* ids = objects_ ? input(4).data<int64_t>() : nullptr;

    std::vector<std::pair<int64_t, int64_t>> moves;  // row of the data, place in the reservoir
    int64_t count = old;
    for (int64_t i = 0; i < data.dim(0); i++) {
      if (ids != nullptr && state.map->values.contains(ids[i])) continue;
      const int64_t place = seen < most_ ? seen : random_below(seen + 1);
      seen++;
      if (place >= most_) continue;
      moves.emplace_back(i, place);
      if (ids != nullptr) state.put(ids[i], place, place < count);
      count = std::max(count, place + 1);
    }

    Tensor rows(engine().allocator(), with_rows(data, count), data.type());
    Tensor visited(engine().allocator(), input(1).shape(), DataType::kInt64);
    Tensor owners(engine().allocator(), {objects_ ? count : 0}, DataType::kInt64);
    const int64_t row = data.shape().product(1, data.rank());
    if (old > 0) copy_elements(before, 0, old * row, rows, 0);
    for (const auto& [from, to] : moves) copy_elements(data, from * row, row, rows, to * row);
    *visited.mutable_data<int64_t>() = seen;
    std::copy(state.objects.begin(), state.objects.end(), owners.mutable_data<int64_t>());
    output_blobs()[0]->set(std::move(rows));
    output_blobs()[1]->set(std::move(visited));
    if (!objects_) return;
    output_blobs()[2]->set(std::shared_ptr<Object>(state.map));
    output_blobs()[3]->set(std::move(owners));
  }

 private:
  struct State {
    std::shared_ptr<Map> map;
    std::vector<int64_t> objects;  // of each place

    void put(int64_t object, int64_t place, bool replaces) {
      if (replaces) {
        map->values.erase(objects[place]);
        objects[place] = object;
      } else {
        objects.push_back(object);
      }
      map->values.emplace(object, place);
    }
  };

  static Shape with_rows(const Tensor& tensor, int64_t rows) {
    Shape shape{rows};
    for (int axis = 1; axis < tensor.rank(); axis++) shape.append(tensor.dim(axis));
    return shape;
  }

  // How many rows there are.
  int64_t check_rows(const Tensor& before, const Tensor& data) const {
    if (!before.storage() || (before.rank() > 0 && before.dim(0) == 0)) return 0;
    CAFFE2_ENFORCE(before.rank() > 0 && before.type() == data.type() &&
                       with_rows(before, 0) == with_rows(data, 0),
                   describe_input(0), " has type ", type_name(before.type()), " and shape ",
                   before.shape().text(), "; rows like those of ", describe_input(2), ", ",
                   type_name(data.type()), ", ", data.shape().text(), ", are needed");
    return before.dim(0);
  }

  int64_t check_seen(int64_t rows) const {
    const Tensor seen = present_input(1).tensor;
    CAFFE2_ENFORCE(seen.storage() && seen.type() == DataType::kInt64 && seen.size() == 1,
                   describe_input(1), " is not one int64");
    const int64_t n = seen.data<int64_t>()[0];
    CAFFE2_ENFORCE(n >= 0 && n <= std::numeric_limits<int64_t>::max() - input(2).dim(0) &&
                       rows == std::min(n, most_),
                   describe_input(1), " is ", n, ", of which ", describe_input(0), " has ", rows,
                   " rows; num_to_collect = ", most_);
    return n;
  }

  State objects(int64_t rows, int64_t given) const {
    const Tensor& ids = input(4);
    CAFFE2_ENFORCE(ids.rank() == 1 && ids.dim(0) == given, describe_input(4), " has shape ",
                   ids.shape().text(), "; ", describe_input(2), " has ", given, " rows");
    const auto map = present_input(5).as<Map>();
    CAFFE2_ENFORCE(map && map->key_type == DataType::kInt64 && map->value_type == DataType::kInt32,
                   describe_input(5), " is no map from int64 to int32");
    const Tensor owners = present_input(6).tensor;
    CAFFE2_ENFORCE(owners.storage() && owners.type() == DataType::kInt64 && owners.size() >= rows,
                   describe_input(6), " does not have the objects of ", rows, " rows");
    State state;
    state.map = std::make_shared<Map>(*map);
    state.objects.assign(owners.data<int64_t>(), owners.data<int64_t>() + rows);
    return state;
  }

  int64_t random_below(int64_t n) {
    int32_t bits[2];
    kernels().uniform_int(random_state(next_random_stream()), INT32_MIN, INT32_MAX, 2, bits,
                          parallel());
    const uint64_t high = static_cast<uint32_t>(bits[0]), low = static_cast<uint32_t>(bits[1]);
    return static_cast<int64_t>((high << 32 | low) % static_cast<uint64_t>(n));
  }

  const int64_t most_;
  const bool objects_;
};

}  // namespace

REGISTER_CPU_OPERATOR(ReservoirSampling, ReservoirSamplingOperator)

}  // namespace caffe2
