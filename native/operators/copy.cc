// Other names for a tensor, what is known of it, and halves.
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/half.h"
#include "operators/view.h"

namespace caffe2 {
namespace {

// The output is the tensor itself. Whoever writes one of the two blobs gets memory of its own.
class AliasOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    input(0);  // refuses what is no tensor
    output_value(0, input_value(0));
  }
};

class ShapeOperator : public Operator {
 public:
  explicit ShapeOperator(const OperatorContext& context)
      : Operator(context), axes_(args().integers("axes")) {}

 protected:
  void run() override {
    const Shape& shape = input(0).shape();
    for (const int64_t axis : axes_) {
      CAFFE2_ENFORCE(axis < shape.rank(), "argument 'axes' names dimension ", axis, ", but ",
                     describe_input(0), " has shape ", shape.text());
    }
    const auto count = axes_.empty() ? shape.rank() : static_cast<int64_t>(axes_.size());
    int64_t* dims = output(0, {count}, DataType::kInt64).mutable_data<int64_t>();
    for (int64_t i = 0; i < count; i++) {
      dims[i] = shape[static_cast<int>(axes_.empty() ? i : axes_[i])];
    }
  }

 private:
  const std::vector<int64_t> axes_;
};

class SizeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const int64_t size = input(0).size();
    output(0, {}, DataType::kInt64).mutable_data<int64_t>()[0] = size;
  }
};

class FloatToHalfOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat16);
    const float* in = x.data<float>();
    uint16_t* out = mutable_elements<uint16_t>(y);
    for_ranges(parallel(), x.size(), kBlockElements, [&](int64_t i, int64_t end) {
      for (; i < end; i++) out[i] = float_to_half(in[i]);
    });
  }
};

class HalfToFloatOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const uint16_t* in = elements<uint16_t>(x);
    float* out = y.mutable_data<float>();
    for_ranges(parallel(), x.size(), kBlockElements, [&](int64_t i, int64_t end) {
      for (; i < end; i++) out[i] = half_to_float(in[i]);
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Alias, AliasOperator)
REGISTER_CPU_OPERATOR(AliasWithName, AliasOperator)
REGISTER_CPU_OPERATOR(EnsureDense, AliasOperator)
REGISTER_CPU_OPERATOR(EnsureCPUOutput, AliasOperator)
REGISTER_CPU_OPERATOR(CopyFromCPUInput, AliasOperator)
REGISTER_CPU_OPERATOR(CopyCPUToGPU, AliasOperator)
REGISTER_CPU_OPERATOR(CopyGPUToCPU, AliasOperator)
REGISTER_CPU_OPERATOR(Shape, ShapeOperator)
REGISTER_CPU_OPERATOR(Size, SizeOperator)
REGISTER_CPU_OPERATOR(FloatToHalf, FloatToHalfOperator)
REGISTER_CPU_OPERATOR(HalfToFloat, HalfToFloatOperator)

}  // namespace caffe2
