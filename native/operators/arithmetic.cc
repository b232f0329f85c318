// Sums, scaling, copies and casts.
#include <cctype>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/shapes.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

template <class T>
void add_all(const std::vector<const Tensor*>& tensors, bool relu, Tensor& y) {
  const int64_t n = y.size();
  std::vector<const T*> inputs;
  for (const Tensor* tensor : tensors) inputs.push_back(tensor->data<T>());
  T* out = y.mutable_data<T>();
  for (int64_t i = 0; i < n; i++) {
    auto wrapping = static_cast<Wrapping<T>>(inputs[0][i]);
    for (size_t k = 1; k < inputs.size(); k++) wrapping += static_cast<Wrapping<T>>(inputs[k][i]);
    const T sum = static_cast<T>(wrapping);
    out[i] = relu && sum < 0 ? 0 : sum;
  }
}

// C = relu?(A0 + A1 + ...)
template <bool relu>
class SumOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  bool takes_stored() const override { return true; }

  void run() override {
    const Layout layout = common_layout();
    const Tensor& first = input(0);
    std::vector<const Tensor*> tensors;
    for (int i = 0; i < inputs(); i++) {
      tensors.push_back(&input(i));
      require_same_shape(describe_input(0), first, describe_input(i), input(i));
      CAFFE2_ENFORCE(input(i).type() == first.type(), describe_input(i), " has type ",
                     type_name(input(i).type()), " but ", describe_input(0), " has ",
                     type_name(first.type()));
    }
    Tensor& y = output(0, first.shape(), first.type(), layout);
    switch (first.type()) {
      case DataType::kFloat: {
        std::vector<const float*> pointers;
        for (const Tensor* tensor : tensors) pointers.push_back(tensor->stored());
        kernels().weighted_sum(y.stored_size(), inputs(), pointers.data(), nullptr,
                               y.mutable_stored(), parallel());
        if (relu) {
          kernels().relu(y.stored_size(), y.stored(), y.mutable_stored(), parallel());
        }
        return;
      }
      case DataType::kDouble:
        return add_all<double>(tensors, relu, y);
      case DataType::kInt32:
        return add_all<int32_t>(tensors, relu, y);
      case DataType::kInt64:
        return add_all<int64_t>(tensors, relu, y);
      default:
        fail(Code::kUnsupported, "sums of type ", type_name(first.type()), " have no kernel");
    }
  }
};

// Inputs X0, weight0, X1, weight1, ...
class WeightedSumOperator : public Operator {
 public:
  explicit WeightedSumOperator(const OperatorContext& context) : Operator(context) {
    CAFFE2_ENFORCE(context.def.input.size() % 2 == 0, "it has ", context.def.input.size(),
                   " inputs; tensors and weights come in pairs");
  }

 protected:
  void run() override {
    const Tensor& first = input(0);
    std::vector<const float*> tensors;
    std::vector<float> weights;
    for (int i = 0; i < inputs(); i += 2) {
      require_same_size(describe_input(0), first, describe_input(i), input(i));
      tensors.push_back(input(i).data<float>());
      weights.push_back(scalar_value(input(i + 1), describe_input(i + 1)));
    }
    Tensor& y = output(0, first.shape(), DataType::kFloat);
    kernels().weighted_sum(y.size(), static_cast<int>(tensors.size()), tensors.data(),
                           weights.data(), y.mutable_data<float>(), parallel());
  }
};

// Inputs dY, X0, weight0, X1, weight1, ...; outputs dX0, dX1, ... and, with grad_on_w, dweight0,
// ...
class WeightedSumGradientOperator : public Operator {
 public:
  explicit WeightedSumGradientOperator(const OperatorContext& context)
      : Operator(context), grad_on_w_(args().boolean("grad_on_w")) {
    const size_t tensors = (context.def.input.size() - 1) / 2;
    const size_t wanted = grad_on_w_ ? 2 * tensors : tensors;
    CAFFE2_ENFORCE(context.def.input.size() % 2 == 1, "it has ", context.def.input.size(),
                   " inputs; after dY, tensors and weights come in pairs");
    CAFFE2_ENFORCE(context.def.output.size() == wanted, "it has ", context.def.output.size(),
                   " outputs; ", wanted, " are needed");
  }

