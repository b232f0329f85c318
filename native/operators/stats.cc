// Operators on the statistics of a process, and timers.
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/stat_registry.h"

namespace caffe2 {
namespace {

int64_t nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class StatRegistryCreateOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { output_object(0, std::make_shared<StatRegistry>()); }
};

class StatRegistryExportOperator : public Operator {
 public:
  explicit StatRegistryExportOperator(const OperatorContext& context)
      : Operator(context), reset_(args().boolean("reset")) {}

 protected:
  void run() override {
    const auto given = has_input(0) ? input_object<StatRegistry>(0) : nullptr;
    StatRegistry& registry = given ? *given : StatRegistry::global();
    const std::map<std::string, int64_t> stats = registry.export_all(reset_);
    const auto n = static_cast<int64_t>(stats.size());
    Tensor& keys = output(0, {n}, DataType::kString);
    Tensor& values = output(1, {n}, DataType::kInt64);
    Tensor& times = output(2, {n}, DataType::kInt64);
    auto* key = keys.mutable_data<std::string>();
    auto *value = values.mutable_data<int64_t>(), *time = times.mutable_data<int64_t>();
    for (const auto& [name, count] : stats) {
      *key++ = name;
      *value++ = count;
      *time++ = nanoseconds_now();
    }
  }

 private:
  const bool reset_;
};

// Inputs keys, values, registry?.
class StatRegistryUpdateOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto given = has_input(2) ? input_object<StatRegistry>(2) : nullptr;
    const Tensor &keys = input(0), &values = input(1);
    CAFFE2_ENFORCE(keys.size() == values.size(), describe_input(0), " has shape ",
                   keys.shape().text(), " but ", describe_input(1), " has ", values.shape().text(),
                   "; they must hold equally many values");
    StatRegistry& registry = given ? *given : StatRegistry::global();
    for (int64_t i = 0; i < keys.size(); i++) {
      registry.add(keys.data<std::string>()[i], values.data<int64_t>()[i]);
    }
  }
};

// Adds one number, times magnitude_expand, to statistics of the process.
class PutOperator : public Operator {
 public:
  explicit PutOperator(const OperatorContext& context)
      : Operator(context),
        name_((args().has("stat_name") ? args().text("stat_name") : def().name.value_or("")) +
              "/stat_value"),
        factor_(args().integer("magnitude_expand")),
        bound_(args().boolean("bound")),
        default_(args().has("default_value") ? args().real("default_value") : 0),
        has_default_(args().has("default_value")) {}

 protected:
  virtual void put(const std::string& name, int64_t value) = 0;

  void run() override {
    const Tensor& x = input(0);
    double value = 0;
    if (x.size() > 0) {
      dispatch<float, double, int32_t, int64_t, bool, uint8_t, int8_t, uint16_t, int16_t>(
          x.type(), [&](auto kind) { value = static_cast<double>(x.data<decltype(kind)>()[0]); });
    } else {
      CAFFE2_ENFORCE(has_default_, describe_input(0),
                     " is empty; argument 'default_value' is not given");
      value = default_;
    }
    CAFFE2_ENFORCE(!std::isnan(value), describe_input(0), " is not a number");
    value *= static_cast<double>(factor_);
    constexpr double kLimit = 9223372036854775808.0;  // 2^63
    const bool fits = value >= -kLimit && value < kLimit;
    CAFFE2_ENFORCE(fits || bound_, describe_input(0), " times ", factor_,
                   " does not fit in 64 bits; bound=1 takes the nearest number that does");
    put(name_, fits        ? static_cast<int64_t>(value)
               : value > 0 ? std::numeric_limits<int64_t>::max()
                           : std::numeric_limits<int64_t>::min());
  }

 private:
  const std::string name_;
  const int64_t factor_;
  const bool bound_;
  const float default_;
  const bool has_default_;
};

class IncrementPutOperator : public PutOperator {
 public:
  using PutOperator::PutOperator;

 protected:
  void put(const std::string& name, int64_t value) override {
    StatRegistry::global().add(name, value);
  }
};

