#include <algorithm>
#include <cmath>

#include "kernels/int8.h"
#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

using Bytes = std::vector<uint8_t>;
using Ints = std::vector<int32_t>;

// Every table of this processor, with dot products of bytes and without.
std::vector<const Int8Table*> int8_tables() {
  std::vector<const Int8Table*> all;
  for (const Table* table : tables()) {
    for (bool dot : {false, true}) {
      const Int8Table* found = int8_table(table->isa, dot);
      if (all.empty() || found != all.back()) all.push_back(found);
    }
  }
  return all;
}

Bytes bytes(Random& random, int64_t n) {
  Bytes all(static_cast<size_t>(n));
  for (uint8_t& v : all) v = static_cast<uint8_t>(random.integer(0, 255));
  return all;
}

// value / 2^shift, halves away from zero.
int64_t divided(__int128 value, int shift) {
  const __int128 half = (__int128{1} << shift) / 2, size = value < 0 ? -value : value;
  const __int128 rounded = (size + half) >> shift;
  return static_cast<int64_t>(value < 0 ? -rounded : rounded);
}

uint8_t within(int64_t value, int32_t low) {
  return static_cast<uint8_t>(std::clamp<int64_t>(value, low, 255));
}

uint8_t requantized(int32_t sum, const Requantization& to) {
  if (to.even) {
    const double place = std::nearbyint(static_cast<float>(sum) * to.factor) + to.zero_point;
    if (!(place > to.low)) return static_cast<uint8_t>(to.low);
    return static_cast<uint8_t>(std::min(place, 255.0));
  }
  const __int128 product = __int128{sum} * to.multiplier;
  const __int128 first = (product + (__int128{1} << (to.low_bits - 1))) >> to.low_bits;
  return within(divided(first, to.shift) + to.zero_point, to.low);
}

Requantization any_requantization(Random& random) {
  Requantization to;
  to.even = random.integer(0, 3) == 0;
  to.factor = std::ldexp(1.f + random.floats(1, 0, 1)[0], static_cast<int>(random.integer(-40, 4)));
  to.multiplier = static_cast<int32_t>(random.integer(1 << 30, INT32_MAX - 127));
  to.low_bits = random.integer(0, 3) == 0 ? static_cast<int>(random.integer(1, 31)) : 31;
  to.shift = to.low_bits < 31 ? 0 : static_cast<int>(random.integer(0, 31));
  if (random.coin() && to.low_bits == 31) to.shift = static_cast<int>(random.integer(0, 14));
  to.zero_point = static_cast<int32_t>(random.coin() ? random.integer(0, 255) : 0);
  to.low = random.coin() ? to.zero_point : 0;
  return to;
}

Bytes convolved(const Int8Conv& conv, const Bytes& x, const Bytes& w) {
  const ConvShape& s = conv.shape;
  const int64_t channels = s.c / s.group, filters = s.k / s.group;
  Bytes y;
  for (int64_t i = 0; i < s.n * s.oh() * s.ow(); i++) {
    for (int64_t k = 0; k < s.k; k++) {
      uint32_t sum = conv.bias ? static_cast<uint32_t>(conv.bias[k]) : 0;
      for (int64_t tap = 0; tap < s.kh * s.kw; tap++) {
        const int64_t row = i / s.ow() % s.oh() * s.stride_h - s.pad_t + tap / s.kw * s.dilation_h;
        const int64_t column = i % s.ow() * s.stride_w - s.pad_l + tap % s.kw * s.dilation_w;
        if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
        const int64_t image = i / (s.oh() * s.ow()) * s.h;
        const int64_t from = ((image + row) * s.w + column) * s.c + k / filters * channels;
        for (int64_t c = 0; c < channels; c++) {
          sum += static_cast<uint32_t>((x[from + c] - conv.x_zero) *
                                       (w[(k * s.kh * s.kw + tap) * channels + c] - conv.w_zero));
        }
      }
      y.push_back(requantized(static_cast<int32_t>(sum), conv.to));
    }
  }
  return y;
}