 protected:
  void run() override {
    const Tensor& dy = input(0);
    const int tensors = (inputs() - 1) / 2;
    std::vector<float> weights;
    for (int k = 0; k < tensors; k++) {
      const int x = 1 + 2 * k;
      require_same_size(describe_input(0), dy, describe_input(x), input(x));
      weights.push_back(scalar_value(input(x + 1), describe_input(x + 1)));
    }
    std::vector<Tensor*> dx, dw;
    for (int k = 0; k < tensors; k++) {
      dx.push_back(&output(k, input(1 + 2 * k).shape(), DataType::kFloat));
    }
    for (int k = 0; k < (grad_on_w_ ? tensors : 0); k++) {
      dw.push_back(&output(tensors + k, {1}, DataType::kFloat));
    }
    const float* gradient = dy.data<float>();
    for (size_t k = 0; k < dw.size(); k++) {
      const float* x = input(1 + 2 * static_cast<int>(k)).data<float>();
      double sum = 0;
      for (int64_t i = 0; i < dy.size(); i++) sum += static_cast<double>(gradient[i]) * x[i];
      dw[k]->mutable_data<float>()[0] = static_cast<float>(sum);
    }
    for (int k = 0; k < tensors; k++) {
      kernels().scale(dy.size(), weights[k], gradient, dx[k]->mutable_data<float>(), parallel());
    }
  }

 private:
  const bool grad_on_w_;
};

class ScaleOperator : public Operator {
 public:
  explicit ScaleOperator(const OperatorContext& context)
      : Operator(context), scale_(args().real("scale")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), x.type());
    if (x.type() == DataType::kFloat) {
      kernels().scale(x.size(), scale_, x.data<float>(), y.mutable_data<float>(), parallel());
      return;
    }
    const double* in = x.data<double>();
    double* out = y.mutable_data<double>();
    for (int64_t i = 0; i < x.size(); i++) out[i] = scale_ * in[i];
  }

 private:
  const float scale_;
};

class CopyOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { output(0, input(0).shape(), input(0).type()).copy_from(input(0)); }
};

// Like kernels::Table::cast: toward zero and saturating from floating point, NaN to 0.
template <class To, class From>
To cast_value(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(value)) return 0;
    if (value <= static_cast<From>(Limits::min())) return Limits::min();
    if (value >= static_cast<From>(Limits::max())) return Limits::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// Calls f with a value of the element type.
template <class F>
void dispatch_cast(DataType type, const F& f) {
  dispatch<float, double, int32_t, int64_t, bool, uint8_t, int8_t, uint16_t, int16_t>(type, f);
}

class CastOperator : public Operator {
 public:
  explicit CastOperator(const OperatorContext& context) : Operator(context), to_(target(args())) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    dispatch_cast(x.type(), [](auto) {});
    Tensor& y = output(0, x.shape(), to_);
    if (to_ == DataType::kString) {
      auto* text = y.mutable_data<std::string>();
      dispatch_cast(x.type(), [&](auto kind) {
        const auto* in = x.data<decltype(kind)>();
        for (int64_t i = 0; i < x.size(); i++) text[i] = std::to_string(in[i]);
      });
      return;
    }
    const auto from = kernel_type(x.type()), to = kernel_type(to_);
    if (from && to) {
      return kernels().cast(*from, *to, x.size(), x.raw_data(), y.raw_mutable_data(), parallel());
    }
    dispatch_cast(x.type(), [&](auto from_value) {
      using From = decltype(from_value);
      dispatch_cast(to_, [&](auto to_value) {
        using To = decltype(to_value);
        const From* in = x.data<From>();
        To* out = y.mutable_data<To>();
        for (int64_t i = 0; i < x.size(); i++) out[i] = cast_value<To>(in[i]);
      });
    });
  }

 private:
  // `to` is the number of a type or its name, in any case.
  static DataType target(const Arguments& args) {
    const Argument* given = args.given("to");
    if (given == nullptr || !given->s) {
      const int64_t number = given == nullptr ? args.integer("to")
                             : given->i       ? *given->i
                                              : static_cast<int64_t>(given->f.value_or(0));
      return checked(static_cast<DataType>(number));
    }
    std::string name = *given->s;
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (int i = 1; i <= static_cast<int>(DataType::kDouble); i++) {
      const auto type = static_cast<DataType>(i);
      if (name == type_name(type)) return checked(type);
    }
    fail(Code::kInvalidArgument, "argument 'to' = '", *given->s, "' names no element type");
  }
  static DataType checked(DataType to) {
    if (to != DataType::kString) dispatch_cast(to, [](auto) {});
    return to;
  }

  const DataType to_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Sum, SumOperator<false>)
REGISTER_CPU_OPERATOR(SumInt, SumOperator<false>)
REGISTER_CPU_OPERATOR(SumRelu, SumOperator<true>)
REGISTER_CPU_OPERATOR(WeightedSum, WeightedSumOperator)
REGISTER_CPU_OPERATOR(WeightedSumGradient, WeightedSumGradientOperator)
REGISTER_CPU_OPERATOR(Scale, ScaleOperator)
REGISTER_CPU_OPERATOR(Copy, CopyOperator)
REGISTER_CPU_OPERATOR(CopyOnDeviceLike, CopyOperator)
REGISTER_CPU_OPERATOR(StopGradient, CopyOperator)
REGISTER_CPU_OPERATOR(Cast, CastOperator)

}  // namespace caffe2
