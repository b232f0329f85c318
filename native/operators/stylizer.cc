// What stands before and behind a net that restyles pictures of a camera.
#include <algorithm>
#include <cmath>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/random.h"

namespace caffe2 {
namespace {

class StylizerBase : public Operator {
 public:
  using Operator::Operator;

 protected:
  void require(int axis, int64_t channels) const {
    const Tensor &x = input(0), &mean = input(1);
    CAFFE2_ENFORCE(x.rank() == 4 && x.dim(axis) == channels, describe_input(0), " has shape ",
                   x.shape().text(), "; 4 dimensions are needed, with ", channels,
                   " channels along axis ", axis);
    CAFFE2_ENFORCE(mean.size() == 3, describe_input(1), " has shape ", mean.shape().text(),
                   "; 3 values are needed");
  }
};

class StylizerPreprocessOperator : public StylizerBase {
 public:
  explicit StylizerPreprocessOperator(const OperatorContext& context)
      : StylizerBase(context), deviation_(args().real("noise_std")) {}

 protected:
  void run() override {
    require(3, 4);
    const Tensor& x = input(0);
    Tensor& y = output(0, {x.dim(0), 3, x.dim(1), x.dim(2)}, DataType::kFloat);
    const uint8_t* in = x.data<uint8_t>();
    const float* mean = input(1).data<float>();
    float* out = y.mutable_data<float>();
    kernels().normal(random_state(next_random_stream()), 0, deviation_, y.size(), out, parallel());
    const int64_t pixels = x.dim(1) * x.dim(2);
    for_ranges(parallel(), 3 * x.dim(0), rows_per_range(pixels), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        const int64_t c = plane % 3;
        const uint8_t* from = in + plane / 3 * pixels * 4 + c;
        float* to = out + plane * pixels;
        for (int64_t i = 0; i < pixels; i++) {
          to[i] += static_cast<float>(from[4 * i]) - mean[c];
        }
      }
    });
  }

 private:
  const float deviation_;
};

class StylizerDeprocessOperator : public StylizerBase {
 public:
  using StylizerBase::StylizerBase;

 protected:
  void run() override {
    require(1, 3);
    const Tensor& x = input(0);
    Tensor& y = output(0, {x.dim(0), x.dim(2), x.dim(3), 4}, DataType::kUInt8);
    const float *in = x.data<float>(), *mean = input(1).data<float>();
    uint8_t* out = y.mutable_data<uint8_t>();
    const int64_t pixels = x.dim(2) * x.dim(3);
    for_ranges(parallel(), x.dim(0), rows_per_range(pixels), [&](int64_t begin, int64_t end) {
      for (int64_t image = begin; image < end; image++) {
        for (int64_t i = 0; i < pixels; i++) {
          uint8_t* to = out + (image * pixels + i) * 4;
          for (int64_t c = 0; c < 3; c++) {
            const float value = in[(image * 3 + c) * pixels + i] + mean[c];
            to[c] = std::isnan(value) ? 0 : static_cast<uint8_t>(std::clamp(value, 0.F, 255.F));
          }
          to[3] = 255;
        }
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(PackedInt8BGRANHWCToNCHWCStylizerPreprocess, StylizerPreprocessOperator)
REGISTER_CPU_OPERATOR(BRGNCHWCToPackedInt8BGRAStylizerDeprocess, StylizerDeprocessOperator)

}  // namespace caffe2
