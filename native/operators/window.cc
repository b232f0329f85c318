#include "operators/window.h"

namespace caffe2 {

namespace {

enum LegacyPad { kNotSet = 0, kValid = 1, kSame = 2, kCaffePooling = 3 };

// Values of arguments that are given together or not at all; empty when they are not.
std::vector<int64_t> sides(const Arguments& args, const std::vector<std::string>& names) {
  std::vector<int64_t> values;
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
    if (args.has(name)) values.push_back(args.integer(name));
  }
  CAFFE2_ENFORCE(values.empty() || values.size() == names.size(), "arguments ", text,
                 " are given together or not at all");
  return values;
}

}  // namespace

// kernels=[..], else kernel for all dimensions, else kernel_h and kernel_w; so stride and dilation.
// A kernel of 0, a stride or dilation of 1 is as good as not given.
WindowArguments::Values WindowArguments::per_dimension(const Arguments& args,
                                                       const std::string& name, bool required) {
  const std::vector<int64_t> listed = args.integers(name + "s");
  if (!listed.empty()) return {listed, false};
  const std::vector<int64_t> two = sides(args, {name + "_h", name + "_w"});
  const int64_t usual = required ? 0 : 1;
  const bool single = args.has(name) && args.integer(name) != usual;
  if (!two.empty() && !single) return {two, false};
  CAFFE2_ENFORCE(!required || single, "argument '", name,
                 args.has(name) ? "' is 0; it is at least 1" : "' is missing");
  return {{args.integer(name)}, true};
}

WindowArguments::Values WindowArguments::pads_of(const Arguments& args) {
  const std::vector<int64_t> listed = args.integers("pads");
  if (!listed.empty()) return {listed, false};
  const std::vector<int64_t> four = sides(args, {"pad_t", "pad_l", "pad_b", "pad_r"});
  if (!four.empty() && args.integer("pad") == 0) return {four, false};
  return {{args.integer("pad")}, true};
}

bool WindowArguments::Values::any_not(int64_t usual) const {
  return std::any_of(values.begin(), values.end(), [=](int64_t v) { return v != usual; });
}

WindowArguments::WindowArguments(const Arguments& args)
    : stride_(per_dimension(args, "stride", false)),
      dilation_(per_dimension(args, "dilation", false)),
      pads_(pads_of(args)),
      legacy_pad_(args.int32("legacy_pad")),
      channels_last_(args.text("order") == "NHWC" || args.text("order") == "nhwc"),
      global_(args.boolean("global_pooling")) {
  if (!global_) kernel_ = per_dimension(args, "kernel", true);
  CAFFE2_ENFORCE(!global_ || !(stride_.any_not(1) || dilation_.any_not(1) || pads_.any_not(0)),
                 "argument 'global_pooling' is 1; stride, dilation and pad cannot be set as well");
  CAFFE2_ENFORCE((legacy_pad_ != kValid && legacy_pad_ != kSame) || !pads_.any_not(0),
                 "argument 'legacy_pad' is ", legacy_pad_,
                 " (1: VALID, 2: SAME); pads cannot be given as well");
  CAFFE2_ENFORCE(legacy_pad_ != kSame || !dilation_.any_not(1),
                 "argument 'legacy_pad' is 2 (SAME); dilation cannot be used");
}

WindowAxis WindowArguments::resolve_axis(int i, int dims, int64_t in, const Operand& what) const {
  WindowAxis w;
  if (global_) {
    w.kernel = in;
    return w;
  }
  w.kernel = kernel_[i];
  w.stride = stride_[i];
  w.dilation = dilation_[i];
  w.pad_begin = pads_[i];
  w.pad_end = pads_[dims + i];
  const int64_t span = checked_multiply(w.dilation, w.kernel - 1) + 1;
  if (legacy_pad_ == kSame) {
    const int64_t needed = std::max<int64_t>(0, ((in - 1) / w.stride) * w.stride + span - in);
    w.pad_begin = needed / 2;
    w.pad_end = needed - needed / 2;
  }
  const int64_t room = in + w.pad_begin + w.pad_end - span;
  const bool rounds_up = legacy_pad_ == kCaffePooling;
  CAFFE2_ENFORCE(room >= 0 || (rounds_up && -room < w.stride), what, " is ", in,
                 " wide along spatial axis ", i, ", with pads ", in + w.pad_begin + w.pad_end,
                 "; the kernel spans ", span);
  w.out = room >= 0 ? room / w.stride + 1 : 0;
  if (rounds_up) {
    if (room < 0 || room % w.stride != 0) w.out++;
    // Caffe drops a last window that begins behind the data, but only where there are pads.
    if (w.pad_begin > 0 && (w.out - 1) * w.stride >= in + w.pad_begin) w.out--;
  }
  w.reach_end = rounds_up ? std::max<int64_t>(0, (w.out - 1) * w.stride + span - in - w.pad_begin)
                          : w.pad_end;
  return w;
}