class AveragePutOperator : public PutOperator {
 public:
  using PutOperator::PutOperator;

 protected:
  void put(const std::string& name, int64_t value) override {
    StatRegistry::global().add(name + "/sum", value);
    StatRegistry::global().add(name + "/count", 1);
  }
};

class StdDevPutOperator : public PutOperator {
 public:
  using PutOperator::PutOperator;

 protected:
  void put(const std::string& name, int64_t value) override {
    if (!begun_) first_ = value;
    begun_ = true;
    const int64_t offset = wrapping_sum(value, -first_);
    const auto square = static_cast<uint64_t>(offset) * static_cast<uint64_t>(offset);
    StatRegistry::global().add(name + "/sum", value);
    StatRegistry::global().add(name + "/count", 1);
    StatRegistry::global().add(name + "/sumoffset", offset);
    StatRegistry::global().add(name + "/sumsqoffset", static_cast<int64_t>(square));
  }

 private:
  bool begun_ = false;
  int64_t first_ = 0;
};

class Timer : public Object {
 public:
  explicit Timer(std::string name) : name(std::move(name)) {}
  const char* kind() const override { return "caffe2::TimerInstance*"; }

  const std::string name;
  ForkMutex mutex;
  bool running = true;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

class TimerBeginOperator : public Operator {
 public:
  explicit TimerBeginOperator(const OperatorContext& context)
      : Operator(context),
        name_(args().has("counter_name") ? args().text("counter_name") : def().output[0]) {}

 protected:
  void run() override { output_object(0, std::make_shared<Timer>(name_ + "/time_ns")); }

 private:
  const std::string name_;
};

class TimerOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  // Since the timer began; it must run still. Adds it to the statistics when it ends.
  int64_t elapsed(bool ends) const {
    const auto timer = input_object<Timer>(0);
    std::lock_guard lock(timer->mutex);
    CAFFE2_ENFORCE(timer->running, describe_input(0), " has been stopped");
    const int64_t nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::steady_clock::now() - timer->start)
                              .count();
    if (ends) {
      timer->running = false;
      StatRegistry::global().add(timer->name + "/sum", nanos);
      StatRegistry::global().add(timer->name + "/count", 1);
    }
    return nanos;
  }
};

class TimerEndOperator : public TimerOperator {
 public:
  using TimerOperator::TimerOperator;

 protected:
  void run() override { elapsed(true); }
};

class TimerGetOperator : public TimerOperator {
 public:
  using TimerOperator::TimerOperator;

 protected:
  void run() override {
    Tensor& y = output(0, {}, DataType::kInt64);
    *y.mutable_data<int64_t>() = elapsed(false);
  }
};

class TimerGetAndEndOperator : public TimerOperator {
 public:
  using TimerOperator::TimerOperator;

 protected:
  void run() override {
    Tensor& y = output(0, {1}, DataType::kInt64);
    *y.mutable_data<int64_t>() = elapsed(true);
  }
};

class WallClockTimeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    *output(0, {}, DataType::kInt64).mutable_data<int64_t>() = nanoseconds_now();
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(StatRegistryCreate, StatRegistryCreateOperator)
REGISTER_CPU_OPERATOR(StatRegistryExport, StatRegistryExportOperator)
REGISTER_CPU_OPERATOR(StatRegistryUpdate, StatRegistryUpdateOperator)
REGISTER_CPU_OPERATOR(IncrementPut, IncrementPutOperator)
REGISTER_CPU_OPERATOR(AveragePut, AveragePutOperator)
REGISTER_CPU_OPERATOR(StdDevPut, StdDevPutOperator)
REGISTER_CPU_OPERATOR(TimerBegin, TimerBeginOperator)
REGISTER_CPU_OPERATOR(TimerEnd, TimerEndOperator)
REGISTER_CPU_OPERATOR(TimerGet, TimerGetOperator)
REGISTER_CPU_OPERATOR(TimerGetAndEnd, TimerGetAndEndOperator)
REGISTER_CPU_OPERATOR(WallClockTime, WallClockTimeOperator)

}  // namespace caffe2
