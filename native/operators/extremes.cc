// Of several tensors: the largest, the smallest, the mean; with their gradients.
#include <algorithm>
#include <vector>

#include "core/registry.h"
#include "operators/broadcast.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

using kernels::Binary;

// All inputs have one shape and one type.
class AlikeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void require_alike() const {
    for (int i = 1; i < inputs(); i++) {
      require_same_shape(describe_input(0), input(0), describe_input(i), input(i));
      require_same_type(describe_input(0), input(0), describe_input(i), input(i));
    }
  }
};

template <Binary f>
class ExtremeOperator : public AlikeOperator {
 public:
  using AlikeOperator::AlikeOperator;

 protected:
  void run() override {
    require_alike();
    const Tensor& x = input(0);
    Tensor& m = output(0, x.shape(), DataType::kFloat);
    float* result = m.mutable_data<float>();
    const float* first = x.data<float>();
    // The first one with itself, where there is no other.
    for (int i = 1; i < std::max(2, inputs()); i++) {
      const Tensor& next = input(std::min(i, inputs() - 1));
      kernels().binary(f, kernels::Type::kFloat, side_by_side(m.size()), first, next.raw_data(),
                       result, parallel());
      first = result;
    }
  }
};

// Inputs M, dM, X0, X1, ...; outputs dX0, dX1, ...
class ExtremeGradientOperator : public AlikeOperator {
 public:
  explicit ExtremeGradientOperator(const OperatorContext& context) : AlikeOperator(context) {
    CAFFE2_ENFORCE(context.def.output.size() + 2 <= context.def.input.size(), "it has ",
                   context.def.output.size(), " outputs for ", context.def.input.size() - 2,
                   " inputs X");
  }

 protected:
  void run() override {
    require_alike();
    const Tensor &m = input(0), &dm = input(1);
    std::vector<Tensor*> gradients;
    for (int i = 0; i < outputs(); i++) {
      gradients.push_back(&output(i, m.shape(), DataType::kFloat));
    }
    for (int i = 0; i < outputs(); i++) {
      map(
          parallel(), m.size(),
          [](float x, float extreme, float d) { return x == extreme ? d : 0.f; },
          gradients[i]->mutable_data<float>(), input(i + 2).data<float>(), m.data<float>(),
          dm.data<float>());
    }
  }
};

class MeanOperator : public AlikeOperator {
 public:
  using AlikeOperator::AlikeOperator;

 protected:
  void run() override {
    require_alike();
    const Tensor& first = input(0);
    Tensor& m = output(0, first.shape(), first.type());
    if (first.type() == DataType::kFloat) {
      std::vector<const float*> all;
      for (int i = 0; i < inputs(); i++) all.push_back(input(i).data<float>());
      float* sum = m.mutable_data<float>();
      kernels().weighted_sum(m.size(), inputs(), all.data(), nullptr, sum, parallel());
      kernels().scale(m.size(), 1 / static_cast<float>(inputs()), sum, sum, parallel());
      return;
    }
    std::vector<const double*> all;
    for (int i = 0; i < inputs(); i++) all.push_back(input(i).data<double>());
    double* mean = m.mutable_data<double>();
    for_ranges(parallel(), m.size(), inputs(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (const double* x : all) sum += x[i];
        mean[i] = sum / static_cast<double>(all.size());
      }
    });
  }
};

class MeanGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& dm = input(0);
    std::vector<Tensor*> gradients;
    for (int i = 0; i < outputs(); i++) gradients.push_back(&output(i, dm.shape(), dm.type()));
    // The first one may overwrite dM.
    for (int i = outputs() - 1; i >= 0; i--) {
      if (dm.type() == DataType::kFloat) {
        kernels().scale(dm.size(), 1 / static_cast<float>(outputs()), dm.data<float>(),
                        gradients[i]->mutable_data<float>(), parallel());
      } else {
        map(
            parallel(), dm.size(), [count = outputs()](double d) { return d / count; },
            gradients[i]->mutable_data<double>(), dm.data<double>());
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Max, ExtremeOperator<Binary::kMax>)
REGISTER_CPU_OPERATOR(Min, ExtremeOperator<Binary::kMin>)
REGISTER_CPU_OPERATOR(MaxGradient, ExtremeGradientOperator)
REGISTER_CPU_OPERATOR(MinGradient, ExtremeGradientOperator)
REGISTER_CPU_OPERATOR(Mean, MeanOperator)
REGISTER_CPU_OPERATOR(MeanGradient, MeanGradientOperator)

}  // namespace caffe2
