// Constant, given and random fills.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// The output's shape comes from `shape`, or from an input: its shape, or its values with
// input_as_shape; then extra_shape follows.
class FillBase : public Operator {
 public:
  explicit FillBase(const OperatorContext& context)
      : Operator(context),
        shape_(args().integers("shape")),
        extra_shape_(args().integers("extra_shape")),
        input_as_shape_(args().boolean("input_as_shape")) {
    const bool has_input = !context.def.input.empty();
    CAFFE2_ENFORCE(!has_input || shape_.empty(),
                   "it has an input and the argument 'shape'; only one of them can give the shape");
    CAFFE2_ENFORCE(has_input || extra_shape_.empty(), "'extra_shape' needs an input");
    CAFFE2_ENFORCE(has_input || !input_as_shape_, "'input_as_shape' needs an input");
  }

 protected:
  Shape shape() const {
    Shape shape;
    if (!has_input(0)) {
      for (const int64_t dim : shape_) shape.append(dim);
      return shape;
    }
    if (input_as_shape_) {
      const Tensor& given = input(0);
      CAFFE2_ENFORCE(given.rank() == 1, describe_input(0), " has shape ", given.shape().text(),
                     "; with input_as_shape a list of dimensions (1 dimension) is needed");
      const int64_t* dims = given.data<int64_t>();
      for (int64_t i = 0; i < given.size(); i++) shape.append(dims[i]);
    } else {
      shape = input(0).shape();
    }
    for (const int64_t dim : extra_shape_) shape.append(dim);
    return shape;
  }

 private:
  const std::vector<int64_t> shape_, extra_shape_;
  const bool input_as_shape_;
};

class ConstantFillOperator : public FillBase {
 public:
  explicit ConstantFillOperator(const OperatorContext& context)
      : FillBase(context), type_(static_cast<DataType>(args().integer("dtype"))) {}

 protected:
  void run() override {
    switch (type_) {
      case DataType::kFloat:
        return fill<float>();
      case DataType::kDouble:
        return fill<double>();
      case DataType::kBool:
        return fill<bool>();
      case DataType::kInt8:
        return fill<int8_t>();
      case DataType::kInt16:
        return fill<int16_t>();
      case DataType::kInt32:
        return fill<int32_t>();
      case DataType::kInt64:
        return fill<int64_t>();
      case DataType::kUInt8:
        return fill<uint8_t>();
      case DataType::kUInt16:
        return fill<uint16_t>();
      default:
        fail(Code::kUnsupported, "there is no fill of type ", type_name(type_));
    }
  }

 private:
  template <class T>
  void fill() {
    // Whole numbers keep all 64 bits: they come as the integer field of the argument.
    const T value = std::is_floating_point_v<T> ? static_cast<T>(args().real("value"))
                                                : static_cast<T>(args().integer("value"));
    Tensor& y = output(0, shape(), type_);
    std::fill_n(y.mutable_data<T>(), y.size(), value);
  }

  const DataType type_;
};

template <class T>
class GivenTensorFillOperator : public FillBase {
 public:
  using FillBase::FillBase;

 protected:
  void run() override {
    const Shape wanted = shape();
    const auto values = given();
    CAFFE2_ENFORCE(static_cast<int64_t>(values.size()) == wanted.size(), describe_output(0),
                   " has shape ", wanted.text(), ", ", wanted.size(), " values, but 'values' holds ",
                   values.size());
    Tensor& y = output(0, wanted, TypeOf<T>::value);
    std::copy(values.begin(), values.end(), y.mutable_data<T>());
  }

 private:
  auto given() const {
    if constexpr (std::is_floating_point_v<T>) {
      return args().reals("values");
    } else {
      return args().integers("values");
    }
  }
};

class RandomFill : public FillBase {
 public:
  using FillBase::FillBase;

 protected:
  kernels::RandomState next_state() {
    const RandomStream stream = next_random_stream();
    kernels::RandomState state;
    state.key = stream.seed;
    state.stream = static_cast<uint64_t>(stream.op) << 32 | stream.run;
    return state;
  }
  void uniform(float low, float high, const Shape& shape) {
    Tensor& y = output(0, shape, DataType::kFloat);
    kernels().uniform(next_state(), low, high, y.size(), y.mutable_data<float>(), parallel());
  }
  void normal(float mean, float std, const Shape& shape) {
    Tensor& y = output(0, shape, DataType::kFloat);
    kernels().normal(next_state(), mean, std, y.size(), y.mutable_data<float>(), parallel());
  }
};

