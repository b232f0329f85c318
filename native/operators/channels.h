// What operators with values per channel share.
#pragma once
#include <string>

#include "core/operator.h"
#include "kernels/kernels.h"

namespace caffe2 {

class ChannelOperator : public Operator {
 public:
  explicit ChannelOperator(const OperatorContext& context)
      : Operator(context),
        channels_last_(args().text("order") == "NHWC" || args().text("order") == "nhwc") {}

 protected:
  // How the channels of input i lie.
  kernels::ChannelShape channel_shape(int i) const {
    const Shape& x = input(i).shape();
    CAFFE2_ENFORCE(x.rank() >= 2, describe_input(i), " has shape ", x.text(),
                   "; 2 dimensions at least are needed: batch, channels");
    if (channels_last_) return {x.product(0, x.rank() - 1), x[x.rank() - 1], 1};
    return {x[0], x[1], x.product(2, x.rank())};
  }

  // One value per channel of the data.
  void require_channels(int i, const kernels::ChannelShape& s) const {
    CAFFE2_ENFORCE(input(i).shape() == Shape{s.channels}, describe_input(i), " has shape ",
                   input(i).shape().text(), "; (", s.channels, ",) is needed, one per channel");
  }

  float* buffer(int64_t values) { return scratch<float>(values); }

  bool channels_last() const { return channels_last_; }

 private:
  const bool channels_last_;
};

}  // namespace caffe2
