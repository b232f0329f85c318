// Operators on Int8 tensors that go element by element, make them, or read them.
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/int8.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// With the engine DNNLOWP, which `Quantize` always has, the zero point is added before values are
// rounded, and scale and zero point are those of the values where none are given.
template <bool server>
class Int8QuantizeOperator : public Int8Operator {
 public:
  using Int8Operator::Int8Operator;
  bool only_reads(int i) const override { return i == 0; }

 protected:
  void run() override {
    const Tensor& x = input(0);
    const bool dnnlowp = server || def().engine.value_or("").starts_with("DNNLOWP");
    Quantization to{scale_, zero_};
    if (dnnlowp && !args().has("Y_scale")) {
      to = quantization_of(x.data<float>(), x.size());
      CAFFE2_ENFORCE(std::isfinite(to.scale), describe_input(0),
                     " holds values from which no scale ", "follows; all must be finite");
    }
    Tensor y = bytes(x.shape());
    int8_kernels().quantize(1 / to.scale, dnnlowp ? static_cast<float>(to.zero_point) : 0,
                            dnnlowp ? 0 : to.zero_point, x.size(), x.data<float>(),
                            y.mutable_data<uint8_t>(), parallel());
    output_object(0, std::make_shared<Int8Tensor>(std::move(y), to.scale, to.zero_point));
  }
};

class Int8DequantizeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto x = input_object<Int8Tensor>(0);
    const Tensor& in = x->values;
    float* out = output(0, in.shape(), DataType::kFloat).mutable_data<float>();
    if (in.type() == DataType::kUInt8) {
      kernels::int8_table(engine().isa())
          ->dequantize(x->scale, x->zero_point, in.size(), in.data<uint8_t>(), out, parallel());
      return;
    }
    const int32_t* values = in.data<int32_t>();
    for (int64_t i = 0; i < in.size(); i++) {
      out[i] = static_cast<float>(int64_t{values[i]} - x->zero_point) * x->scale;
    }
  }
};

template <bool relu>
class Int8SumOperator : public Int8Operator {
 public:
  using Int8Operator::Int8Operator;

 protected:
  void run() override {
    const auto first = quantized(0);
    std::vector<const uint8_t*> in;
    std::vector<float> ratios;
    for (int i = 0; i < inputs(); i++) {
      const auto x = quantized(i);
      require_same_shape(describe_input(i), x->values, describe_input(0), first->values);
      in.push_back(x->values.template data<uint8_t>());
      ratios.push_back(std::min(x->scale / scale_, kLargest));
    }
    // The ratios in fixed point, the largest with 22 bits, as nets were made for.
    int exponent = 0;
    std::frexp(*std::max_element(ratios.begin(), ratios.end()), &exponent);
    const int shift = std::clamp(22 - exponent, 0, 62);
    std::vector<int32_t> multipliers;
    kernels::Int8Sum sum;
    for (int i = 0; i < inputs(); i++) {
      multipliers.push_back(static_cast<int32_t>(std::llrint(std::ldexp(ratios[i], shift))));
      sum.offset -= int64_t{multipliers.back()} * quantized(i)->zero_point;
    }
    sum.count = inputs();
    sum.multipliers = multipliers.data();
    sum.shift = shift;
    sum.zero_point = zero_;
    sum.low = relu ? zero_ : 0;
    Tensor y = bytes(first->values.shape());
    int8_kernels().sum(sum, y.size(), in.data(), y.template mutable_data<uint8_t>(), parallel());
    give(std::move(y));
  }

 private:
  static constexpr float kLargest = 1 << 30;  // all but 0 becomes 0 or 255
};

class Int8ReluOperator : public Int8Operator {
 public:
  using Int8Operator::Int8Operator;

 protected:
  void run() override {
    const auto x = quantized(0);
    if (x->zero_point == 0) return give_like(*x, x->values);  // no value is below
    Tensor y = bytes(x->values.shape());
    const auto* in = x->values.data<uint8_t>();
    auto* out = y.mutable_data<uint8_t>();
    const auto zero = static_cast<uint8_t>(x->zero_point);
    for_ranges(parallel(), y.size(), kElementsPerRange, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) out[i] = std::max(in[i], zero);
    });
    give_like(*x, std::move(y));
  }
};

// y = f(x) by a table of all 256 values.
class Int8MapOperator : public Int8Operator {
 public:
  using Int8Operator::Int8Operator;

 protected:
  virtual float map(float x) const = 0;