void check(const ConvShape& s, Random& random) {
  INFO("x " << s.n << " " << s.h << " " << s.w << " " << s.c << " filters " << s.k << " " << s.kh
            << " " << s.kw << " stride " << s.stride_h << " " << s.stride_w << " pads " << s.pad_t
            << " " << s.pad_l << " " << s.pad_b << " " << s.pad_r << " dilation " << s.dilation_h
            << " " << s.dilation_w << " group " << s.group);
  const auto zero_point = [&] {
    return static_cast<int32_t>(random.coin() ? random.integer(0, 255)
                                              : random.integer(0, 2) * 127);
  };
  Int8Conv conv;
  conv.shape = s;
  conv.x_zero = zero_point(), conv.w_zero = random.coin() ? 128 : zero_point();
  conv.to = any_requantization(random);
  const Bytes x = bytes(random, s.n * s.h * s.w * s.c);
  const Bytes w = bytes(random, s.k * s.kh * s.kw * (s.c / s.group));
  Ints bias;
  for (int64_t k = 0; k < s.k; k++) {
    bias.push_back(static_cast<int32_t>(random.integer(-100000, 100000)));
  }
  if (random.coin()) conv.bias = bias.data();
  const Bytes expected = convolved(conv, x, w);
  for (const Int8Table* kernels : int8_tables()) {
    for (int count : {1, 5}) {
      Scratch packed(kernels->conv_packed_bytes(s)), scratch(kernels->conv_scratch_bytes(s, count));
      Bytes y(expected.size() + 64, 77);
      kernels->conv_pack(s, conv.w_zero, w.data(), packed.get(), threads(count));
      kernels->conv(conv, x.data(), packed.get(), y.data(), scratch.get(), threads(count));
      CHECK(Bytes(y.end() - 64, y.end()) == Bytes(64, 77));
      y.resize(expected.size());
      CHECK(y == expected);
    }
  }
}

TEST_CASE("int8: convolutions of all kinds") {
  Random random(1);
  for (int i = 0; i < 250; i++) {
    const auto small = [&](int64_t most) { return random.integer(1, most); };
    ConvShape s;
    s.group = random.integer(0, 2) == 0 ? small(3) : 1;
    s.c = s.group * small(random.coin() ? 5 : 70);
    s.k = s.group * small(random.coin() ? 5 : 70);
    if (random.integer(0, 2) == 0) s.k = s.c = s.group = small(40);
    s.kh = random.coin() ? 1 : small(3), s.kw = random.coin() ? s.kh : small(5);
    s.stride_h = small(2), s.stride_w = random.coin() ? s.stride_h : small(3);
    s.dilation_h = small(2), s.dilation_w = small(2);
    s.pad_t = random.integer(0, 2), s.pad_l = random.integer(0, 7);
    s.pad_b = random.integer(0, 7), s.pad_r = random.integer(0, 2);
    if (random.coin()) s.pad_t = s.pad_l = s.pad_b = s.pad_r = 0;
    s.n = small(2);
    s.h = s.dilation_h * (s.kh - 1) + small(6), s.w = s.dilation_w * (s.kw - 1) + small(20);
    check(s, random);
  }
}

TEST_CASE("int8: fully connected layers and many rows") {
  Random random(2);
  for (int64_t rows : {1, 13, 14, 15, 450, 500}) {
    for (int64_t depth : {0, 1, 3, 4, 64, 130}) {
      ConvShape s;
      s.w = rows, s.c = depth, s.k = random.integer(1, 70);
      check(s, random);
    }
  }
}

