#include <algorithm>
#include <cmath>
#include <string>

#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

struct Expected {
  std::vector<double> value, magnitude;
  explicit Expected(int64_t n) : value(n), magnitude(n) {}
  void add(int64_t i, double product) {
    value[i] += product;
    magnitude[i] += std::abs(product);
  }
  std::vector<double> bound(int64_t terms) const {
    std::vector<double> bounds;
    for (double m : magnitude) bounds.push_back(sum_bound(terms, m));
    return bounds;
  }
};

// Calls body(x index, y index, weight index) for every product of a convolution.
template <class Body>
void for_products(const ConvShape& s, const Body& body) {
  const int64_t oh = s.oh(), ow = s.ow(), gc = s.c / s.group, gk = s.k / s.group;
  for (int64_t n = 0; n < s.n; n++) {
    for (int64_t k = 0; k < s.k; k++) {
      for (int64_t c = 0; c < gc; c++) {
        for (int64_t r = 0; r < s.kh; r++) {
          for (int64_t q = 0; q < s.kw; q++) {
            for (int64_t y = 0; y < oh; y++) {
              const int64_t iy = y * s.stride_h - s.pad_t + r * s.dilation_h;
              if (iy < 0 || iy >= s.h) continue;
              for (int64_t x = 0; x < ow; x++) {
                const int64_t ix = x * s.stride_w - s.pad_l + q * s.dilation_w;
                if (ix < 0 || ix >= s.w) continue;
                body(((n * s.c + k / gk * gc + c) * s.h + iy) * s.w + ix,
                     ((n * s.k + k) * oh + y) * ow + x, ((k * gc + c) * s.kh + r) * s.kw + q);
              }
            }
          }
        }
      }
    }
  }
}

std::string describe(const ConvShape& s) {
  const auto text = [](int64_t v) { return std::to_string(v) + " "; };
  return "n " + text(s.n) + "c " + text(s.c) + "h " + text(s.h) + "w " + text(s.w) + "k " +
         text(s.k) + "window " + text(s.kh) + text(s.kw) + "stride " + text(s.stride_h) +
         text(s.stride_w) + "pad " + text(s.pad_t) + text(s.pad_l) + text(s.pad_b) + text(s.pad_r) +
         "dilation " + text(s.dilation_h) + text(s.dilation_w) + "group " + text(s.group);
}

struct Problem {
  ConvShape s;
  Floats x, w, bias, dy;
  Expected y, dx, dw, db;
  explicit Problem(const ConvShape& shape, unsigned seed)
      : s(shape),
        y(s.n * s.k * s.oh() * s.ow()),
        dx(s.n * s.c * s.h * s.w),
        dw(s.k * s.c / s.group * s.kh * s.kw),
        db(s.k) {
    Random random(seed);
    x = random.floats(dx.value.size());
    w = random.floats(dw.value.size());
    bias = random.floats(s.k);
    dy = random.floats(y.value.size());
    for_products(s, [&](int64_t i, int64_t o, int64_t f) {
      y.add(o, static_cast<double>(x[i]) * w[f]);
      dx.add(i, static_cast<double>(dy[o]) * w[f]);
      dw.add(f, static_cast<double>(dy[o]) * x[i]);
    });
    const int64_t pixels = s.oh() * s.ow();
    for (size_t i = 0; i < dy.size(); i++) db.add(i / pixels % s.k, dy[i]);
  }
};

constexpr ConvAlgorithm kAlgorithms[] = {ConvAlgorithm::kDirect, ConvAlgorithm::kIm2col,
                                         ConvAlgorithm::kDepthwise, ConvAlgorithm::kWinograd2,
                                         ConvAlgorithm::kWinograd4};
constexpr const char* kNames[] = {"direct", "im2col", "depthwise", "winograd 2", "winograd 4"};

// What comes behind the sums.
struct Epilogue {
  bool bias = false, add = false, in_place = false, relu = false;
  float high = 1.5f;  // with relu
};

