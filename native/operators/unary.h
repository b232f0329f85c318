// Operators that are a function of each element, and their gradients.
#pragma once
#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/operator.h"
#include "operators/dispatch.h"
#include "operators/shapes.h"

namespace caffe2 {

// Calls body(begin, end) for blocks of [0, n), on the threads of `parallel`; `cost` is about how
// many elements there are to each of the n.
template <class Body>
void for_ranges(const kernels::Parallel& parallel, int64_t n, int64_t cost, const Body& body) {
  struct Context {
    const Body& body;
    int64_t n, step;
  } context{body, n, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, cost))};
  const auto task = [](void* pointer, int block) {
    const auto& c = *static_cast<const Context*>(pointer);
    c.body(block * c.step, std::min(c.n, (block + 1) * c.step));
  };
  const int64_t blocks = (n + context.step - 1) / context.step;
  if (parallel.run != nullptr && blocks > 1 && blocks <= std::numeric_limits<int>::max()) {
    parallel.run(parallel.pool, static_cast<int>(blocks), task, &context);
  } else if (n > 0) {
    body(0, n);
  }
}

// y[i] = f(x[i], ...)
template <class F, class R, class... Ts>
void map(const kernels::Parallel& parallel, int64_t n, const F& f, R* y, const Ts*... x) {
  for_ranges(parallel, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) y[i] = static_cast<R>(f(x[i]...));
  });
}

// Integers are computed with as unsigned ones, so that they wrap around.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

// Y = f(X) for elements of the types Ts.
template <auto f, class... Ts>
class MapOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    dispatch<Ts...>(x.type(), [&](auto zero) {
      using T = decltype(zero);
      Tensor& y = output(0, x.shape(), x.type());
      map(parallel(), x.size(), f, y.template mutable_data<T>(), x.template data<T>());
    });
  }
};

// dX = f(v, dY); v, which is X or Y, and dY are the inputs of these numbers.
template <auto f, int v, int dy, class... Ts>
class MapGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void require_alike() const {
    for (int i = 1; i < inputs(); i++) {
      require_same_size(describe_input(0), input(0), describe_input(i), input(i));
      require_same_type(describe_input(0), input(0), describe_input(i), input(i));
    }
  }

  void run() override {
    require_alike();
    const Tensor &from = input(v), &gradient = input(dy);
    dispatch<Ts...>(from.type(), [&](auto zero) {
      using T = decltype(zero);
      Tensor& dx = output(0, from.shape(), from.type());
      map(parallel(), from.size(), f, dx.template mutable_data<T>(), from.template data<T>(),
          gradient.template data<T>());
    });
  }
};

// alpha and beta of a kernel.
struct Parameters {
  float alpha = 0, beta = 0;
};
inline Parameters no_parameters(const Arguments&) { return {}; }

// The same by a kernel, for floats.
template <kernels::Unary f, Parameters (*parameters)(const Arguments&) = no_parameters>
class UnaryOperator : public Operator {
 public:
  explicit UnaryOperator(const OperatorContext& context)
      : Operator(context), parameters_(parameters(args())) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    kernels().unary(f, parameters_.alpha, parameters_.beta, x.size(), x.data<float>(),
                    y.mutable_data<float>(), parallel());
  }

 private:
  const Parameters parameters_;
};

template <kernels::Unary f, int v, int dy,
          Parameters (*parameters)(const Arguments&) = no_parameters>
class UnaryGradientOperator : public Operator {
 public:
  explicit UnaryGradientOperator(const OperatorContext& context)
      : Operator(context), parameters_(parameters(args())) {}

 protected:
  void run() override {
    const Tensor& from = input(v);
    for (int i = 1; i < inputs(); i++) {
      require_same_size(describe_input(0), input(0), describe_input(i), input(i));
    }
    const Tensor& gradient = input(dy);
    Tensor& dx = output(0, from.shape(), DataType::kFloat);
    kernels().unary_gradient(f, parameters_.alpha, parameters_.beta, from.size(),
                             from.data<float>(), gradient.data<float>(), dx.mutable_data<float>(),
                             parallel());
  }

 private:
  const Parameters parameters_;
};

}  // namespace caffe2