Window WindowArguments::resolve(int rank, const int64_t* sizes, const Operand& what,
                                int64_t frames) const {
  const int dims = rank - 2;
  const auto require_count = [&](const Values& given, const char* name, int wanted) {
    const int n = static_cast<int>(given.values.size());
    CAFFE2_ENFORCE(given.for_all || n == wanted, what, " has ", dims, " spatial dimension(s), so ",
                   wanted, " values of ", name, " are needed; ", n, " are given");
  };
  CAFFE2_ENFORCE(dims > 0 || global_, what, " has no spatial axis");
  if (!global_) require_count(kernel_, "kernel", dims);
  require_count(stride_, "stride", dims);
  require_count(dilation_, "dilation", dims);
  require_count(pads_, "pad", 2 * dims);
  Window w{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {0, 0}, {1, 1}, {}};
  for (int i = 0; i < dims; i++) {
    const int d = 2 - dims + i;
    const WindowAxis axis = resolve_axis(i, dims, d < 0 ? frames : sizes[d], what);
    if (d < 0) {
      w.frames = axis;
      continue;
    }
    w.kernel[d] = axis.kernel;
    w.stride[d] = axis.stride;
    w.dilation[d] = axis.dilation;
    w.pad_begin[d] = axis.pad_begin;
    w.pad_end[d] = axis.pad_end;
    w.reach_end[d] = axis.reach_end;
    w.out[d] = axis.out;
  }
  return w;
}

void WindowAxis::require_pads_inside(int64_t in, const Operand& what) const {
  CAFFE2_ENFORCE(pad_begin < kernel && pad_end < kernel, "pads of ", pad_begin, " and ", pad_end,
                 "; less than the kernel (", kernel, ") is allowed");
  const int64_t start = (out - 1) * stride - pad_begin;
  CAFFE2_ENFORCE(start < in, "the last window would begin at ", start, " of ", what, ", which is ",
                 in, " wide there");
}

Activations::Activations(const Tensor& x, bool channels_last, const Operand& what, int max_dims) {
  CAFFE2_ENFORCE(x.rank() >= 2 && x.rank() <= max_dims + 2, what, " has shape ", x.shape().text(),
                 "; batch, channels and 1 to ", max_dims, " spatial dimensions are needed");
  for (int i = 1; i < x.rank(); i++) {
    CAFFE2_ENFORCE(x.dim(i) > 0, what, " has shape ", x.shape().text(),
                   "; only the batch may be empty");
  }
  n = x.dim(0);
  c = x.dim(channels_last ? x.rank() - 1 : 1);
  const int first = channels_last ? 1 : 2;
  for (int i = 0; i < x.rank() - 2; i++) {
    const int d = 4 - x.rank() + i;
    (d < 0 ? frames : size[d]) = x.dim(first + i);
  }
}

void require_countable(const kernels::ConvShape& s, const Operand& what) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t h = s.h + s.pad_t + s.pad_b, w = s.w + s.pad_l + s.pad_r;
  const int64_t channels = std::max(s.c, s.k);
  CAFFE2_ENFORCE(static_cast<double>(h) * static_cast<double>(w) * static_cast<double>(channels) <=
                     static_cast<double>(kMost),
                 what, ": with pads an image is ", h, " x ", w, "; times ", channels,
                 " channels that is more than ", kMost, " values");
}

Shape activation_shape(const Tensor& like, bool channels_last, int64_t channels,
                       const int64_t size[2], int64_t frames) {
  Shape shape{like.dim(0)};
  if (!channels_last) shape.append(channels);
  for (int d = 4 - like.rank(); d < 2; d++) shape.append(d < 0 ? frames : size[d]);
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
