// The window arguments that convolution and pooling share.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "core/operator.h"

namespace caffe2 {

// What a window is along one spatial dimension.
struct WindowAxis {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad_begin = 0, pad_end = 0;
  int64_t reach_end = 0;  // pad_end, more where the output size was rounded up
  int64_t out = 1;        // output size

  void require_pads_inside(int64_t in, const Operand& what) const;
};

// One window over frames, height and width; one-dimensional data has height 1, and what has fewer
// than three dimensions one frame.
struct Window {
  int64_t kernel[2], stride[2], dilation[2];
  int64_t pad_begin[2], pad_end[2], reach_end[2], out[2];
  WindowAxis frames;

  WindowAxis axis(int d) const {
    return {kernel[d], stride[d], dilation[d], pad_begin[d], pad_end[d], reach_end[d], out[d]};
  }
};

class WindowArguments {
 public:
  explicit WindowArguments(const Arguments& args);

  bool channels_last() const { return channels_last_; }

  // For data with `rank` - 2 spatial dimensions, height and width in `sizes`. Raises for windows
  // that do not fit.
  Window resolve(int rank, const int64_t* sizes, const Operand& what, int64_t frames = 1) const;

 private:
  // One value for all dimensions, or one for each; pads: all before the data, then all behind it.
  struct Values {
    std::vector<int64_t> values;
    bool for_all;
    int64_t operator[](int i) const { return values[for_all ? 0 : i]; }
    bool any_not(int64_t usual) const;
  };
  static Values per_dimension(const Arguments& args, const std::string& name, bool required);
  static Values pads_of(const Arguments& args);
  WindowAxis resolve_axis(int i, int dims, int64_t in, const Operand& what) const;

  Values kernel_, stride_, dilation_, pads_;
  int legacy_pad_;
  bool channels_last_, global_;
};

// Batch, channels, frames, height and width of activations in either order.
struct Activations {
  int64_t n = 1, c = 1, frames = 1, size[2] = {1, 1};

  Activations(const Tensor& x, bool channels_last, const Operand& what, int max_dims = 2);
  int64_t plane() const { return size[0] * size[1]; }
};

// The same order and number of dimensions as `like`, with other channels and spatial sizes.
Shape activation_shape(const Tensor& like, bool channels_last, int64_t channels,
                       const int64_t size[2], int64_t frames = 1);

// Raises where an image with its pads, as pads and dilation can make it, is of a size from which
// kernels could not compute the sizes of their memory.
void require_countable(const kernels::ConvShape& s, const Operand& what);

// For each of n images: [hw][c] -> [c][hw], and back.
void to_channels_first(int64_t n, int64_t c, int64_t hw, const float* x, float* y,
                       const kernels::Parallel& parallel);
void to_channels_last(int64_t n, int64_t c, int64_t hw, const float* x, float* y,
                      const kernels::Parallel& parallel);

}  // namespace caffe2