TEST_CASE("int8: the largest sums") {
  ConvShape s;
  s.w = 2, s.c = 33000, s.k = 2;
  for (int32_t zero : {0, 255}) {
    Int8Conv conv;
    conv.shape = s;
    conv.x_zero = zero, conv.w_zero = 255 - zero;
    conv.to.multiplier = 1 << 30;
    conv.to.shift = 23;
    conv.to.zero_point = 128;
    const Bytes x(66000, static_cast<uint8_t>(255 - zero)), w(66000, static_cast<uint8_t>(zero));
    for (const Int8Table* kernels : int8_tables()) {
      Scratch packed(kernels->conv_packed_bytes(s)), scratch(kernels->conv_scratch_bytes(s, 1));
      Bytes y(4);
      kernels->conv_pack(s, conv.w_zero, w.data(), packed.get(), Parallel());
      kernels->conv(conv, x.data(), packed.get(), y.data(), scratch.get(), Parallel());
      CHECK(y == convolved(conv, x, w));
    }
  }
}

TEST_CASE("int8: requantization") {
  Random random(3);
  for (int i = 0; i < 300; i++) {
    const Requantization to = any_requantization(random);
    Ints sums = {0, 1, -1, INT32_MAX, INT32_MIN, INT32_MAX - 1, 1 << 30, -(1 << 30)};
    const int64_t more = random.integer(0, 40);
    for (int64_t k = 0; k < more; k++) {
      // Around the halves of small results, too.
      const auto bits = static_cast<int>(random.integer(1, 31));
      sums.push_back(static_cast<int32_t>(
          random.integer(-(int64_t{1} << bits), int64_t{1} << bits) / (random.coin() ? 1 : 2)));
    }
    const auto n = static_cast<int64_t>(sums.size());
    Bytes expected;
    for (int32_t sum : sums) expected.push_back(requantized(sum, to));
    for (const Int8Table* kernels : int8_tables()) {
      Bytes y(sums.size());
      kernels->requantize(to, n, sums.data(), y.data(), Parallel());
      CHECK(y == expected);
    }
  }
}

TEST_CASE("int8: halves") {
  // Sums of 1/4 each: halves go away from zero, or to even.
  Requantization away, even;
  away.multiplier = 1 << 30, away.shift = 1;
  away.zero_point = even.zero_point = 100;
  even.factor = 0.25, even.even = true;
  const Ints sums = {-10, -6, -2, 2, 6, 10};
  for (const Int8Table* kernels : int8_tables()) {
    Bytes y(6);
    kernels->requantize(away, 6, sums.data(), y.data(), Parallel());
    CHECK(y == Bytes{97, 98, 99, 101, 102, 103});
    kernels->requantize(even, 6, sums.data(), y.data(), Parallel());
    CHECK(y == Bytes{98, 98, 100, 100, 102, 102});
  }
}

TEST_CASE("int8: sums") {
  Random random(4);
  for (int i = 0; i < 200; i++) {
    Int8Sum s;
    s.count = static_cast<int>(random.integer(1, 3));
    const int64_t n = random.integer(0, 100);
    const auto bits = static_cast<int>(random.coin() ? 22 : random.integer(0, 30));
    Ints multipliers;
    std::vector<Bytes> inputs;
    std::vector<const uint8_t*> pointers;
    for (int k = 0; k < s.count; k++) {
      multipliers.push_back(random.coin() ? 1 << bits
                                          : static_cast<int32_t>(random.integer(0, 1 << bits)));
      s.offset -= multipliers.back() * random.integer(0, 255);
      inputs.push_back(bytes(random, n));
    }
    for (const Bytes& input : inputs) pointers.push_back(input.data());
    s.multipliers = multipliers.data();
    s.shift = static_cast<int>(random.coin() ? random.integer(0, 62) : random.integer(18, 24));
    s.zero_point = static_cast<int32_t>(random.integer(0, 255));
    s.low = random.coin() ? s.zero_point : 0;
    Bytes expected;
    for (int64_t j = 0; j < n; j++) {
      __int128 sum = s.offset;
      for (int k = 0; k < s.count; k++) sum += int64_t{inputs[k][j]} * multipliers[k];
      expected.push_back(within(divided(sum, s.shift) + s.zero_point, s.low));
    }
    for (const Int8Table* kernels : int8_tables()) {
      Bytes y(expected.size());
      kernels->sum(s, n, pointers.data(), y.data(), Parallel());
      CHECK(y == expected);
    }
  }
}