class UniformFillOperator : public RandomFill {
 public:
  explicit UniformFillOperator(const OperatorContext& context)
      : RandomFill(context), low_(args().real("min")), high_(args().real("max")) {
    CAFFE2_ENFORCE(low_ <= high_, "'min' = ", low_, " is above 'max' = ", high_);
  }

 protected:
  void run() override { uniform(low_, high_, shape()); }

 private:
  const float low_, high_;
};

class UniformIntFillOperator : public RandomFill {
 public:
  explicit UniformIntFillOperator(const OperatorContext& context)
      : RandomFill(context), low_(args().int32("min")), high_(args().int32("max")) {
    CAFFE2_ENFORCE(low_ <= high_, "'min' = ", low_, " is above 'max' = ", high_);
  }

 protected:
  void run() override {
    Tensor& y = output(0, shape(), DataType::kInt32);
    kernels().uniform_int(next_state(), low_, high_, y.size(), y.mutable_data<int32_t>(),
                          parallel());
  }

 private:
  const int32_t low_, high_;
};

class GaussianFillOperator : public RandomFill {
 public:
  explicit GaussianFillOperator(const OperatorContext& context)
      : RandomFill(context), mean_(args().real("mean")), std_(args().real("std")) {
    CAFFE2_ENFORCE(std_ > 0, "'std' = ", std_, " is not positive");
  }

 protected:
  void run() override { normal(mean_, std_, shape()); }

 private:
  const float mean_, std_;
};

// Uniform in [-s, s], s = sqrt(3 / fan_in), fan_in = values per output (Glorot, Bengio 2010).
class XavierFillOperator : public RandomFill {
 public:
  using RandomFill::RandomFill;

 protected:
  void run() override {
    const Shape wanted = shape();
    CAFFE2_ENFORCE(wanted.rank() >= 1, describe_output(0), " has no dimension of outputs");
    const int64_t fan_in = wanted.product(1, wanted.rank());
    const float s = std::sqrt(3.0f / static_cast<float>(std::max<int64_t>(1, fan_in)));
    uniform(-s, s, wanted);
  }
};

// Normal with standard deviation sqrt(2 / fan_out), fan_out = size / dimension 1 (He et al. 2015).
class MSRAFillOperator : public RandomFill {
 public:
  using RandomFill::RandomFill;

 protected:
  void run() override {
    const Shape wanted = shape();
    CAFFE2_ENFORCE(wanted.rank() >= 2, describe_output(0), " has shape ", wanted.text(),
                   "; at least 2 dimensions are needed");
    const int64_t fan_out = wanted[1] > 0 ? wanted.size() / wanted[1] : 0;
    normal(0, std::sqrt(2.0f / static_cast<float>(std::max<int64_t>(1, fan_out))), wanted);
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(ConstantFill, ConstantFillOperator)
REGISTER_CPU_OPERATOR(GivenTensorFill, GivenTensorFillOperator<float>)
REGISTER_CPU_OPERATOR(GivenTensorDoubleFill, GivenTensorFillOperator<double>)
REGISTER_CPU_OPERATOR(GivenTensorIntFill, GivenTensorFillOperator<int32_t>)
REGISTER_CPU_OPERATOR(GivenTensorInt64Fill, GivenTensorFillOperator<int64_t>)
REGISTER_CPU_OPERATOR(GivenTensorBoolFill, GivenTensorFillOperator<bool>)
REGISTER_CPU_OPERATOR(UniformFill, UniformFillOperator)
REGISTER_CPU_OPERATOR(UniformIntFill, UniformIntFillOperator)
REGISTER_CPU_OPERATOR(GaussianFill, GaussianFillOperator)
REGISTER_CPU_OPERATOR(XavierFill, XavierFillOperator)
REGISTER_CPU_OPERATOR(MSRAFill, MSRAFillOperator)

}  // namespace caffe2
