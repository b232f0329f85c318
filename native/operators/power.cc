// Pow, and SumReduceLike, which sums its gradient.
#include <cmath>

#include "core/registry.h"
#include "operators/broadcast.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

using kernels::Unary;

class PowOperator : public Operator {
 public:
  explicit PowOperator(const OperatorContext& context)
      : Operator(context),
        rule_(args()),
        broadcast_(args().boolean("broadcast")),
        exponent_(args().has("exponent") ? args().real("exponent") : 0) {
    CAFFE2_ENFORCE(context.def.input.size() == 2 || args().has("exponent"),
                   "it has neither an input nor an argument 'exponent'");
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    if (!has_input(1)) {
      Tensor& y = output(0, x.shape(), DataType::kFloat);
      return by_one(x.size(), x.data<float>(), y.mutable_data<float>());
    }
    const Tensor& exponent = input(1);
    if (!broadcast_) require_same_shape(describe_input(0), x, describe_input(1), exponent);
    const Shape aligned =
        rule_.apply(x.shape(), exponent.shape(), describe_input(0), describe_input(1)).b;
    CAFFE2_ENFORCE(def().output[0] != def().input[1] || x.shape() == exponent.shape(),
                   describe_output(0), " has shape ", x.shape().text(),
                   " and cannot overwrite its input of ", exponent.shape().text());
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const float *from = x.data<float>(), *powers = exponent.data<float>();
    float* to = y.mutable_data<float>();
    // Exponents go along the dimensions in the middle, and are repeated along the last `inner`.
    int last = x.rank();
    while (last > 0 && aligned[last - 1] == 1) last--;
    const int64_t inner = x.shape().product(last, x.rank()), count = exponent.size();
    for_ranges(parallel(), x.size(), 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) to[i] = std::pow(from[i], powers[i / inner % count]);
    });
  }

 private:
  void by_one(int64_t n, const float* x, float* y) const {
    const auto kernel = [&](Unary f) { kernels().unary(f, 0, 0, n, x, y, parallel()); };
    if (exponent_ == 1) return kernels().scale(n, 1, x, y, parallel());
    if (exponent_ == 2) return kernel(Unary::kSquare);
    if (exponent_ == -1) return kernel(Unary::kReciprocal);
    for_ranges(parallel(), n, 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) y[i] = std::pow(x[i], exponent_);
    });
  }

  const BroadcastRule rule_;
  const bool broadcast_;
  const float exponent_;
};

class SumReduceLikeOperator : public Operator {
 public:
  explicit SumReduceLikeOperator(const OperatorContext& context)
      : Operator(context), rule_(args(), true) {}

 protected:
  void run() override {
    const Tensor &a = input(0), &b = input(1);
    const Shape aligned = rule_.apply(a.shape(), b.shape(), describe_input(0), describe_input(1)).b;
    Tensor& c = output(0, b.shape(), a.type());
    void* room = scratch(sum_to_scratch(a.shape(), aligned, a.type()));
    sum_to(kernels(), parallel(), a.type(), a.shape(), a.raw_data(), aligned, c.raw_mutable_data(),
           room);
  }

 private:
  const BroadcastRule rule_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Pow, PowOperator)
REGISTER_CPU_OPERATOR(SumReduceLike, SumReduceLikeOperator)

}  // namespace caffe2
