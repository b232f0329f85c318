// Elementary functions of each element, with their gradients.
#include <cmath>

#include "core/registry.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

using kernels::Unary;

constexpr auto kLog1p = [](float x) { return std::log1p(x); };
constexpr auto kCbrt = [](float x) { return std::cbrt(x); };
constexpr auto kSin = [](float x) { return std::sin(x); };
constexpr auto kCos = [](float x) { return std::cos(x); };
constexpr auto kTan = [](float x) { return std::tan(x); };
constexpr auto kAsin = [](float x) { return std::asin(x); };
constexpr auto kAcos = [](float x) { return std::acos(x); };
constexpr auto kAtan = [](float x) { return std::atan(x); };
constexpr auto kSinh = [](float x) { return std::sinh(x); };
constexpr auto kCosh = [](float x) { return std::cosh(x); };
constexpr auto kSqrt = [](double x) { return std::sqrt(x); };

constexpr auto kCube = [](auto x) {
  const auto wide = static_cast<Wrapping<decltype(x)>>(x);
  return wide * wide * wide;
};
constexpr auto kNegative = [](auto x) { return -static_cast<Wrapping<decltype(x)>>(x); };
constexpr auto kSign = [](auto x) { return (x > 0) - (x < 0); };

constexpr auto kCubeGradient = [](auto x, auto dy) {
  using Wide = Wrapping<decltype(x)>;
  const auto wide = static_cast<Wide>(x);
  return static_cast<Wide>(3) * static_cast<Wide>(dy) * (wide * wide);
};
constexpr auto kLog1pGradient = [](float x, float dy) { return dy / (1 + x); };
constexpr auto kCbrtGradient = [](float y, float dy) { return dy / (3 * y * y); };
constexpr auto kSinGradient = [](float x, float dy) { return dy * std::cos(x); };
constexpr auto kCosGradient = [](float x, float dy) { return -dy * std::sin(x); };
constexpr auto kTanGradient = [](float x, float dy) {
  const float cosine = std::cos(x);
  return dy / (cosine * cosine);
};
constexpr auto kAsinGradient = [](float x, float dy) { return dy / std::sqrt(1 - x * x); };
constexpr auto kAcosGradient = [](float x, float dy) { return -dy / std::sqrt(1 - x * x); };
constexpr auto kAtanGradient = [](float x, float dy) { return dy / (1 + x * x); };
constexpr auto kSinhGradient = [](float x, float dy) { return dy * std::cosh(x); };
constexpr auto kCoshGradient = [](float x, float dy) { return dy * std::sinh(x); };

// Kernels that take no parameters.
using SimpleKernel = void (*kernels::Table::*)(int64_t, const float*, float*,
                                               const kernels::Parallel&);
template <SimpleKernel kernel>
class SimpleOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    (kernels().*kernel)(x.size(), x.data<float>(), y.mutable_data<float>(), parallel());
  }
};

// Floats by the kernel, doubles one by one.
class SqrtOperator : public MapOperator<kSqrt, double> {
 public:
  using MapOperator::MapOperator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    if (x.type() == DataType::kDouble) return MapOperator::run();
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    kernels().unary(Unary::kSqrt, 0, 0, x.size(), x.data<float>(), y.mutable_data<float>(),
                    parallel());
  }
};

class LogitOperator : public Operator {
 public:
  explicit LogitOperator(const OperatorContext& context)
      : Operator(context), eps_(args().real("eps")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const auto logit = [low = eps_, high = 1 - eps_](float v) {
      const float p = v < low ? low : v > high ? high : v;
      return std::log(p / (1 - p));
    };
    map(parallel(), x.size(), logit, y.mutable_data<float>(), x.data<float>());
  }

 private:
  const float eps_;
};

class LogitGradientOperator : public Operator {
 public:
  explicit LogitGradientOperator(const OperatorContext& context)
      : Operator(context), eps_(args().real("eps")) {}

 protected:
  void run() override {
    const Tensor &x = input(0), &dy = input(1);
    require_same_size(describe_input(0), x, describe_input(1), dy);
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    const auto gradient = [low = eps_, high = 1 - eps_](float v, float d) {
      return v < low || v > high ? 0 : d / (v * (1 - v));
    };
    map(parallel(), x.size(), gradient, dx.mutable_data<float>(), x.data<float>(),
        dy.data<float>());
  }

 private:
  const float eps_;
};

class ModOperator : public Operator {
 public:
  explicit ModOperator(const OperatorContext& context)
      : Operator(context),
        divisor_(args().integer("divisor")),
        follow_(args().boolean("sign_follow_divisor")) {
    CAFFE2_ENFORCE(divisor_ != 0, "argument 'divisor' is 0, by which nothing can be divided");
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    dispatch<int32_t, int64_t>(x.type(), [&](auto zero) {
      using T = decltype(zero);
      Tensor& y = output(0, x.shape(), x.type());
      const auto rest = [this](int64_t v) {
        const int64_t found = divisor_ == -1 ? 0 : v % divisor_;
        return follow_ && found != 0 && (found < 0) != (divisor_ < 0) ? found + divisor_ : found;
      };
      map(parallel(), x.size(), rest, y.template mutable_data<T>(), x.template data<T>());
    });
  }

