// Counters and flags that several threads may change at the same time.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>

#include "core/operator.h"
#include "core/registry.h"

namespace caffe2 {
namespace {

class CreateCounterOperator : public Operator {
 public:
  explicit CreateCounterOperator(const OperatorContext& context)
      : Operator(context), init_count_(args().integer("init_count")) {}

 protected:
  void run() override { output_object(0, std::make_shared<Counter>(init_count_)); }

 private:
  const int64_t init_count_;
};

class CounterOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  std::atomic<int64_t>& count() const { return input_object<Counter>(0)->count; }

  // Adds 1 or -1; the count before.
  int64_t add(int64_t step) {
    std::atomic<int64_t>& now = count();
    int64_t before = now, after;
    do {
      if (__builtin_add_overflow(before, step, &after)) {
        fail(Code::kFailedPrecondition, describe_input(0), " stands at ", before,
             " and cannot count on");
      }
    } while (!now.compare_exchange_weak(before, after));
    return before;
  }

  int64_t* count_output() { return output(0, {}, DataType::kInt64).mutable_data<int64_t>(); }
  bool* flag_output() { return output(0, {}, DataType::kBool).mutable_data<bool>(); }
};

class ResetCounterOperator : public CounterOperator {
 public:
  explicit ResetCounterOperator(const OperatorContext& context)
      : CounterOperator(context), init_count_(args().integer("init_count")) {}

 protected:
  void run() override {
    std::atomic<int64_t>& now = count();
    int64_t* previous = outputs() > 0 ? count_output() : nullptr;
    const int64_t before = now.exchange(init_count_);
    if (previous) *previous = before;
  }

 private:
  const int64_t init_count_;
};

class CountUpOperator : public CounterOperator {
 public:
  using CounterOperator::CounterOperator;

 protected:
  void run() override {
    int64_t* previous = count_output();
    *previous = add(1);
  }
};

class CountDownOperator : public CounterOperator {
 public:
  using CounterOperator::CounterOperator;

 protected:
  void run() override {
    bool* done = flag_output();
    *done = add(-1) <= 0;
  }
};

class CheckCounterDoneOperator : public CounterOperator {
 public:
  using CounterOperator::CounterOperator;

 protected:
  void run() override { *flag_output() = count() <= 0; }
};

class RetrieveCountOperator : public CounterOperator {
 public:
  using CounterOperator::CounterOperator;

 protected:
  void run() override { *count_output() = count(); }
};

template <class T>
class AtomicFetchAddOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto mutex = input_object<Mutex>(0);
    require_single(1, input(1));
    require_single(2, input(2));
    const T increment = *input(2).template data<T>();
    T* fetched = output(1, {}, TypeOf<T>::value).template mutable_data<T>();
    const bool in_place = input_blobs()[1] == output_blobs()[0];
    T* sum = in_place ? nullptr : output(0, {}, TypeOf<T>::value).template mutable_data<T>();
    std::lock_guard lock(mutex->mutex);
    // What the blob holds under the lock. In place it is changed where it lies: others add to it at
    // the same time.
    Tensor shared = present_input(1).tensor;
    require_single(1, shared);
    if (in_place) {
      sum = shared.template mutable_data<T>();
      output_value(0, BlobValue{Tensor(shared.storage(), {}, TypeOf<T>::value), nullptr});
    }
    using Unsigned = std::make_unsigned_t<T>;  // which wraps around
    const T before = *shared.template data<T>();
    *sum = static_cast<T>(static_cast<Unsigned>(before) + static_cast<Unsigned>(increment));
    *fetched = before;
  }

 private:
  void require_single(int i, const Tensor& tensor) const {
    CAFFE2_ENFORCE(tensor.size() == 1, describe_input(i), " has shape ", tensor.shape().text(),
                   "; one element is needed");
    CAFFE2_ENFORCE(tensor.type() == TypeOf<T>::value, describe_input(i), " has type ",
                   type_name(tensor.type()), "; ", type_name(TypeOf<T>::value), " is needed");
  }
};

class AtomicBool : public Object {
 public:
  const char* kind() const override { return "std::unique_ptr<std::atomic<bool>>"; }
  std::atomic<bool> value{false};
};

class CreateAtomicBoolOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { output_object(0, std::make_shared<AtomicBool>()); }
};

class ConditionalSetAtomicBoolOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto flag = input_object<AtomicBool>(0);
    const Tensor& condition = input(1);
    CAFFE2_ENFORCE(condition.size() == 1, describe_input(1), " has shape ",
                   condition.shape().text(), "; one element is needed");
    if (condition.data<bool>()[0]) flag->value = true;
  }
};

class CheckAtomicBoolOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto flag = input_object<AtomicBool>(0);
    output(0, {1}, DataType::kBool).mutable_data<bool>()[0] = flag->value;
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateCounter, CreateCounterOperator)
REGISTER_CPU_OPERATOR(ResetCounter, ResetCounterOperator)
REGISTER_CPU_OPERATOR(CountUp, CountUpOperator)
REGISTER_CPU_OPERATOR(CountDown, CountDownOperator)
REGISTER_CPU_OPERATOR(CheckCounterDone, CheckCounterDoneOperator)
REGISTER_CPU_OPERATOR(RetrieveCount, RetrieveCountOperator)
REGISTER_CPU_OPERATOR(AtomicFetchAdd, AtomicFetchAddOperator<int32_t>)
REGISTER_CPU_OPERATOR(AtomicFetchAdd64, AtomicFetchAddOperator<int64_t>)
REGISTER_CPU_OPERATOR(CreateAtomicBool, CreateAtomicBoolOperator)
REGISTER_CPU_OPERATOR(ConditionalSetAtomicBool, ConditionalSetAtomicBoolOperator)
REGISTER_CPU_OPERATOR(CheckAtomicBool, CheckAtomicBoolOperator)

}  // namespace caffe2
