// The matrix behind a convolution: Im2Col and Col2Im.
#include <algorithm>
#include <string>

#include "core/registry.h"
#include "operators/channels.h"
#include "operators/parallel.h"

namespace caffe2 {
namespace {

class Im2ColBase : public ChannelOperator {
 public:
  explicit Im2ColBase(const OperatorContext& context) : ChannelOperator(context) {
    for (int a = 0; a < 2; a++) {
      kernel_[a] = of_axis("kernel", a);
      stride_[a] = of_axis("stride", a);
      dilation_[a] = of_axis("dilation", a);
    }
    pad_ = args().integer("pad");
  }

 protected:
  struct Sizes {
    int64_t n, c, h, w, oh, ow, places;
  };

  // For the picture in input i.
  Sizes sizes(int i) const {
    const Tensor& x = input(i);
    CAFFE2_ENFORCE(x.rank() == 4, describe_input(i), " has shape ", x.shape().text(),
                   "; 4 dimensions are needed");
    for (int d = 1; d < 4; d++) {
      CAFFE2_ENFORCE(x.dim(d) > 0, describe_input(i), " has shape ", x.shape().text(),
                     "; only the batch may be empty");
    }
    const int at = channels_last() ? 1 : 2;
    Sizes s{x.dim(0), x.dim(channels_last() ? 3 : 1), x.dim(at), x.dim(at + 1), 0, 0, 0};
    s.oh = output_size(i, s.h, 0);
    s.ow = output_size(i, s.w, 1);
    s.places = checked_multiply(kernel_[0], kernel_[1]);
    return s;
  }

  Shape columns_shape(const Sizes& s) const {
    const int64_t rows = checked_multiply(s.c, s.places);
    if (channels_last()) return {s.n, s.oh, s.ow, rows};
    return {s.n, rows, s.oh, s.ow};
  }

  // Calls body(picture, columns) for each place of the window at each output of one image, with the
  // offsets of the values (NHWC: of all channels) in the image and in its columns; picture is
  // negative where the place lies in the padding. In NCHW for channel c alone.
  template <class Body>
  void for_places(const Sizes& s, int64_t c, const Body& body) const {
    const int64_t inner = channels_last() ? s.c : 1;
    const int64_t points = s.oh * s.ow;
    for (int64_t place = 0; place < s.places; place++) {
      const int64_t top = place / kernel_[1] * dilation_[0] - pad_;
      const int64_t left = place % kernel_[1] * dilation_[1] - pad_;
      for (int64_t i = 0; i < points; i++) {
        const int64_t y = i / s.ow * stride_[0] + top, x = i % s.ow * stride_[1] + left;
        const bool inside = y >= 0 && y < s.h && x >= 0 && x < s.w;
        const int64_t picture = ((c * s.h + y) * s.w + x) * inner;
        const int64_t columns =
            channels_last() ? (i * s.places + place) * s.c : (c * s.places + place) * points + i;
        body(inside ? picture : -1, columns);
      }
    }
  }

  // Work that is independent: planes in NCHW, images in NHWC.
  int64_t jobs(const Sizes& s) const { return channels_last() ? s.n : s.n * s.c; }
  int64_t inner(const Sizes& s) const { return channels_last() ? s.c : 1; }
  // Image and channel of a job.
  int64_t image(const Sizes& s, int64_t job) const { return channels_last() ? job : job / s.c; }
  int64_t channel(const Sizes& s, int64_t job) const { return channels_last() ? 0 : job % s.c; }

 private:
  int64_t of_axis(const std::string& name, int axis) const {
    const bool h = args().has(name + "_h"), w = args().has(name + "_w");
    CAFFE2_ENFORCE(h == w, "arguments ", name, "_h, ", name, "_w are given together or not at all");
    const bool single = args().has(name) && (name == "kernel" || args().integer(name) != 1);
    if (h && !single) return args().integer(name + (axis == 0 ? "_h" : "_w"));
    CAFFE2_ENFORCE(name != "kernel" || single, "argument 'kernel' is missing");
    return args().integer(name);
  }

  int64_t output_size(int i, int64_t in, int axis) const {
    const int64_t span = checked_multiply(dilation_[axis], kernel_[axis] - 1) + 1;
    const int64_t room = in + 2 * pad_ - span;
    CAFFE2_ENFORCE(room >= 0, describe_input(i), " is ", in, " wide along spatial axis ", axis,
                   ", with pads ", in + 2 * pad_, "; the kernel spans ", span);
    return room / stride_[axis] + 1;
  }

  int64_t kernel_[2], stride_[2], dilation_[2], pad_;
};

class Im2ColOperator : public Im2ColBase {
 public:
  using Im2ColBase::Im2ColBase;

 protected:
  void run() override {
    const Sizes s = sizes(0);
    Tensor& y = output(0, columns_shape(s), DataType::kFloat);
    if (y.size() == 0) return;
    const float* x = input(0).data<float>();
    float* out = y.mutable_data<float>();
    const int64_t picture = s.c * s.h * s.w, columns = s.c * s.places * s.oh * s.ow;
    for_ranges(parallel(), jobs(s), 1, [&](int64_t begin, int64_t end) {
      for (int64_t job = begin; job < end; job++) {
        const float* from = x + image(s, job) * picture;
        float* to = out + image(s, job) * columns;
        for_places(s, channel(s, job), [&](int64_t source, int64_t target) {
          if (source < 0) {
            std::fill_n(to + target, inner(s), 0.f);
          } else {
            std::copy_n(from + source, inner(s), to + target);
          }
        });
      }
    });
  }
};

// Inputs columns, X.
class Col2ImOperator : public Im2ColBase {
 public:
  using Im2ColBase::Im2ColBase;

 protected:
  void run() override {
    const Sizes s = sizes(1);
    const Shape needed = columns_shape(s);
    CAFFE2_ENFORCE(input(0).size() == needed.size(), describe_input(0), " has shape ",
                   input(0).shape().text(), "; ", needed.text(), " is needed, ", describe_input(1),
                   " has shape ", input(1).shape().text());
    Tensor& y = output(0, input(1).shape(), DataType::kFloat);
    if (y.size() == 0) return;
    const float* x = input(0).data<float>();
    float* out = y.mutable_data<float>();
    const int64_t picture = s.c * s.h * s.w, columns = s.c * s.places * s.oh * s.ow;
    for_ranges(parallel(), jobs(s), 1, [&](int64_t begin, int64_t end) {
      const int64_t size = channels_last() ? picture : s.h * s.w;
      std::fill_n(out + begin * size, (end - begin) * size, 0.f);
      for (int64_t job = begin; job < end; job++) {
        const float* from = x + image(s, job) * columns;
        float* to = out + image(s, job) * picture;
        for_places(s, channel(s, job), [&](int64_t target, int64_t source) {
          if (target < 0) return;
          for (int64_t c = 0; c < inner(s); c++) to[target + c] += from[source + c];
        });
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Im2Col, Im2ColOperator)
REGISTER_CPU_OPERATOR(Col2Im, Col2ImOperator)

}  // namespace caffe2
