// Operators on Int8 tensors that go element by element, make them, or read them.
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/int8.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class Int8QuantizeOperator : public Int8Operator {
 public:
  using Int8Operator::Int8Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor y = bytes(x.shape());
    const float* in = x.data<float>();
    auto* out = y.mutable_data<uint8_t>();
    const float inverse = 1 / scale_;
    for_ranges(parallel(), x.size(), kElementsPerRange, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) out[i] = quantum(in[i] * inverse, zero_);
    });
    give(std::move(y));
  }
};

class Int8DequantizeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto x = input_object<Int8Tensor>(0);
    if (x->values.type() == DataType::kInt32) return write<int32_t>(*x);
    write<uint8_t>(*x);
  }

 private:
  template <class T>
  void write(const Int8Tensor& x) {
    const T* in = x.values.data<T>();
    float* out = output(0, x.values.shape(), DataType::kFloat).mutable_data<float>();
    for_ranges(parallel(), x.values.size(), kElementsPerRange, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        out[i] = static_cast<float>(static_cast<int64_t>(in[i]) - x.zero_point) * x.scale;
      }
    });
  }
};

template <bool relu>
class Int8SumOperator : public Int8Operator {
 public:
  using Int8Operator::Int8Operator;

 protected:
  void run() override {
    const auto first = quantized(0);
    const int64_t n = first->values.size();
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
    std::vector<int64_t> multipliers;
    int64_t offset = 0;
    for (int i = 0; i < inputs(); i++) {
      multipliers.push_back(std::llrint(std::ldexp(ratios[i], shift)));
      offset -= multipliers.back() * quantized(i)->zero_point;
    }
    Tensor y = bytes(first->values.shape());
    auto* out = y.mutable_data<uint8_t>();
    for_ranges(parallel(), n, kElementsPerRange, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int64_t sum = offset;
        for (size_t k = 0; k < in.size(); k++) sum += in[k][i] * multipliers[k];
        out[i] = saturate(shift_right(sum, shift) + zero_, relu ? zero_ : 0);
      }
    });
    give(std::move(y));
  }

 private:
  static constexpr float kLargest = 1 << 30;  // all but 0 becomes 0 or 255
};

// y = f(x) by a table of all 256 values.
class Int8MapOperator : public Int8Operator {
 public:
  using Int8Operator::Int8Operator;

 protected:
  virtual uint8_t map(const Int8Tensor& x, int value) const = 0;
  virtual bool keeps() const { return false; }  // the scale and zero point of x

  void run() override {
    const auto x = quantized(0);
    uint8_t table[256];
    for (int value = 0; value < 256; value++) table[value] = map(*x, value);
    Tensor y = bytes(x->values.shape());
    const auto* in = x->values.data<uint8_t>();
    auto* out = y.mutable_data<uint8_t>();
    for_ranges(parallel(), y.size(), kElementsPerRange, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) out[i] = table[in[i]];
    });
    keeps() ? give_like(*x, std::move(y)) : give(std::move(y));
  }
  static float real(const Int8Tensor& x, int value) {
    return static_cast<float>(value - x.zero_point) * x.scale;
  }
};

class Int8ReluOperator : public Int8MapOperator {
 public:
  using Int8MapOperator::Int8MapOperator;

 protected:
  uint8_t map(const Int8Tensor& x, int value) const override {
    return static_cast<uint8_t>(std::max(value, x.zero_point));
  }
  bool keeps() const override { return true; }
};

class Int8LeakyReluOperator : public Int8MapOperator {
 public:
  explicit Int8LeakyReluOperator(const OperatorContext& context)
      : Int8MapOperator(context), alpha_(args().real("alpha")) {}

 protected:
  uint8_t map(const Int8Tensor& x, int value) const override {
    const float y = real(x, value);
    return quantum((y > 0 ? y : y * alpha_) / scale_, zero_);
  }

 private:
  const float alpha_;
};

class Int8SigmoidOperator : public Int8MapOperator {
 public:
  using Int8MapOperator::Int8MapOperator;

 protected:
  uint8_t map(const Int8Tensor& x, int value) const override {
    return quantum(1 / (1 + std::exp(-real(x, value))) / scale_, zero_);
  }
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
    for (int64_t r = 0; r < rows && n > 0; r++, in += n, out += n) {
      const uint8_t most = *std::max_element(in, in + n);
      float sum = 0;
      for (int64_t i = 0; i < n; i++) sum += falls[most - in[i]];
      for (int64_t i = 0; i < n; i++) {
        out[i] = quantum(falls[most - in[i]] / sum / scale_, zero_);
      }
    }
    give(std::move(y));
  }

 private:
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

REGISTER_CPU_OPERATOR(Int8Quantize, Int8QuantizeOperator)
REGISTER_CPU_OPERATOR(Int8Dequantize, Int8DequantizeOperator)
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
