// Blobs that share memory, barriers and errors.
#include <cstring>
#include <memory>
#include <utility>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class UnsafeCoalesceOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const int n = inputs();
    CAFFE2_ENFORCE(outputs() == n + 1, "it has ", outputs(), " outputs for ", n,
                   " inputs; one more is needed, for all values");
    const DataType type = input(0).type();
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
      require_same_type(describe_input(0), input(0), describe_input(i), input(i));
      CAFFE2_ENFORCE(!__builtin_add_overflow(total, input(i).size(), &total),
                     "the inputs have too many values");
    }
    const Tensor whole(engine().allocator(), {total}, type);
    auto* to = static_cast<char*>(whole.storage()->data());
    size_t offset = 0;
    for (int i = 0; i < n; i++) {
      const Tensor& x = input(i);
      if (x.bytes() > 0) std::memcpy(to + offset, x.raw_data(), x.bytes());
      auto part = part_of(whole.storage(), offset, x.bytes());
      offset += x.bytes();
      output_value(i, BlobValue{Tensor(std::move(part), x.shape(), type), nullptr});
    }
    // A part as well: each has one holder, so that operators write where it lies.
    auto all = part_of(whole.storage(), 0, offset);
    output_value(n, BlobValue{Tensor(std::move(all), whole.shape(), type), nullptr});
  }

 private:
  static std::shared_ptr<Storage> part_of(const std::shared_ptr<Storage>& whole, size_t offset,
                                          size_t bytes) {
    auto part = std::make_shared<Storage>(whole, offset, bytes);
    part->set_shared();
    return part;
  }
};

class AsyncNetBarrierOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    CAFFE2_ENFORCE(outputs() == inputs(), "it has ", outputs(), " outputs for ", inputs(),
                   " inputs");
    for (int i = 0; i < inputs(); i++) {
      if (input_blobs()[i] == output_blobs()[i]) {
        output_value(i, input_value(i));
      } else {
        output(i, input(i).shape(), input(i).type()).copy_from(input(i));
      }
    }
  }
};

class ThrowExceptionOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { fail(Code::kInternal, "ThrowException op throws an exception"); }
};

}  // namespace

REGISTER_CPU_OPERATOR(UnsafeCoalesce, UnsafeCoalesceOperator)
REGISTER_CPU_OPERATOR(AsyncNetBarrier, AsyncNetBarrierOperator)
REGISTER_CPU_OPERATOR(DataCouple, AsyncNetBarrierOperator)
REGISTER_CPU_OPERATOR(ThrowException, ThrowExceptionOperator)

}  // namespace caffe2
