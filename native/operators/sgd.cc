// Counting iterations and the momentum update.
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "core/registry.h"
#include "operators/sparse_rows.h"
#include "operators/stat_registry.h"

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
  // The value that comes after the counter `iter`.
  static int64_t next(const Tensor& iter, const Operand& what) {
    const bool narrow = iter.type() == DataType::kInt32;
    CAFFE2_ENFORCE(iter.size() == 1 && (narrow || iter.type() == DataType::kInt64), what,
                   " has shape ", iter.shape().text(), " and type ", type_name(iter.type()),
                   "; one int64 counter is needed");
    const int64_t now = narrow ? iter.data<int32_t>()[0] : iter.data<int64_t>()[0];
    CAFFE2_ENFORCE(now >= 0 && now < INT64_MAX, what, " is ", now, "; allowed are 0 to ",
                   INT64_MAX - 1);
    return now + 1;
  }

  void count(const Tensor& iter, const Operand& what) {
    const int64_t after = next(iter, what);
    output(0, iter.shape(), DataType::kInt64).mutable_data<int64_t>()[0] = after;
  }
};

// Without an input the counter is the output blob, which is made with 1 where there is none.
class IterOperator : public Counting {
 public:
  using Counting::Counting;

 protected:
  void run() override {
    if (has_input(0)) {
      count(input(0), describe_input(0));
    } else if (const BlobValue now = present_output(0); now.is_tensor()) {
      count(now.tensor, describe_output(0));
    } else {
      output(0, {1}, DataType::kInt64).mutable_data<int64_t>()[0] = 1;
    }
  }
};

class AtomicIterOperator : public Counting {
 public:
  using Counting::Counting;

 protected:
  void run() override {
    const auto mutex = input_object<Mutex>(0);
    std::lock_guard lock(mutex->mutex);
    // What the blob holds under the lock, changed where it lies: others count at the same time.
    Tensor shared = present_input(1).tensor;
    const int64_t after = next(shared, describe_input(1));
    *shared.mutable_data<int64_t>() = after;
    StatRegistry::global().add(statistic_, 1);
  }

 private:
  const std::string statistic_ = "atomic_iter/stats/" + def().input[1] + "/num_iter";
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
    require_same_size(describe_input(0), gradient, describe_input(1), buffer);
    const float lr = scalar_value(input(2), describe_input(2));
    const Tensor* parameter = has_input(3) ? &input(3) : nullptr;
    if (parameter) {
      require_same_size(describe_input(0), gradient, describe_input(3), *parameter);
    }
    Tensor& step = output(0, gradient.shape(), DataType::kFloat);
    Tensor& new_buffer = output(1, buffer.shape(), DataType::kFloat);
    Tensor* new_parameter = parameter ? &output(2, parameter->shape(), DataType::kFloat) : nullptr;
    new_buffer.copy_from(buffer);
    if (parameter) new_parameter->copy_from(*parameter);
    kernels().momentum_sgd(gradient.size(), lr, momentum_, nesterov_, gradient.data<float>(),
                           new_buffer.mutable_data<float>(), step.mutable_data<float>(),
                           parameter ? new_parameter->mutable_data<float>() : nullptr, parallel());
  }

 private:
  const float momentum_;
  const bool nesterov_;
};

class SparseMomentumSGDUpdateOperator : public SparseRowsOperator {
 public:
  explicit SparseMomentumSGDUpdateOperator(const OperatorContext& context)
      : SparseRowsOperator(context),
        momentum_(args().real("momentum")),
        nesterov_(args().boolean("nesterov")) {}

 protected:
  void run() override {
    const SparseRows rows = rows_at(3, 4, 0);
    require_same_shape(describe_input(1), input(1), describe_input(3), input(3));
    const float lr = scalar_value(input(2), describe_input(2));
    const float* gradient = input(0).data<float>();
    float* step = output(0, input(0).shape(), DataType::kFloat).mutable_data<float>();
    float *buffer = changed(1, 1), *parameter = changed(2, 3);
    for (int64_t r = 0; r < rows.count; r++) {
      const int64_t row = rows.index[r] * rows.width, place = r * rows.width;
      kernels().momentum_sgd(rows.width, lr, momentum_, nesterov_, gradient + place, buffer + row,
                             step + place, parameter + row, {});
    }
  }

 private:
  const float momentum_;
  const bool nesterov_;
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateMutex, CreateMutexOperator)
REGISTER_CPU_OPERATOR(Iter, IterOperator)
REGISTER_CPU_OPERATOR(AccumulateStats, IterOperator)
REGISTER_CPU_OPERATOR(AtomicIter, AtomicIterOperator)
REGISTER_CPU_OPERATOR(MomentumSGD, MomentumSGDOperator)
REGISTER_CPU_OPERATOR(MomentumSGDUpdate, MomentumSGDOperator)
REGISTER_CPU_OPERATOR(SparseMomentumSGDUpdate, SparseMomentumSGDUpdateOperator)

}  // namespace caffe2
