#include "operators/window.h"

#include <utility>

namespace caffe2 {

namespace {

enum LegacyPad { kNotSet = 0, kValid = 1, kSame = 2, kCaffePooling = 3 };

// kernels=[..], else kernel_h and kernel_w, else kernel; likewise the others.
std::vector<int64_t> per_dimension(const Arguments& args, const std::string& name) {
  std::vector<int64_t> many = args.integers(name + "s");
  if (!many.empty()) return many;
  if (args.has(name + "_h") || args.has(name + "_w")) {
    return {args.integer(name + "_h"), args.integer(name + "_w")};
  }
  return {args.integer(name)};
}

std::vector<int64_t> pads_of(const Arguments& args) {
  std::vector<int64_t> many = args.integers("pads");
  if (!many.empty()) return many;
  if (args.has("pad_t") || args.has("pad_l") || args.has("pad_b") || args.has("pad_r")) {
    return {args.integer("pad_t"), args.integer("pad_l"), args.integer("pad_b"),
            args.integer("pad_r")};
  }
  return {args.integer("pad")};
}

}  // namespace

WindowArguments::WindowArguments(const Arguments& args)
    : kernel_(per_dimension(args, "kernel")),
      stride_(per_dimension(args, "stride")),
      dilation_(per_dimension(args, "dilation")),
      pads_(pads_of(args)),
      legacy_pad_(args.int32("legacy_pad")),
      channels_last_(args.text("order") == "NHWC"),
      global_(args.boolean("global_pooling")) {}

Window WindowArguments::resolve(int rank, const int64_t* sizes, const std::string& what) const {
  const int dims = rank - 2;
  const auto at = [&](const std::vector<int64_t>& values, const char* name, int d) {
    CAFFE2_ENFORCE(values.size() == 1 || static_cast<int>(values.size()) == dims, what, " has ",
                   dims, " spatial dimension(s) but ", values.size(), " values of ", name);
    return values.size() == 1 ? values[0] : values[d];
  };
  CAFFE2_ENFORCE(pads_.size() == 1 || static_cast<int>(pads_.size()) == 2 * dims, what, " has ",
                 dims, " spatial dimension(s) but ", pads_.size(), " values of pad");
  Window w;
  const int first = 2 - dims;
  for (int d = 0; d < 2; d++) {
    w.kernel[d] = w.stride[d] = w.dilation[d] = w.out[d] = 1;
    w.pad_begin[d] = w.pad_end[d] = 0;
  }
  for (int i = 0; i < dims; i++) {
    const int d = first + i;
    const int64_t in = sizes[d];
    if (global_) {
      w.kernel[d] = in;
      continue;
    }
    w.kernel[d] = at(kernel_, "kernel", i);
    w.stride[d] = at(stride_, "stride", i);
    w.dilation[d] = at(dilation_, "dilation", i);
    w.pad_begin[d] = pads_.size() == 1 ? pads_[0] : pads_[i];
    w.pad_end[d] = pads_.size() == 1 ? pads_[0] : pads_[dims + i];
    CAFFE2_ENFORCE(w.kernel[d] >= 1 && w.stride[d] >= 1 && w.dilation[d] >= 1 &&
                       w.pad_begin[d] >= 0 && w.pad_end[d] >= 0,
                   "kernel ", w.kernel[d], ", stride ", w.stride[d], ", dilation ", w.dilation[d],
                   ", pad ", w.pad_begin[d], " and ", w.pad_end[d],
                   ": the first three must be at least 1, pads at least 0");
    const int64_t span = checked_multiply(w.dilation[d], w.kernel[d] - 1) + 1;
    if (legacy_pad_ == kValid) w.pad_begin[d] = w.pad_end[d] = 0;
    if (legacy_pad_ == kSame) {
      const int64_t out = (in + w.stride[d] - 1) / w.stride[d];
      const int64_t pad = std::max<int64_t>(0, (out - 1) * w.stride[d] + span - in);
      w.pad_begin[d] = pad / 2;
      w.pad_end[d] = pad - pad / 2;
    }
    const int64_t room = in + w.pad_begin[d] + w.pad_end[d] - span;
    CAFFE2_ENFORCE(room >= 0, "a window of ", span, " does not fit into ", what, ", which is ", in,
                   " wide there and padded by ", w.pad_begin[d], " and ", w.pad_end[d]);
    w.out[d] = room / w.stride[d] + 1;
    if (legacy_pad_ == kCaffePooling) {
      // Caffe rounds up, then drops a last window that would begin in the padding.
      w.out[d] = (room + w.stride[d] - 1) / w.stride[d] + 1;
      if (w.pad_begin[d] > 0 && (w.out[d] - 1) * w.stride[d] >= in + w.pad_begin[d]) w.out[d]--;
    }
  }
  return w;
}

Activations::Activations(const Tensor& x, bool channels_last, const std::string& what) {
  if (x.rank() == 5) fail(Code::kUnsupported, what, ": 3 spatial dimensions have no kernel yet");
  CAFFE2_ENFORCE(x.rank() == 3 || x.rank() == 4, what, " has shape ", x.shape().text(),
                 "; batch, channels and 1 or 2 spatial dimensions are needed");
  n = x.dim(0);
  c = x.dim(channels_last ? x.rank() - 1 : 1);
  const int first = channels_last ? 1 : 2;
  for (int i = 0; i < x.rank() - 2; i++) size[4 - x.rank() + i] = x.dim(first + i);
}

Shape activation_shape(const Tensor& like, bool channels_last, int64_t channels,
                       const int64_t size[2]) {
  Shape shape{like.dim(0)};
  if (!channels_last) shape.append(channels);
  for (int d = 4 - like.rank(); d < 2; d++) shape.append(size[d]);
  if (channels_last) shape.append(channels);
  return shape;
}

namespace {

// [rows][columns] -> [columns][rows] in tiles that stay in the nearest cache.
void transpose(int64_t rows, int64_t columns, const float* x, float* y) {
  constexpr int64_t kTile = 16;
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    const int64_t r1 = std::min(rows, r0 + kTile);
    for (int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const int64_t c1 = std::min(columns, c0 + kTile);
      for (int64_t r = r0; r < r1; r++) {
        for (int64_t c = c0; c < c1; c++) y[c * rows + r] = x[r * columns + c];
      }
    }
  }
}

void transpose_images(int64_t n, int64_t rows, int64_t columns, const float* x, float* y,
                      const kernels::Parallel& parallel) {
  struct Job {
    int64_t rows, columns;
    const float* x;
    float* y;
  } job{rows, columns, x, y};
  parallel.run(
      parallel.pool, static_cast<int>(n),
      [](void* context, int i) {
        const Job& j = *static_cast<Job*>(context);
        const int64_t offset = i * j.rows * j.columns;
        transpose(j.rows, j.columns, j.x + offset, j.y + offset);
      },
      &job);
}

}  // namespace

void to_channels_first(int64_t n, int64_t c, int64_t hw, const float* x, float* y,
                       const kernels::Parallel& parallel) {
  transpose_images(n, hw, c, x, y, parallel);
}

void to_channels_last(int64_t n, int64_t c, int64_t hw, const float* x, float* y,
                      const kernels::Parallel& parallel) {
  transpose_images(n, c, hw, x, y, parallel);
}

}  // namespace caffe2