// Forward through any layouts; what is to be added is p.dy.
Floats forward(const Table& kernels, const Problem& p, ConvAlgorithm algorithm, Layout x_layout,
               Layout y_layout, const Epilogue& e, int count) {
  const ConvShape& s = p.s;
  const int64_t pixels = s.oh() * s.ow();
  const bool x_blocked = x_layout == Layout::kBlocked, y_blocked = y_layout == Layout::kBlocked;
  Scratch packed(kernels.conv_packed_bytes(s, algorithm));
  kernels.conv_pack(s, algorithm, p.w.data(), packed.get(), threads(count));
  Scratch scratch(kernels.conv_scratch_bytes(s, ConvPass::kForward, algorithm, count));
  Scratch x(kernels.blocked_bytes(s.n, s.c, s.h * s.w));
  Scratch y(kernels.blocked_bytes(s.n, s.k, pixels)), add(kernels.blocked_bytes(s.n, s.k, pixels));
  Floats plain(p.y.value.size(), std::nanf(""));
  if (x_blocked) kernels.to_blocked(s.n, s.c, s.h * s.w, p.x.data(), x.get(), threads(count));
  if (y_blocked) {
    kernels.to_blocked(s.n, s.k, pixels, p.dy.data(), add.get(), threads(count));
    if (e.in_place) kernels.to_blocked(s.n, s.k, pixels, p.dy.data(), y.get(), threads(count));
  } else if (e.in_place) {
    plain = p.dy;
  }
  float* out = y_blocked ? y.get() : plain.data();
  ConvForward f;
  f.shape = s;
  f.algorithm = algorithm;
  f.x_layout = x_layout;
  f.y_layout = y_layout;
  if (e.relu) f.bounds = {0, e.high};
  if (e.bias) f.bias = p.bias.data();
  if (e.add) f.add = e.in_place ? out : y_blocked ? add.get() : p.dy.data();
  kernels.conv_forward(f, x_blocked ? x.get() : p.x.data(), packed.get(), out, scratch.get(),
                       threads(count));
  if (y_blocked) {
    kernels.from_blocked(s.n, s.k, pixels, y.get(), plain.data(), threads(count));
    // Missing channels are zero.
    kernels.to_blocked(s.n, s.k, pixels, plain.data(), add.get(), threads(count));
    const size_t values = kernels.blocked_bytes(s.n, s.k, pixels) / sizeof(float);
    CHECK(same_bits(Floats(y.get(), y.get() + values), Floats(add.get(), add.get() + values)));
  }
  return plain;
}

Floats backward_data(const Table& kernels, const Problem& p, ConvAlgorithm algorithm, int count) {
  Floats dx(p.x.size(), std::nanf(""));
  Scratch scratch(kernels.conv_scratch_bytes(p.s, ConvPass::kBackwardData, algorithm, count));
  kernels.conv_backward_data(p.s, algorithm, p.dy.data(), p.w.data(), dx.data(), scratch.get(),
                             threads(count));
  return dx;
}