  void run() override {
    const auto x = quantized(0);
    uint8_t table[256];
    for (int value = 0; value < 256; value++) {
      table[value] =
          quantum(map(static_cast<float>(value - x->zero_point) * x->scale) / scale_, zero_);
    }
    Tensor y = bytes(x->values.shape());
    const auto* in = x->values.data<uint8_t>();
    auto* out = y.mutable_data<uint8_t>();
    for_ranges(parallel(), y.size(), kElementsPerRange, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) out[i] = table[in[i]];
    });
    give(std::move(y));
  }
};

class Int8LeakyReluOperator : public Int8MapOperator {
 public:
  explicit Int8LeakyReluOperator(const OperatorContext& context)
      : Int8MapOperator(context), alpha_(args().real("alpha")) {}

 protected:
  float map(float x) const override { return x > 0 ? x : x * alpha_; }

 private:
  const float alpha_;
};

class Int8SigmoidOperator : public Int8MapOperator {
 public:
  using Int8MapOperator::Int8MapOperator;

 protected:
  float map(float x) const override { return 1 / (1 + std::exp(-x)); }
};

class Int8SoftmaxOperator : public Int8Operator {
 public:
  explicit Int8SoftmaxOperator(const OperatorContext& context)
      : Int8Operator(context), axis_(args().int32("axis")) {}

 protected:
  void run() override {
    const auto x = quantized(0);
    const Shape& shape = x->values.shape();
    const int axis = canonical_axis(axis_, shape.rank(), describe_input(0));
    const int64_t rows = shape.product(0, axis), n = shape.product(axis, shape.rank());
    // exp of how far a value lies below the largest one.
    float falls[256];
    for (int i = 0; i < 256; i++) falls[i] = std::exp(static_cast<float>(-i) * x->scale);
    Tensor y = bytes(shape);
    const auto* in = x->values.data<uint8_t>();
    auto* out = y.mutable_data<uint8_t>();
    for_ranges(parallel(), n > 0 ? rows : 0, rows_per_range(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) write(falls, n, in + r * n, out + r * n);
    });
    give(std::move(y));
  }

 private:
  void write(const float* falls, int64_t n, const uint8_t* in, uint8_t* out) const {
    uint8_t most = 0;
    for (int64_t i = 0; i < n; i++) most = std::max(most, in[i]);
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += falls[most - in[i]];
    for (int64_t i = 0; i < n; i++) out[i] = quantum(falls[most - in[i]] / sum / scale_, zero_);
  }

  const int axis_;
};

// Int8GivenTensorFill (bytes) and Int8GivenIntTensorFill (int32, for biases).
template <class T>
class Int8FillOperator : public Int8Operator {
 public:
  explicit Int8FillOperator(const OperatorContext& context) : Int8Operator(context) {
    for (const int64_t dim : args().integers("shape")) shape_.append(dim);
  }

 protected:
  void run() override {
    Tensor y(engine().allocator(), shape_, TypeOf<T>::value);
    if constexpr (sizeof(T) == 1) {
      fill(args().text("values"), y);
    } else {
      fill(args().integers("values"), y);
    }
    give(std::move(y));
  }

 private:
  template <class Values>
  void fill(const Values& values, Tensor& y) const {
    CAFFE2_ENFORCE(static_cast<int64_t>(values.size()) == y.size(), describe_output(0),
                   " has shape ", shape_.text(), ", but argument 'values' holds ", values.size(),
                   " values");
    T* out = y.mutable_data<T>();
    for (const auto value : values) *out++ = static_cast<T>(value);
  }

  Shape shape_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Int8Quantize, Int8QuantizeOperator<false>)
REGISTER_CPU_OPERATOR(Quantize, Int8QuantizeOperator<true>)
REGISTER_CPU_OPERATOR(Int8Dequantize, Int8DequantizeOperator)
REGISTER_CPU_OPERATOR(Dequantize, Int8DequantizeOperator)
REGISTER_CPU_OPERATOR(Int8Add, Int8SumOperator<false>)
REGISTER_CPU_OPERATOR(Int8AddRelu, Int8SumOperator<true>)
REGISTER_CPU_OPERATOR(Int8Sum, Int8SumOperator<false>)
REGISTER_CPU_OPERATOR(Int8SumRelu, Int8SumOperator<true>)
REGISTER_CPU_OPERATOR(Int8Relu, Int8ReluOperator)
REGISTER_CPU_OPERATOR(Int8LeakyRelu, Int8LeakyReluOperator)
REGISTER_CPU_OPERATOR(Int8Sigmoid, Int8SigmoidOperator)
REGISTER_CPU_OPERATOR(Int8Softmax, Int8SoftmaxOperator)
REGISTER_CPU_OPERATOR(Int8GivenTensorFill, Int8FillOperator<uint8_t>)
REGISTER_CPU_OPERATOR(Int8GivenIntTensorFill, Int8FillOperator<int32_t>)

}  // namespace caffe2
