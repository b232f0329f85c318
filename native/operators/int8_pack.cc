// Scales and zero points from values, and the weights of layers as integers.
#include <limits>
#include <memory>

#include "core/registry.h"
#include "operators/int8.h"

namespace caffe2 {

Quantization quantization_of(const float* values, int64_t n) {
  // Smaller scales would leave the reciprocal few bits.
  constexpr double kSmallest = 6.1e-5;
  double low = 0, high = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!std::isfinite(values[i])) return {std::numeric_limits<float>::quiet_NaN(), 0};
    low = std::min<double>(low, values[i]);
    high = std::max<double>(high, values[i]);
  }
  double scale = (high - low) / 255;
  if (static_cast<float>(scale) == 0 || std::isinf(1 / static_cast<float>(scale))) scale = 0.1;
  if (scale < kSmallest) {
    low = high == 0 ? -255 * kSmallest : low * (kSmallest / scale);
    high = low == 0 ? 255 * kSmallest : high * (kSmallest / scale);
    scale = kSmallest;
  }
  // 0 is placed from that end whose own place loses less.
  const bool from_low = std::abs(low / scale) < 255 + std::abs(high / scale);
  const double zero = from_low ? -low / scale : 255 - high / scale;
  return {static_cast<float>(scale),
          static_cast<int32_t>(std::nearbyint(std::clamp(zero, 0., 255.)))};
}

std::shared_ptr<Int8Tensor> quantized_bias(const std::shared_ptr<Allocator>& allocator,
                                           const Tensor& b, float scale) {
  Tensor q(allocator, b.shape(), DataType::kInt32);
  const float* in = b.data<float>();
  int32_t* out = q.mutable_data<int32_t>();
  const float inverse = 1 / scale;
  for (int64_t i = 0; i < b.size(); i++) {
    const float place = std::nearbyint(in[i] * inverse);
    const bool fits = std::abs(place) < 2147483648.0f;  // neither is a NaN
    out[i] = fits ? static_cast<int32_t>(place) : place > 0 ? INT32_MAX : INT32_MIN;
  }
  return std::make_shared<Int8Tensor>(std::move(q), scale, 0);
}

namespace {

class Int8FCPackWeightOperator : public Operator {
 public:
  explicit Int8FCPackWeightOperator(const OperatorContext& context)
      : Operator(context), in_scale_(args().real("in_scale")) {
    CAFFE2_ENFORCE(!args().boolean("quantize_channelwise"),
                   "argument 'quantize_channelwise' is 1; there is one scale for all rows");
    CAFFE2_ENFORCE(context.def.output.size() <= context.def.input.size(),
                   "output 1 (B_q) is that of input 1 (b), which is not there");
    CAFFE2_ENFORCE(context.def.input.size() == 1 || args().has("in_scale"),
                   "argument 'in_scale' is needed with input 1 (b)");
  }

 protected:
  void run() override {
    const Tensor& w = input(0);
    CAFFE2_ENFORCE(w.rank() >= 2, describe_input(0), " has shape ", w.shape().text(),
                   "; a row for each output is needed");
    const Quantization to = quantization_of(w.data<float>(), w.size());
    CAFFE2_ENFORCE(std::isfinite(to.scale), describe_input(0), " holds values that are not finite");
    Tensor packed(engine().allocator(), w.shape(), DataType::kUInt8);
    std::shared_ptr<Int8Tensor> bias;
    if (has_input(1)) {
      const Tensor& b = input(1);
      CAFFE2_ENFORCE(b.shape() == Shape{w.dim(0)}, describe_input(1), " has shape ",
                     b.shape().text(), "; (", w.dim(0), ",) is needed");
      bias = quantized_bias(engine().allocator(), b, in_scale_ * to.scale);
    }
    kernels::int8_table(engine().isa())
        ->quantize(to.inverse(), static_cast<float>(to.zero_point), 0, w.size(), w.data<float>(),
                   packed.mutable_data<uint8_t>(), parallel());
    output_object(0, std::make_shared<Int8Tensor>(std::move(packed), to.scale, to.zero_point));
    if (outputs() > 1) output_object(1, std::move(bias));
  }

 private:
  const float in_scale_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Int8FCPackWeight, Int8FCPackWeightOperator)

}  // namespace caffe2
