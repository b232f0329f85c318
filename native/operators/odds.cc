// Clipping in place, scaling many blobs, and operators that change nothing but the gradient.
#include <algorithm>
#include <vector>

#include "core/registry.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

class EnsureClippedOperator : public Operator {
 public:
  explicit EnsureClippedOperator(const OperatorContext& context)
      : Operator(context), min_(args().real("min")), max_(args().real("max")) {
    CAFFE2_ENFORCE(context.def.input.size() != 2, "it has indices but no grad; both are needed");
  }

 protected:
  void run() override {
    const Tensor& param = input(0);
    const auto clip = [this](int64_t n, const float* from, float* to) {
      kernels().unary(kernels::Unary::kClip, min_, max_, n, from, to, parallel());
    };
    if (!has_input(1)) {
      Tensor& y = output(0, param.shape(), DataType::kFloat);
      return clip(param.size(), param.data<float>(), y.mutable_data<float>());
    }
    const Tensor &indices = input(1), &grad = input(2);
    CAFFE2_ENFORCE(param.rank() > 0, describe_input(0), " is a scalar, which has no rows");
    Shape shape = indices.shape();
    for (int d = 1; d < param.rank(); d++) shape.append(param.dim(d));
    CAFFE2_ENFORCE(grad.shape() == shape, describe_input(2), " has shape ", grad.shape().text(),
                   "; ", shape.text(), " is needed");
    dispatch<int32_t, int64_t>(indices.type(), [&](auto zero) {
      using T = decltype(zero);
      const T *rows = indices.template data<T>(), *end = rows + indices.size();
      const T* bad = std::find_if(rows, end, [&](T r) { return r < 0 || r >= param.dim(0); });
      CAFFE2_ENFORCE(bad == end, describe_input(1), " holds ", *bad, "; ", describe_input(0),
                     " has ", param.dim(0), " rows");
      Tensor& y = output(0, param.shape(), DataType::kFloat);
      const float* from = param.data<float>();
      float* to = y.template mutable_data<float>();
      if (to != from) std::copy_n(from, param.size(), to);
      const int64_t length = param.shape().product(1, param.rank());
      for (const T* row = rows; row != end; ++row) {
        clip(length, to + *row * length, to + *row * length);
      }
    });
  }

 private:
  const float min_, max_;
};

class ScaleBlobsOperator : public Operator {
 public:
  explicit ScaleBlobsOperator(const OperatorContext& context)
      : Operator(context), scale_(args().real("scale")) {
    CAFFE2_ENFORCE(context.def.input.size() == context.def.output.size(), "it has ",
                   context.def.output.size(), " outputs for ", context.def.input.size(), " inputs");
  }

 protected:
  void run() override {
    std::vector<Tensor*> results;
    std::vector<void*> rooms;
    for (int i = 0; i < inputs(); i++) {
      results.push_back(&output(i, input(i).shape(), DataType::kFloat));
      // What an earlier output overwrites is kept.
      const auto& written = def().output;
      const bool lost =
          std::find(written.begin(), written.begin() + i, def().input[i]) != written.begin() + i;
      rooms.push_back(lost ? scratch(input(i).bytes()) : nullptr);
    }
    for (int i = 0; i < inputs(); i++) {
      if (rooms[i] == nullptr) continue;
      std::copy_n(input(i).data<float>(), input(i).size(), static_cast<float*>(rooms[i]));
    }
    for (int i = 0; i < inputs(); i++) {
      const float* from =
          rooms[i] == nullptr ? input(i).data<float>() : static_cast<const float*>(rooms[i]);
      kernels().scale(input(i).size(), scale_, from, results[i]->mutable_data<float>(), parallel());
    }
  }

 private:
  const float scale_;
};

class NegateGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { output(0, input(0).shape(), input(0).type()).copy_from(input(0)); }
};

class ZeroGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {}
};

}  // namespace

REGISTER_CPU_OPERATOR(EnsureClipped, EnsureClippedOperator)
REGISTER_CPU_OPERATOR(ScaleBlobs, ScaleBlobsOperator)
REGISTER_CPU_OPERATOR(NegateGradient, NegateGradientOperator)
REGISTER_CPU_OPERATOR(ZeroGradient, ZeroGradientOperator)

}  // namespace caffe2
