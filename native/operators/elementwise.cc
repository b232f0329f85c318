// Functions of two tensors with broadcasting, and the gradients of Add, Sub, Mul and Div.
#include <algorithm>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/broadcast.h"
#include "operators/dispatch.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

using kernels::Binary;

class BroadcastingOperator : public Operator {
 public:
  explicit BroadcastingOperator(const OperatorContext& context)
      : Operator(context), rule_(args()) {}

 protected:
  Broadcasting broadcasting(int a, int b) const {
    return rule_.apply(input(a).shape(), input(b).shape(), describe_input(a), describe_input(b));
  }

  void require_types() const {
    for (int i = 1; i < inputs(); i++) {
      require_same_type(describe_input(0), input(0), describe_input(i), input(i));
    }
  }

  // An output can overwrite an input of its own shape only.
  void require_fit(int output, const Shape& shape) const {
    for (int i = 0; i < inputs(); i++) {
      CAFFE2_ENFORCE(def().input[i] != def().output[output] || input(i).shape() == shape,
                     describe_output(output), " has shape ", shape.text(),
                     " and cannot overwrite its input of ", input(i).shape().text());
    }
  }

  void require_divisors(int i) const {
    const Tensor& tensor = input(i);
    if (tensor.type() != DataType::kInt32 && tensor.type() != DataType::kInt64) return;
    dispatch<int32_t, int64_t>(tensor.type(), [&](auto zero) {
      const auto* values = tensor.data<decltype(zero)>();
      CAFFE2_ENFORCE(std::find(values, values + tensor.size(), zero) == values + tensor.size(),
                     describe_input(i), " holds a 0, by which integers cannot be divided");
    });
  }

  void compute(Binary f, const kernels::Broadcast& loops, DataType type, const void* a,
               const void* b, void* y) const {
    kernels().binary(f, *kernel_type(type), loops, a, b, y, parallel());
  }

 private:
  const BroadcastRule rule_;
};

// Swapped: f(B, A), for GT and GE.
template <Binary f, bool compares = false, bool swapped = false>
class BinaryOperator : public BroadcastingOperator {
 public:
  using BroadcastingOperator::BroadcastingOperator;

 protected:
  void run() override {
    const Tensor &a = input(0), &b = input(1);
    require_types();
    const Broadcasting shapes = broadcasting(0, 1);
    if (f == Binary::kDiv) require_divisors(1);
    require_fit(0, shapes.result);
    kernels::Broadcast loops = shapes.loops();
    if (swapped) std::swap(loops.a, loops.b);
    Tensor& c = output(0, shapes.result, compares ? DataType::kBool : a.type());
    compute(f, loops, a.type(), (swapped ? b : a).raw_data(), (swapped ? a : b).raw_data(),
            c.raw_mutable_data());
  }
};

class NotOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const bool yes = true;
    Tensor& y = output(0, x.shape(), DataType::kBool);
    kernels().binary(Binary::kXor, kernels::Type::kBool, repeated_over(x.size()), &yes,
                     x.raw_data(), y.raw_mutable_data(), parallel());
  }
};

// Inputs dC, A, B and for Div perhaps C; outputs dA, dB: the gradients of A and B for the shape of
// C, summed over what was broadcast.
class BinaryGradientOperator : public BroadcastingOperator {
 public:
  using BroadcastingOperator::BroadcastingOperator;

 protected:
  // The numbers of dC, A and B.
  virtual int dc() const { return 0; }
  int a() const { return 1; }
  virtual int b() const { return 2; }
  virtual void check() const {}
  // The gradient of A (0) or B (1) before it is summed; dC itself, or what is computed in `room`.
  virtual const void* term(int operand, const Broadcasting& shapes, void* room) const = 0;
  virtual bool needs_room(int operand) const = 0;
  virtual bool negative(int) const { return false; }

  void run() override {
    const Tensor& gradient_c = input(dc());
    const DataType type = gradient_c.type();
    require_types();
    const Broadcasting shapes = broadcasting(a(), b());
    CAFFE2_ENFORCE(gradient_c.shape() == shapes.result, describe_input(dc()), " has shape ",
                   gradient_c.shape().text(), "; ", shapes.result.text(), " is needed");
    check();
    require_fit(0, input(a()).shape());
    require_fit(1, input(b()).shape());
    Tensor* gradients[] = {&output(0, input(a()).shape(), type),
                           &output(1, input(b()).shape(), type)};
    void *room[2], *sums[2];
    for (int k = 0; k < 2; k++) {
      const Shape& shape = k == 0 ? shapes.a : shapes.b;
      room[k] = needs_room(k) && !(shape == shapes.result) ? scratch(gradient_c.bytes()) : nullptr;
      sums[k] = scratch(sum_to_scratch(shapes.result, shape, type));
    }
    // What overwrites an input comes last.
    const bool first_last = def().output[0] == def().input[0];
    for (const int k : {first_last ? 1 : 0, first_last ? 0 : 1}) {
      Tensor& gradient = *gradients[k];
      void* y = gradient.raw_mutable_data();
      const void* x = term(k, shapes, room[k] != nullptr ? room[k] : y);
      sum_to(kernels(), parallel(), type, shapes.result, x, k == 0 ? shapes.a : shapes.b, y,
             sums[k]);
      if (!negative(k)) continue;
      dispatch<float, double, int32_t, int64_t>(type, [&](auto zero) {
        compute(Binary::kSub, repeated_over(gradient.size()), type, &zero, y, y);
      });
    }
  }
};