TEST_CASE("int8: quantizing and back") {
  Random random(5);
  for (int64_t n : {0, 1, 7, 15, 33, 70000}) {
    Floats x = random.floats(n, -300, 300);
    const float special[] = {0.5f, 1.5f, -0.5f, 1e30f, -1e30f, INFINITY, -INFINITY, NAN};
    for (int64_t i = 0; i < n && n < 100; i++) {
      if (random.coin()) x[i] = special[random.integer(0, 7)];
    }
    const auto zero = static_cast<int32_t>(random.integer(0, 255));
    Bytes expected;
    for (float v : x) {
      const float place = std::nearbyint(v * 0.7f) + static_cast<float>(zero);
      expected.push_back(place > 0 ? static_cast<uint8_t>(std::min(place, 255.f)) : 0);
    }
    Floats back;
    for (uint8_t v : expected) back.push_back(static_cast<float>(v - zero) * 0.3f);
    for (const Int8Table* kernels : int8_tables()) {
      Bytes y(expected.size());
      kernels->quantize(0.7f, 0, zero, n, x.data(), y.data(), threads(3));
      CHECK(y == expected);
      Floats z(y.size());
      kernels->dequantize(0.3f, zero, n, y.data(), z.data(), threads(3));
      CHECK(same_bits(z, back));
    }
  }
}

TEST_CASE("int8: pools") {
  Random random(6);
  for (int i = 0; i < 150; i++) {
    Int8Pool p;
    PoolShape& s = p.shape;
    const auto small = [&](int64_t most) { return random.integer(1, most); };
    p.channels = random.integer(0, 9) == 0 ? 300 : small(40);
    s.planes = small(2), s.h = small(7), s.w = small(7);
    s.kh = small(4), s.kw = small(4);
    s.stride_h = small(3), s.stride_w = small(3), s.dilation_h = small(2), s.dilation_w = small(2);
    s.pad_t = random.integer(0, 5), s.pad_l = random.integer(0, 2);
    s.oh = small(5), s.ow = small(5);
    p.x_zero = static_cast<int32_t>(random.integer(0, 255));
    p.zero_point = static_cast<int32_t>(random.integer(0, 255));
    p.low = random.coin() ? p.zero_point : 0;
    p.multiplier = random.integer(0, 1 << 24);
    p.shift = static_cast<int>(random.coin() ? random.integer(0, 62) : random.integer(22, 28));
    const Bytes x = bytes(random, s.planes * s.h * s.w * p.channels);
    Bytes largest, average;
    for (int64_t place = 0; place < s.planes * s.oh * s.ow; place++) {
      for (int64_t c = 0; c < p.channels; c++) {
        int64_t sum = 0;
        uint8_t most = static_cast<uint8_t>(p.low);
        for (int64_t tap = 0; tap < s.kh * s.kw; tap++) {
          const int64_t row =
              place / s.ow % s.oh * s.stride_h - s.pad_t + tap / s.kw * s.dilation_h;
          const int64_t column = place % s.ow * s.stride_w - s.pad_l + tap % s.kw * s.dilation_w;
          if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
          const int64_t image = place / (s.oh * s.ow) * s.h;
          const uint8_t v = x[((image + row) * s.w + column) * p.channels + c];
          sum += v - p.x_zero;
          most = std::max(most, v);
        }
        largest.push_back(most);
        average.push_back(
            within(divided(__int128{sum} * p.multiplier, p.shift) + p.zero_point, p.low));
      }
    }
    for (const Int8Table* kernels : int8_tables()) {
      Bytes y(largest.size());
      kernels->max_pool(p, x.data(), y.data(), threads(3));
      CHECK(y == largest);
      kernels->average_pool(p, x.data(), y.data(), threads(3));
      CHECK(y == average);
    }
  }
}

}  // namespace
}  // namespace caffe2::kernels::testing