Floats backward_weights(const Table& kernels, const Problem& p, ConvAlgorithm algorithm,
                        int count) {
  Floats dw(p.w.size(), std::nanf(""));
  Scratch scratch(kernels.conv_scratch_bytes(p.s, ConvPass::kBackwardWeights, algorithm, count));
  kernels.conv_backward_weights(p.s, algorithm, p.x.data(), p.dy.data(), dw.data(), scratch.get(),
                                threads(count));
  return dw;
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

// Minimal filtering spreads rounding errors over a tile, larger for larger ones.
std::vector<double> bound_of(const Expected& e, const ConvShape& s, int64_t terms,
                             ConvAlgorithm algorithm) {
  std::vector<double> bounds = e.bound(terms);
  const bool minimal =
      algorithm == ConvAlgorithm::kWinograd2 || algorithm == ConvAlgorithm::kWinograd4;
  const bool four = algorithm == ConvAlgorithm::kWinograd2 && s.kh == 3;  // values of a tile row
  const double spread = !minimal ? 0 : four ? 20 * 6e-8 : 200 * 6e-8;
  const double most = spread * largest(e.magnitude);
  for (double& b : bounds) b += most;
  return bounds;
}

void check_forward(const Table& kernels, const Problem& p, ConvAlgorithm algorithm,
                   const std::vector<int>& counts) {
  const ConvShape& s = p.s;
  const int64_t terms = s.c / s.group * s.kh * s.kw, pixels = s.oh() * s.ow();
  std::vector<double> bound = bound_of(p.y, p.s, terms, algorithm);
  for (double& b : bound) b += 6e-8 * 2 * (terms + 2);  // bias and addend, below 1 each
  for (Layout x_layout : {Layout::kPlain, kernels.conv_x_layout(s, algorithm)}) {
    for (Layout y_layout : {Layout::kPlain, kernels.conv_y_layout(s, algorithm)}) {
      INFO("layouts " << static_cast<int>(x_layout) << " " << static_cast<int>(y_layout));
      for (const Epilogue& e : {Epilogue{}, Epilogue{true}, Epilogue{true, true, false, true},
                                Epilogue{false, true, true, true}}) {
        std::vector<double> want = p.y.value;
        for (size_t i = 0; i < want.size(); i++) {
          if (e.bias) want[i] += p.bias[i / pixels % s.k];
          if (e.add) want[i] += p.dy[i];
          if (e.relu) want[i] = std::clamp(want[i], 0.0, double{e.high});
        }
        Floats first;
        for (int count : counts) {
          INFO("threads " << count);
          const Floats y = forward(kernels, p, algorithm, x_layout, y_layout, e, count);
          CHECK(count_wrong(y, want, bound) == 0);
          if (count == 1) first = y;
          CHECK(same_bits(y, first));
        }
      }
    }
  }
}

void check_backward(const Table& kernels, const Problem& p, ConvAlgorithm algorithm,
                    const std::vector<int>& counts) {
  const ConvShape& s = p.s;
  const bool by_data = kernels.conv_supports(s, ConvPass::kBackwardData, algorithm);
  const bool by_weights = kernels.conv_supports(s, ConvPass::kBackwardWeights, algorithm);
  const std::vector<double> dx_bound = bound_of(p.dx, p.s, s.k / s.group * s.kh * s.kw, algorithm);
  const std::vector<double> dw_bound = bound_of(p.dw, p.s, s.n * s.oh() * s.ow(), algorithm);
  Floats dx1, dw1;
  for (int count : counts) {
    INFO("threads " << count);
    if (by_data) {
      const Floats dx = backward_data(kernels, p, algorithm, count);
      CHECK(count_wrong(dx, p.dx.value, dx_bound) == 0);
      if (count == 1) dx1 = dx;
      CHECK(same_bits(dx, dx1));
    }
    if (by_weights) {
      const Floats dw = backward_weights(kernels, p, algorithm, count);
      CHECK(count_wrong(dw, p.dw.value, dw_bound) == 0);
      if (count == 1) dw1 = dw;
      CHECK(same_bits(dw, dw1));
    }
  }
}

void check(const Problem& p, const std::vector<int>& counts) {
  const ConvShape& s = p.s;
  INFO(describe(s));
  for (const Table* kernels : tables()) {
    INFO(std::string(isa_name(kernels->isa)));
    for (ConvPass pass :
         {ConvPass::kForward, ConvPass::kBackwardData, ConvPass::kBackwardWeights}) {
      for (Layout layout : {Layout::kPlain, Layout::kBlocked}) {
        CHECK(kernels->conv_supports(s, pass, kernels->conv_algorithm(s, pass, layout)));
      }
      CHECK(kernels->conv_supports(s, pass, ConvAlgorithm::kIm2col));
    }
    for (ConvAlgorithm algorithm : kAlgorithms) {
      INFO(std::string(kNames[static_cast<int>(algorithm)]));
      if (kernels->conv_supports(s, ConvPass::kForward, algorithm)) {
        check_forward(*kernels, p, algorithm, counts);
      }
      check_backward(*kernels, p, algorithm, counts);
    }
    Floats db(s.k, std::nanf(""));
    kernels->conv_backward_bias(s, p.dy.data(), db.data(), threads(2));
    CHECK(count_wrong(db, p.db.value, p.db.bound(16)) == 0);
  }
}

ConvShape shape(int64_t n, int64_t c, int64_t h, int64_t w, int64_t k, int64_t window,
                int64_t stride, int64_t pad) {
  ConvShape s;
  s.n = n;
  s.c = c;
  s.h = h;
  s.w = w;
  s.k = k;
  s.kh = s.kw = window;
  s.stride_h = s.stride_w = stride;
  s.pad_t = s.pad_l = s.pad_b = s.pad_r = pad;
  return s;
}

TEST_CASE("convolution: known layers, any number of threads") {
  unsigned seed = 1;
  const std::vector<int> counts = {1, 2, 8};
  check(Problem(shape(3, 1, 28, 28, 20, 5, 1, 0), seed++), counts);   // LeNet
  check(Problem(shape(9, 20, 12, 12, 50, 5, 1, 0), seed++), counts);  // LeNet
  check(Problem(shape(1, 3, 33, 33, 32, 7, 2, 3), seed++), counts);   // first layers
  check(Problem(shape(2, 3, 17, 17, 16, 3, 2, 1), seed++), counts);
  check(Problem(shape(1, 32, 14, 14, 48, 3, 1, 1), seed++), counts);
  check(Problem(shape(2, 64, 9, 9, 64, 1, 1, 0), seed++), counts);
  check(Problem(shape(1, 64, 13, 13, 33, 1, 2, 0), seed++), counts);
  check(Problem(shape(1, 96, 7, 7, 130, 3, 1, 1), seed++), counts);
  check(Problem(shape(20, 40, 1, 1, 24, 1, 1, 0), seed++), counts);
  check(Problem(shape(1, 4, 40, 70, 5, 3, 1, 1), seed++), counts);    // more than 512 pixels
  check(Problem(shape(2, 40, 15, 13, 70, 1, 2, 0), seed++), counts);  // few of the pixels are read
  check(Problem(shape(1, 48, 13, 11, 70, 3, 2, 1), seed++), counts);  // two rows share a tile
  check(Problem(shape(2, 5, 3, 600, 3, 3, 1, 1), seed++), counts);    // long rows
  check(Problem(shape(1, 60, 6, 6, 600, 3, 1, 1), seed++), counts);   // long reductions
  check(Problem(shape(1, 190, 6, 5, 20, 7, 1, 3), seed++), counts);   // longer than a cache
}

TEST_CASE("convolution: depthwise, and 3x3 and 5x5 windows in tiles") {
  unsigned seed = 50;
  const std::vector<int> counts = {1, 3};
  const auto depthwise = [&](int64_t n, int64_t c, int64_t h, int64_t w, int64_t window,
                             int64_t stride, int64_t pad, int64_t dilation) {
    ConvShape s = shape(n, c, h, w, c, window, stride, pad);
    s.group = c;
    s.dilation_h = s.dilation_w = dilation;
    check(Problem(s, seed++), counts);
  };
  depthwise(1, 32, 17, 19, 3, 1, 1, 1);
  depthwise(2, 33, 16, 15, 3, 2, 1, 1);
  depthwise(1, 20, 40, 23, 5, 1, 2, 1);
  depthwise(1, 7, 12, 31, 5, 2, 2, 1);
  depthwise(2, 16, 9, 9, 3, 1, 2, 2);
  depthwise(1, 3, 9, 30, 2, 3, 3, 1);
  depthwise(1, 17, 3, 3, 7, 1, 3, 1);
  depthwise(1, 17, 1, 1, 5, 1, 2, 1);  // no output sees the whole window, which is far wider
  depthwise(2, 16, 3, 2, 7, 1, 3, 1);
  depthwise(1, 3, 1, 1, 3, 1, 9, 9);
  check(Problem(shape(3, 17, 9, 30, 40, 3, 1, 1), seed++), counts);
  check(Problem(shape(1, 32, 57, 50, 48, 3, 1, 1), seed++), counts);    // many batches of tiles
  check(Problem(shape(2, 160, 14, 14, 200, 3, 1, 1), seed++), counts);  // large filters
  check(Problem(shape(2, 24, 15, 28, 40, 5, 1, 2), seed++), counts);    // 5x5 windows
  check(Problem(shape(1, 5, 4, 3, 6, 3, 1, 3), seed++), counts);        // wide borders
}

TEST_CASE("convolution: random shapes") {
  Random random(7);
  for (int i = 0; i < 250; i++) {
    ConvShape s;
    s.group = random.integer(0, 3) ? 1 : random.integer(1, 4);
    const int64_t unit = random.integer(0, 4) ? 1 : 16;  // sometimes whole vectors
    s.n = random.integer(1, 5);
    s.c = s.group * unit * random.integer(1, unit == 1 ? 20 : 2);
    s.k = s.group * unit * random.integer(1, unit == 1 ? 35 : 3);
    s.kh = random.integer(1, 5);
    s.kw = random.integer(1, 5);
    s.stride_h = random.integer(1, 3);
    s.stride_w = random.coin() ? s.stride_h : random.integer(1, 3);
    s.dilation_h = random.integer(0, 2) ? 1 : random.integer(1, 3);
    s.dilation_w = random.integer(0, 2) ? 1 : random.integer(1, 3);
    if (random.coin()) {
      s.pad_t = random.integer(0, 3);
      s.pad_l = random.integer(0, 3);
      s.pad_b = random.integer(0, 3);
      s.pad_r = random.integer(0, 3);
    }
    s.h = s.dilation_h * (s.kh - 1) + random.integer(1, 12);
    s.w = s.dilation_w * (s.kw - 1) + random.integer(1, 20);
    check(Problem(s, 100 + i), {1, 3});
  }
}

TEST_CASE("gradient of the bias: accurate over large batches") {
  const ConvShape s = shape(20000, 1, 3, 3, 2, 3, 1, 0);
  const Floats dy = Random(9).floats(s.n * s.k, 0.9f, 1.1f);
  double want[2] = {};
  for (size_t i = 0; i < dy.size(); i++) want[i % 2] += dy[i];
  for (const Table* kernels : tables()) {
    Floats db(2);
    kernels->conv_backward_bias(s, dy.data(), db.data(), threads(2));
    for (int k = 0; k < 2; k++) CHECK(db[k] == doctest::Approx(want[k]).epsilon(1e-7));
  }
}

TEST_CASE("blocked layout: there and back, missing channels are zero") {
  Random random(3);
  for (const Table* kernels : tables()) {
    const int64_t v = kernels->vector_width;
    for (int64_t c : {1, 7, 15, 16, 33}) {
      for (int64_t hw : {1, 7, 17, 64}) {
        const int64_t n = 3, channels = (c + v - 1) / v * v;
        const Floats x = random.floats(n * c * hw);
        const auto bytes = static_cast<int64_t>(n * channels * hw * sizeof(float));
        CHECK(kernels->blocked_bytes(n, c, hw) == bytes);
        Scratch blocked(bytes);
        kernels->to_blocked(n, c, hw, x.data(), blocked.get(), threads(2));
        int wrong = 0;
        for (int64_t i = 0; i < n * channels * hw; i++) {
          const int64_t lane = i % v, pixel = i / v % hw, block = i / v / hw % (channels / v);
          const int64_t channel = block * v + lane, image = i / (channels * hw);
          wrong += blocked.get()[i] != (channel < c ? x[(image * c + channel) * hw + pixel] : 0);
        }
        CHECK(wrong == 0);
        Floats y(x.size());
        kernels->from_blocked(n, c, hw, blocked.get(), y.data(), threads(2));
        CHECK(same_bits(x, y));
      }
    }
  }
}

// Also where addresses have fewer: who is asked for the memory can tell that it is too much.
TEST_CASE("bytes are counted in 64 bits") {
  const int64_t large = int64_t{1} << 30, more_than = int64_t{1} << 33;
  for (const Table* kernels : tables()) {
    INFO(std::string(isa_name(kernels->isa)));
    CHECK(kernels->blocked_bytes(1, 16, large) == 64 * large);
    CHECK(kernels->gemm_packed_bytes(large, 16) == 64 * large);
    for (const int64_t group : {1, 16}) {
      ConvShape s = shape(1, 16, 3, large, 16, 3, 1, 1);
      s.group = group;
      for (const ConvAlgorithm algorithm : kAlgorithms) {
        INFO(kNames[static_cast<int>(algorithm)]);
        if (!kernels->conv_supports(s, ConvPass::kForward, algorithm)) continue;
        CHECK(kernels->conv_scratch_bytes(s, ConvPass::kForward, algorithm, 2) > more_than);
      }
    }
    ExpandDepthwise f;
    f.expand.shape = shape(1, 16, 3, large, 16, 1, 1, 0);
    f.depthwise.shape = shape(1, 16, 3, large, 16, 3, 1, 1);
    f.depthwise.shape.group = 16;
    CHECK(kernels->expand_depthwise_scratch_bytes(f, 2) > more_than);
  }
}

// Layers one after the other, or all in one.
TEST_CASE("expanding, filtering and projecting in one are the same as one after the other") {
  struct Size {
    int64_t n, c, e, k, h, w, kernel, stride, pad;  // k: 0 if nothing is projected
  };
  using Layer = ExpandDepthwise::Layer;
  for (const Table* kernels : tables()) {
    for (const Size& z :
         {Size{1, 3, 8, 0, 5, 7, 3, 1, 1}, Size{2, 24, 40, 0, 9, 6, 3, 2, 1},
          Size{1, 16, 33, 0, 64, 110, 5, 2, 2}, Size{1, 7, 20, 0, 120, 112, 3, 1, 0},
          Size{1, 2, 5, 0, 20, 1500, 3, 1, 1}, Size{2, 3, 8, 5, 5, 7, 3, 1, 1},
          Size{2, 24, 200, 40, 9, 6, 3, 2, 1}, Size{1, 5, 70, 33, 14, 14, 3, 1, 1},
          Size{1, 16, 100, 24, 64, 110, 5, 2, 2}, Size{1, 3, 40, 17, 30, 33, 2, 3, 0},
          Size{1, 2, 50, 3, 60, 500, 3, 1, 1}}) {
      Random random(3);
      const Floats x = random.floats(z.n * z.c * z.h * z.w), we = random.floats(z.e * z.c),
                   be = random.floats(z.e), wd = random.floats(z.e * z.kernel * z.kernel),
                   bd = random.floats(z.e), wp = random.floats(z.k * z.e), bp = random.floats(z.k);
      ExpandDepthwise f;
      f.expand.shape = {.n = z.n, .c = z.c, .h = z.h, .w = z.w, .k = z.e};
      f.expand.bounds = {0, 1};
      ConvShape& s = f.depthwise.shape;
      s = {.n = z.n, .c = z.e, .h = z.h, .w = z.w, .k = z.e, .kh = z.kernel, .kw = z.kernel};
      s.stride_h = s.stride_w = z.stride;
      s.pad_t = s.pad_l = s.pad_b = s.pad_r = z.pad;
      s.group = z.e;
      f.depthwise.bounds = {-0.5f, 2};
      f.project.shape = {.n = z.n, .c = z.e, .h = s.oh(), .w = s.ow(), .k = z.k};
      f.project.bounds = {-1, 3};
      INFO(isa_name(kernels->isa), ", expand ", describe(f.expand.shape), ", depthwise ",
           describe(s), ", project to ", z.k);

      const auto packed_bytes = [&](const Layer& layer, ConvAlgorithm algorithm) {
        return layer.shape.k > 0 ? kernels->conv_packed_bytes(layer.shape, algorithm) : 0;
      };
      Scratch expand(packed_bytes(f.expand, ConvAlgorithm::kDirect)),
          depthwise(packed_bytes(f.depthwise, ConvAlgorithm::kDepthwise)),
          project(packed_bytes(f.project, ConvAlgorithm::kDirect));
      const auto pack = [&](Layer& layer, ConvAlgorithm algorithm, const Floats& weights,
                            const Floats& bias, Scratch& packed) {
        kernels->conv_pack(layer.shape, algorithm, weights.data(), packed.get(), threads(1));
        layer.weights = packed.get();
        layer.bias = bias.data();
      };
      const auto alone = [&](const Layer& layer, ConvAlgorithm algorithm, const Floats& from,
                             const float* add) {
        ConvForward forward;
        forward.shape = layer.shape;
        forward.algorithm = algorithm;
        forward.bias = layer.bias;
        forward.bounds = layer.bounds;
        forward.add = add;
        Floats y(z.n * layer.shape.k * layer.shape.oh() * layer.shape.ow());
        Scratch scratch(kernels->conv_scratch_bytes(layer.shape, ConvPass::kForward, algorithm, 1));
        kernels->conv_forward(forward, from.data(), layer.weights, y.data(), scratch.get(),
                              threads(1));
        return y;
      };
      pack(f.expand, ConvAlgorithm::kDirect, we, be, expand);
      pack(f.depthwise, ConvAlgorithm::kDepthwise, wd, bd, depthwise);
      Floats expected = alone(f.depthwise, ConvAlgorithm::kDepthwise,
                              alone(f.expand, ConvAlgorithm::kDirect, x, nullptr), nullptr);
      const int64_t channels = z.k > 0 ? z.k : z.e, pixels = s.oh() * s.ow();
      Scratch add(kernels->blocked_bytes(z.n, channels, pixels));
      if (z.k > 0) {
        const Floats added = random.floats(z.n * z.k * pixels);
        kernels->to_blocked(z.n, z.k, pixels, added.data(), add.get(), threads(1));
        pack(f.project, ConvAlgorithm::kDirect, wp, bp, project);
        expected = alone(f.project, ConvAlgorithm::kDirect, expected, added.data());
        f.add = add.get();
      }

      Scratch in(kernels->blocked_bytes(z.n, z.c, z.h * z.w));
      kernels->to_blocked(z.n, z.c, z.h * z.w, x.data(), in.get(), threads(1));
      Floats first;
      for (const int count : {1, 2, 3, 16}) {
        Scratch out(kernels->blocked_bytes(z.n, channels, pixels));
        Scratch scratch(kernels->expand_depthwise_scratch_bytes(f, count));
        kernels->expand_depthwise(f, in.get(), out.get(), scratch.get(), threads(count));
        Floats y(expected.size());
        kernels->from_blocked(z.n, channels, pixels, out.get(), y.data(), threads(1));
        if (count == 1) first = y;
        CHECK(same_bits(y, first));
        // Two halves of a sum of up to 200 terms, none above 2, round otherwise than the whole.
        float error = 0;
        for (size_t i = 0; i < y.size(); i++) {
          error = std::max(error, std::fabs(y[i] - expected[i]));
        }
        CHECK(error <= (z.k > 0 ? 1e-5f : 0));
      }
    }
  }
}

}  // namespace
}  // namespace caffe2::kernels::testing