 private:
  const int64_t divisor_;
  const bool follow_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Exp, SimpleOperator<&kernels::Table::exp>)
REGISTER_CPU_OPERATOR(Log, SimpleOperator<&kernels::Table::log>)
REGISTER_CPU_OPERATOR(Log1p, MapOperator<kLog1p, float>)
REGISTER_CPU_OPERATOR(Log1pGradient, MapGradientOperator<kLog1pGradient, 0, 1, float>)
REGISTER_CPU_OPERATOR(Sqr, UnaryOperator<Unary::kSquare>)
REGISTER_CPU_OPERATOR(Sqrt, SqrtOperator)
REGISTER_CPU_OPERATOR(Rsqrt, UnaryOperator<Unary::kRsqrt>)
REGISTER_CPU_OPERATOR(RsqrtGradient, UnaryGradientOperator<Unary::kRsqrt, 1, 0>)
REGISTER_CPU_OPERATOR(Cube, MapOperator<kCube, float, double, int32_t, int64_t>)
REGISTER_CPU_OPERATOR(CubeGradient,
                      MapGradientOperator<kCubeGradient, 1, 0, float, double, int32_t, int64_t>)
REGISTER_CPU_OPERATOR(Cbrt, MapOperator<kCbrt, float>)
REGISTER_CPU_OPERATOR(CbrtGradient, MapGradientOperator<kCbrtGradient, 1, 0, float>)
REGISTER_CPU_OPERATOR(Abs, UnaryOperator<Unary::kAbs>)
REGISTER_CPU_OPERATOR(AbsGradient, UnaryGradientOperator<Unary::kAbs, 0, 1>)
REGISTER_CPU_OPERATOR(Negative, MapOperator<kNegative, float, double, int32_t, int64_t>)
REGISTER_CPU_OPERATOR(Sign, MapOperator<kSign, float, double, int32_t, int64_t>)
REGISTER_CPU_OPERATOR(Sin, MapOperator<kSin, float>)
REGISTER_CPU_OPERATOR(SinGradient, MapGradientOperator<kSinGradient, 0, 1, float>)
REGISTER_CPU_OPERATOR(Cos, MapOperator<kCos, float>)
REGISTER_CPU_OPERATOR(CosGradient, MapGradientOperator<kCosGradient, 0, 1, float>)
REGISTER_CPU_OPERATOR(Tan, MapOperator<kTan, float>)
REGISTER_CPU_OPERATOR(TanGradient, MapGradientOperator<kTanGradient, 0, 1, float>)
REGISTER_CPU_OPERATOR(Asin, MapOperator<kAsin, float>)
REGISTER_CPU_OPERATOR(AsinGradient, MapGradientOperator<kAsinGradient, 0, 1, float>)
REGISTER_CPU_OPERATOR(Acos, MapOperator<kAcos, float>)
REGISTER_CPU_OPERATOR(AcosGradient, MapGradientOperator<kAcosGradient, 0, 1, float>)
REGISTER_CPU_OPERATOR(Atan, MapOperator<kAtan, float>)
REGISTER_CPU_OPERATOR(AtanGradient, MapGradientOperator<kAtanGradient, 0, 1, float>)
REGISTER_CPU_OPERATOR(Sinh, MapOperator<kSinh, float>)
REGISTER_CPU_OPERATOR(SinhGradient, MapGradientOperator<kSinhGradient, 1, 0, float>)
REGISTER_CPU_OPERATOR(Cosh, MapOperator<kCosh, float>)
REGISTER_CPU_OPERATOR(CoshGradient, MapGradientOperator<kCoshGradient, 1, 0, float>)
REGISTER_CPU_OPERATOR(Ceil, UnaryOperator<Unary::kCeil>)
REGISTER_CPU_OPERATOR(Floor, UnaryOperator<Unary::kFloor>)
REGISTER_CPU_OPERATOR(Erf, UnaryOperator<Unary::kErf>)
REGISTER_CPU_OPERATOR(ErfGradient, UnaryGradientOperator<Unary::kErf, 0, 1>)
REGISTER_CPU_OPERATOR(Reciprocal, UnaryOperator<Unary::kReciprocal>)
REGISTER_CPU_OPERATOR(ReciprocalGradient, UnaryGradientOperator<Unary::kReciprocal, 0, 1>)
REGISTER_CPU_OPERATOR(Logit, LogitOperator)
REGISTER_CPU_OPERATOR(LogitGradient, LogitGradientOperator)
REGISTER_CPU_OPERATOR(Mod, ModOperator)

}  // namespace caffe2
