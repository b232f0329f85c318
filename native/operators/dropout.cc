// Dropout and its gradient.
#include <algorithm>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/random.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class DropoutOperator : public Operator {
 public:
  explicit DropoutOperator(const OperatorContext& context)
      : Operator(context), ratio_(args().real("ratio")), is_test_(args().boolean("is_test")) {
    CAFFE2_ENFORCE(is_test_ || context.def.output.size() == 2,
                   "it has 1 output; with is_test=0 there is the mask, too");
  }

 protected:
  void run() override {
    constexpr int64_t kStretch = 1 << 16;
    const Tensor& x = input(0);
    const int64_t n = x.size();
    float* drawn = nullptr;
    if (!is_test_) drawn = scratch<float>(std::min(n, kStretch));
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    bool* mask = nullptr;
    if (outputs() == 2) mask = output(1, x.shape(), DataType::kBool).mutable_data<bool>();
    const float* in = x.data<float>();
    float* out = y.mutable_data<float>();
    if (is_test_) {
      if (out != in) std::copy_n(in, n, out);
      if (mask) std::fill_n(mask, n, true);
      return;
    }
    kernels::RandomState state = random_state(next_random_stream());
    const float scale = 1 / (1 - ratio_);
    for (int64_t begin = 0; begin < n; begin += kStretch) {
      const int64_t count = std::min(kStretch, n - begin);
      state.offset = static_cast<uint64_t>(begin);
      kernels().uniform(state, 0, 1, count, drawn, parallel());
      for (int64_t i = 0; i < count; i++) {
        mask[begin + i] = drawn[i] >= ratio_;
        out[begin + i] = in[begin + i] * (mask[begin + i] ? scale : 0);
      }
    }
  }

 private:
  const float ratio_;
  const bool is_test_;
};

class DropoutGradOperator : public Operator {
 public:
  explicit DropoutGradOperator(const OperatorContext& context)
      : Operator(context), ratio_(args().real("ratio")), is_test_(args().boolean("is_test")) {
    CAFFE2_ENFORCE(is_test_ || context.def.input.size() == 2,
                   "it has no mask; that is needed with is_test=0");
  }

 protected:
  void run() override {
    const Tensor& dy = input(0);
    if (!is_test_) require_same_size(describe_input(1), input(1), describe_input(0), dy);
    Tensor& dx = output(0, dy.shape(), DataType::kFloat);
    const float* in = dy.data<float>();
    float* out = dx.mutable_data<float>();
    if (is_test_) {
      if (out != in) std::copy_n(in, dy.size(), out);
      return;
    }
    const bool* mask = input(1).data<bool>();
    const float scale = 1 / (1 - ratio_);
    for (int64_t i = 0; i < dy.size(); i++) out[i] = in[i] * (mask[i] ? scale : 0);
  }

 private:
  const float ratio_;
  const bool is_test_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Dropout, DropoutOperator)
REGISTER_CPU_OPERATOR(DropoutGrad, DropoutGradOperator)

}  // namespace caffe2
