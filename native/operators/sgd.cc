// Counting iterations and the momentum update.
#include <cstring>
#include <memory>
#include <mutex>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class CreateMutexOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { output_object(0, std::make_shared<Mutex>()); }
};

class Counting : public Operator {
 public:
  using Operator::Operator;

 protected:
  // Adds one to the int64 value of input i, which is also output 0; starts at 0 without an input.
  void count(int i) {
    if (!has_input(i)) {
      output(0, {1}, DataType::kInt64).mutable_data<int64_t>()[0] = 0;
      return;
    }
    const Tensor& iter = input(i);
    CAFFE2_ENFORCE(iter.size() == 1, describe_input(i), " has shape ", iter.shape().text(),
                   "; one counter is needed");
    const int64_t next = iter.data<int64_t>()[0] + 1;
    output(0, iter.shape(), DataType::kInt64).mutable_data<int64_t>()[0] = next;
  }
};

class IterOperator : public Counting {
 public:
  using Counting::Counting;

 protected:
  void run() override { count(0); }
};

class AtomicIterOperator : public Counting {
 public:
  using Counting::Counting;

 protected:
  void run() override {
    const auto mutex = input_object<Mutex>(0);
    std::lock_guard lock(mutex->mutex);
    count(1);
  }
};

// Gradient, momentum buffer and learning rate; with a fourth input the parameter is updated too.
class MomentumSGDOperator : public Operator {
 public:
  explicit MomentumSGDOperator(const OperatorContext& context)
      : Operator(context),
        momentum_(args().real("momentum")),
        nesterov_(args().boolean("nesterov")) {}

 protected:
  void run() override {
    const Tensor &gradient = input(0), &buffer = input(1);
    require_same_shape(describe_input(0), gradient, describe_input(1), buffer);
    const float lr = scalar_value(input(2), describe_input(2));
    const Tensor* parameter = has_input(3) ? &input(3) : nullptr;
    if (parameter) {
      require_same_shape(describe_input(0), gradient, describe_input(3), *parameter);
    }
    Tensor& step = output(0, gradient.shape(), DataType::kFloat);
    Tensor& new_buffer = output(1, buffer.shape(), DataType::kFloat);
    Tensor* new_parameter =
        parameter ? &output(2, parameter->shape(), DataType::kFloat) : nullptr;
    const size_t bytes = buffer.bytes();
    const auto bring = [bytes](const Tensor& from, Tensor& to) {
      float* data = to.mutable_data<float>();
      if (bytes > 0 && from.raw_data() != data) std::memcpy(data, from.raw_data(), bytes);
      return data;
    };
    float* buffer_data = bring(buffer, new_buffer);
    float* parameter_data = parameter ? bring(*parameter, *new_parameter) : nullptr;
    kernels().momentum_sgd(gradient.size(), lr, momentum_, nesterov_, gradient.data<float>(),
                           buffer_data, step.mutable_data<float>(), parameter_data, parallel());
  }

 private:
  const float momentum_;
  const bool nesterov_;
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateMutex, CreateMutexOperator)
REGISTER_CPU_OPERATOR(Iter, IterOperator)
REGISTER_CPU_OPERATOR(AtomicIter, AtomicIterOperator)
REGISTER_CPU_OPERATOR(MomentumSGD, MomentumSGDOperator)
REGISTER_CPU_OPERATOR(MomentumSGDUpdate, MomentumSGDOperator)

}  // namespace caffe2