class AddGradientOperator : public BinaryGradientOperator {
 public:
  using BinaryGradientOperator::BinaryGradientOperator;

 protected:
  bool needs_room(int) const override { return false; }
  const void* term(int, const Broadcasting&, void*) const override { return input(0).raw_data(); }
};

class SubGradientOperator : public AddGradientOperator {
 public:
  using AddGradientOperator::AddGradientOperator;

 protected:
  bool negative(int operand) const override { return operand == 1; }
};

class MulGradientOperator : public BinaryGradientOperator {
 public:
  using BinaryGradientOperator::BinaryGradientOperator;

 protected:
  bool needs_room(int) const override { return true; }
  const void* term(int operand, const Broadcasting& shapes, void* room) const override {
    const bool first = operand == 0;
    const Broadcasting factors{shapes.result, shapes.result, first ? shapes.b : shapes.a};
    compute(Binary::kMul, factors.loops(), input(0).type(), input(0).raw_data(),
            input(first ? b() : a()).raw_data(), room);
    return room;
  }
};

// Inputs dC, A, B, C; or B, C, dC where A has the shape of C.
class DivGradientOperator : public BinaryGradientOperator {
 public:
  using BinaryGradientOperator::BinaryGradientOperator;

 protected:
  int dc() const override { return inputs() == 4 ? 0 : 2; }
  int b() const override { return inputs() == 4 ? 2 : 0; }
  int c() const { return inputs() == 4 ? 3 : 1; }

  void check() const override {
    CAFFE2_ENFORCE(input(c()).shape() == input(dc()).shape(), describe_input(c()), " has shape ",
                   input(c()).shape().text(), "; ", input(dc()).shape().text(), " is needed");
    require_divisors(b());
  }

  bool needs_room(int) const override { return true; }
  bool negative(int operand) const override { return operand == 1; }
  const void* term(int operand, const Broadcasting& shapes, void* room) const override {
    const DataType type = input(0).type();
    const void* x = input(dc()).raw_data();
    if (operand == 1) {
      const Broadcasting same{shapes.result, shapes.result, shapes.result};
      compute(Binary::kMul, same.loops(), type, x, input(c()).raw_data(), room);
      x = room;
    }
    const Broadcasting quotient{shapes.result, shapes.result, shapes.b};
    compute(Binary::kDiv, quotient.loops(), type, x, input(b()).raw_data(), room);
    return room;
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Add, BinaryOperator<Binary::kAdd>)
REGISTER_CPU_OPERATOR(Sub, BinaryOperator<Binary::kSub>)
REGISTER_CPU_OPERATOR(Mul, BinaryOperator<Binary::kMul>)
REGISTER_CPU_OPERATOR(Div, BinaryOperator<Binary::kDiv>)
REGISTER_CPU_OPERATOR(AddGradient, AddGradientOperator)
REGISTER_CPU_OPERATOR(SubGradient, SubGradientOperator)
REGISTER_CPU_OPERATOR(MulGradient, MulGradientOperator)
REGISTER_CPU_OPERATOR(DivGradient, DivGradientOperator)
REGISTER_CPU_OPERATOR(EQ, BinaryOperator<Binary::kEqual, true>)
REGISTER_CPU_OPERATOR(NE, BinaryOperator<Binary::kNotEqual, true>)
REGISTER_CPU_OPERATOR(LT, BinaryOperator<Binary::kLess, true>)
REGISTER_CPU_OPERATOR(LE, BinaryOperator<Binary::kLessEqual, true>)
REGISTER_CPU_OPERATOR(GT, BinaryOperator<Binary::kLess, true, true>)
REGISTER_CPU_OPERATOR(GE, BinaryOperator<Binary::kLessEqual, true, true>)
REGISTER_CPU_OPERATOR(And, BinaryOperator<Binary::kAnd>)
REGISTER_CPU_OPERATOR(Or, BinaryOperator<Binary::kOr>)
REGISTER_CPU_OPERATOR(Xor, BinaryOperator<Binary::kXor>)
REGISTER_CPU_OPERATOR(Not, NotOperator)
REGISTER_CPU_OPERATOR(BitwiseAnd, BinaryOperator<Binary::kAnd>)
REGISTER_CPU_OPERATOR(BitwiseOr, BinaryOperator<Binary::kOr>)
REGISTER_CPU_OPERATOR(BitwiseXor, BinaryOperator<Binary::kXor>)

}  // namespace caffe2
