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

Floats forward(const Table& kernels, const Problem& p, ConvAlgorithm algorithm, bool bias,
               bool relu, int count) {
  Floats y(p.y.value.size(), std::nanf(""));
  Scratch packed(kernels.conv_packed_bytes(p.s, algorithm));
  kernels.conv_pack(p.s, algorithm, p.w.data(), packed.get(), threads(count));
  Scratch scratch(kernels.conv_scratch_bytes(p.s, ConvPass::kForward, algorithm, count));
  kernels.conv_forward(p.s, algorithm, p.x.data(), packed.get(), bias ? p.bias.data() : nullptr,
                       relu, y.data(), scratch.get(), threads(count));
  return y;
}

Floats forward_blocked(const Table& kernels, const Problem& p, int count) {
  const ConvShape& s = p.s;
  const int64_t pixels = s.oh() * s.ow();
  const ConvAlgorithm direct = ConvAlgorithm::kDirect;
  Scratch packed(kernels.conv_packed_bytes(s, direct));
  kernels.conv_pack(s, direct, p.w.data(), packed.get(), threads(count));
  Scratch scratch(kernels.conv_scratch_bytes(s, ConvPass::kForward, direct, count));
  Scratch x(kernels.blocked_bytes(s.n, s.c, s.h * s.w)), y(kernels.blocked_bytes(s.n, s.k, pixels));
  kernels.to_blocked(s.n, s.c, s.h * s.w, p.x.data(), x.get(), threads(count));
  kernels.conv_forward_blocked(s, kernels.conv_blocked_input(s) ? x.get() : p.x.data(),
                               packed.get(), p.bias.data(), false, y.get(), scratch.get(),
                               threads(count));
  Floats plain(p.y.value.size(), std::nanf(""));
  kernels.from_blocked(s.n, s.k, pixels, y.get(), plain.data(), threads(count));
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

void check(const Problem& p, const std::vector<int>& counts) {
  const ConvShape& s = p.s;
  INFO(describe(s));
  const int64_t terms = s.c / s.group * s.kh * s.kw, pixels = s.oh() * s.ow();
  std::vector<double> with_bias = p.y.value, rectified = p.y.value;
  std::vector<double> y_bound = p.y.bound(terms);
  for (size_t i = 0; i < with_bias.size(); i++) {
    with_bias[i] += p.bias[i / pixels % s.k];
    rectified[i] = std::max(0.0, rectified[i]);
    y_bound[i] += 6e-8 * (terms + 2);
  }
  const std::vector<double> dx_bound = p.dx.bound(s.k / s.group * s.kh * s.kw);
  const std::vector<double> dw_bound = p.dw.bound(s.n * pixels);
  for (const Table* kernels : tables()) {
    INFO(std::string(isa_name(kernels->isa)));
    for (ConvPass pass :
         {ConvPass::kForward, ConvPass::kBackwardData, ConvPass::kBackwardWeights}) {
      CHECK(kernels->conv_supports(s, pass, kernels->conv_algorithm(s, pass)));
      CHECK(kernels->conv_supports(s, pass, ConvAlgorithm::kIm2col));
    }
    for (ConvAlgorithm algorithm : {ConvAlgorithm::kDirect, ConvAlgorithm::kIm2col}) {
      INFO(std::string(algorithm == ConvAlgorithm::kDirect ? "direct" : "im2col"));
      Floats y1, dx1, dw1;
      for (int count : counts) {
        INFO("threads " << count);
        if (kernels->conv_supports(s, ConvPass::kForward, algorithm)) {
          const Floats y = forward(*kernels, p, algorithm, true, false, count);
          CHECK(count_wrong(y, with_bias, y_bound) == 0);
          if (count == 1) y1 = y;
          CHECK(same_bits(y, y1));
          CHECK(count_wrong(forward(*kernels, p, algorithm, false, true, count), rectified,
                            y_bound) == 0);
          if (algorithm == ConvAlgorithm::kDirect) {
            CHECK(count_wrong(forward_blocked(*kernels, p, count), with_bias, y_bound) == 0);
          }
        }
        if (kernels->conv_supports(s, ConvPass::kBackwardData, algorithm)) {
          const Floats dx = backward_data(*kernels, p, algorithm, count);
          CHECK(count_wrong(dx, p.dx.value, dx_bound) == 0);
          if (count == 1) dx1 = dx;
          CHECK(same_bits(dx, dx1));
        }
        if (kernels->conv_supports(s, ConvPass::kBackwardWeights, algorithm)) {
          const Floats dw = backward_weights(*kernels, p, algorithm, count);
          CHECK(count_wrong(dw, p.dw.value, dw_bound) == 0);
          if (count == 1) dw1 = dw;
          CHECK(same_bits(dw, dw1));
        }
      }
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
  check(Problem(shape(1, 4, 40, 70, 5, 3, 1, 1), seed++), counts);   // more than 512 pixels
  check(Problem(shape(2, 5, 3, 600, 3, 3, 1, 1), seed++), counts);   // long rows
  check(Problem(shape(1, 60, 6, 6, 600, 3, 1, 1), seed++), counts);  // long reductions
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
        CHECK(kernels->blocked_bytes(n, c, hw) == n * channels * hw * sizeof(float));
        Scratch blocked(kernels->blocked_bytes(n, c, hw));
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

}  // namespace
}  // namespace caffe2::kernels::testing
