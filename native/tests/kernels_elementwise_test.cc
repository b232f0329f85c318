#include <cmath>
#include <functional>
#include <limits>

#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

const float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");
// 70001 is more than two blocks of work.
const int64_t kSizes[] = {0, 1, 7, 15, 16, 17, 33, 70001};

using Kernel1 = void (*)(int64_t, const float*, float*, const Parallel&);
using Kernel2 = void (*)(int64_t, const float*, const float*, float*, const Parallel&);

// Distance in units of the last place of the wanted value.
double units(float got, double want) {
  const float nearest = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (got == nearest) return 0;
  if (std::isinf(got) || std::isinf(nearest)) return 1e9;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(want), -126) - 23);
  return std::abs(got - want) / unit;
}

void check_function(Kernel1 Table::* kernel, double (*exact)(double), float low, float high,
                    double most) {
  constexpr int64_t n = 200000;
  Floats x = Random(1).floats(n, low, high);
  for (float v : {0.0f, -0.0f, kInf, -kInf, kNan, 1.0f, 1e-40f, 1e-30f, 3e38f}) x.push_back(v);
  for (const Table* kernels : tables()) {
    INFO(std::string(isa_name(kernels->isa)));
    Floats y(x.size());
    (kernels->*kernel)(static_cast<int64_t>(x.size()), x.data(), y.data(), threads(2));
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < x.size(); i++) {
      const double u = units(y[i], exact(x[i]));
      if (u > worst) {
        worst = u;
        where = x[i];
      }
    }
    INFO("at " << where);
    CHECK(worst <= most);
  }
}

TEST_CASE("exp, log, tanh, sigmoid: error in units of the last place") {
  check_function(&Table::exp, std::exp, -87.3f, 88.7f, 1.5);
  check_function(&Table::exp, std::exp, -110, 95, 1.5);
  check_function(&Table::exp, std::exp, -1, 1, 1.5);
  check_function(&Table::log, std::log, -1, 100, 1.5);
  check_function(&Table::log, std::log, 0.5f, 1.5f, 1.5);
  check_function(&Table::log, std::log, 0, 1e-37f, 1.5);
  check_function(&Table::tanh, std::tanh, -12, 12, 2);
  check_function(&Table::tanh, std::tanh, -1, 1, 2);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  check_function(&Table::sigmoid, sigmoid, -87, 40, 3);
}

// Every size, in place too, and the same bits for any number of threads.
void check_map(const std::vector<int>& threads_counts,
               const std::function<void(const Table&, int64_t, const float*, const float*, float*,
                                        const Parallel&)>& run,
               const std::function<double(float, float)>& want, double bound) {
  for (int64_t n : kSizes) {
    const Floats a = Random(2).floats(n, -3, 3), b = Random(3).floats(n, 0.5f, 3);
    std::vector<double> expected(n), bounds(n, bound);
    for (int64_t i = 0; i < n; i++) expected[i] = want(a[i], b[i]);
    for (const Table* kernels : tables()) {
      for (int count : threads_counts) {
        Floats y(n, kNan), in_place_a = a, in_place_b = b;
        run(*kernels, n, a.data(), b.data(), y.data(), threads(count));
        CHECK(count_wrong(y, expected, bounds) == 0);
        run(*kernels, n, in_place_a.data(), b.data(), in_place_a.data(), threads(count));
        CHECK(same_bits(in_place_a, y));
        run(*kernels, n, a.data(), in_place_b.data(), in_place_b.data(), threads(count));
        CHECK(same_bits(in_place_b, y));
      }
    }
  }
}

TEST_CASE("arithmetic, all sizes, in place") {
  const auto entry = [](Kernel2 Table::* kernel) {
    return [kernel](const Table& t, int64_t n, const float* a, const float* b, float* y,
                    const Parallel& p) { (t.*kernel)(n, a, b, y, p); };
  };
  const auto binary = [](Binary f) {
    return [f](const Table& t, int64_t n, const float* a, const float* b, float* y,
               const Parallel& p) {
      Broadcast shape;
      shape.dims[0] = n;
      t.binary(f, Type::kFloat, shape, a, b, y, p);
    };
  };
  const std::vector<int> counts = {1, 2, 8};
  check_map(counts, binary(Binary::kAdd), [](float a, float b) { return a + b; }, 0);
  check_map(counts, binary(Binary::kSub), [](float a, float b) { return a - b; }, 0);
  check_map(counts, binary(Binary::kMul), [](float a, float b) { return a * b; }, 0);
  check_map(counts, binary(Binary::kDiv), [](float a, float b) { return a / b; }, 0);
  check_map(counts, binary(Binary::kMax), [](float a, float b) { return std::max(a, b); }, 0);
  check_map(counts, binary(Binary::kMin), [](float a, float b) { return std::min(a, b); }, 0);
  check_map(
      counts, entry(&Table::relu_gradient), [](float a, float b) { return a > 0 ? b : 0; }, 0);
  check_map(
      counts, entry(&Table::tanh_gradient),
      [](float y, float dy) { return dy * (1 - static_cast<double>(y) * y); }, 4e-6);
  check_map(
      counts, entry(&Table::sigmoid_gradient),
      [](float y, float dy) { return dy * y * (1 - static_cast<double>(y)); }, 4e-6);
  check_map(
      counts,
      [](const Table& t, int64_t n, const float* a, const float* b, float* y, const Parallel& p) {
        const float* inputs[] = {a, b, a};
        const float weights[] = {0.5f, -2, 3};
        t.weighted_sum(n, 3, inputs, weights, y, p);
      },
      [](float a, float b) { return 3.5 * a - 2.0 * b; }, 4e-6);
  check_map(
      counts,
      [](const Table& t, int64_t n, const float* a, const float* b, float* y, const Parallel& p) {
        const float* inputs[] = {a, b};
        t.weighted_sum(n, 2, inputs, nullptr, y, p);
      },
      [](float a, float b) { return a + b; }, 0);
}

TEST_CASE("relu, scale, fill, axpby, add_row") {
  for (int64_t n : kSizes) {
    const Floats x = Random(4).floats(n);
    for (const Table* kernels : tables()) {
      Floats y(n, kNan), z = x, filled(n);
      kernels->relu(n, x.data(), y.data(), threads(2));
      kernels->scale(n, -0.5f, x.data(), z.data(), threads(2));
      kernels->fill(n, 3, filled.data(), threads(2));
      int wrong = 0;
      for (int64_t i = 0; i < n; i++) {
        wrong += y[i] != std::max(0.0f, x[i]);
        wrong += z[i] != -0.5f * x[i];
        wrong += filled[i] != 3;
      }
      Floats w = y;
      kernels->axpby(n, 2, x.data(), 4, w.data(), threads(2));
      for (int64_t i = 0; i < n; i++) wrong += std::abs(w[i] - (2 * x[i] + 4 * y[i])) > 1e-6;
      CHECK(wrong == 0);
    }
  }
  for (const Table* kernels : tables()) {
    const Floats special = {kNan, -0.0f, -kInf, kInf};
    Floats y(4), dx(4);
    const Floats ones(4, 1);
    kernels->relu(4, special.data(), y.data(), Parallel());
    CHECK(std::isnan(y[0]));
    CHECK(std::signbit(y[1]));
    CHECK(y[2] == 0);
    CHECK(y[3] == kInf);
    kernels->relu_gradient(4, special.data(), ones.data(), dx.data(), Parallel());
    CHECK(dx == Floats{0, 0, 0, 1});
    const Floats x = {1, 2, 3, 4, 5, 6}, b = {10, 20, 30};
    Floats sum(6);
    kernels->add_row(2, 3, x.data(), b.data(), sum.data(), Parallel());
    CHECK(sum == Floats{11, 22, 33, 14, 25, 36});
  }
}

TEST_CASE("momentum: plain and Nesterov, with and without a parameter") {
  const int64_t n = 40000;
  const Floats gradient = Random(5).floats(n), buffer = Random(6).floats(n);
  const Floats parameter = Random(7).floats(n);
  for (const Table* kernels : tables()) {
    for (bool nesterov : {false, true}) {
      for (bool update : {false, true}) {
        Floats m = buffer, step = gradient, p = parameter;  // the step takes the gradient's place
        kernels->momentum_sgd(n, 0.1f, 0.9f, nesterov, step.data(), m.data(), step.data(),
                              update ? p.data() : nullptr, threads(2));
        int wrong = 0;
        for (int64_t i = 0; i < n; i++) {
          const double next = 0.9 * buffer[i] + 0.1 * gradient[i];
          const double change = nesterov ? 1.9 * next - 0.9 * buffer[i] : next;
          wrong += std::abs(m[i] - next) > 3e-7;
          wrong += std::abs(step[i] - change) > 6e-7;
          wrong += std::abs(p[i] - (parameter[i] - (update ? change : 0))) > 6e-7;
        }
        CHECK(wrong == 0);
      }
    }
  }
}

template <class From, class To>
std::vector<To> cast(const Table& t, Type from, Type to, const std::vector<From>& x) {
  std::vector<To> y(x.size());
  t.cast(from, to, static_cast<int64_t>(x.size()), x.data(), y.data(), threads(2));
  return y;
}

TEST_CASE("cast") {
  const Floats x = {1.7f, -1.7f, 300, -300, 0, 3e9f, -3e9f, 1e20f, kNan, 0.3f};
  const std::vector<int32_t> ints = {0, 1, -1, 257, INT32_MAX, INT32_MIN};
  const std::vector<int64_t> longs = {0, -5, int64_t{1} << 40, (int64_t{1} << 32) + 7};
  for (const Table* t : tables()) {
    CHECK(cast<float, int32_t>(*t, Type::kFloat, Type::kInt32, x) ==
          std::vector<int32_t>{1, -1, 300, -300, 0, INT32_MAX, INT32_MIN, INT32_MAX, 0, 0});
    CHECK(cast<float, int64_t>(*t, Type::kFloat, Type::kInt64, x) ==
          std::vector<int64_t>{1, -1, 300, -300, 0, 3000000000, -3000000000, INT64_MAX, 0, 0});
    CHECK(cast<float, uint8_t>(*t, Type::kFloat, Type::kUint8, x) ==
          std::vector<uint8_t>{1, 0, 255, 0, 0, 255, 0, 255, 0, 0});
    CHECK(cast<float, uint8_t>(*t, Type::kFloat, Type::kBool, x) ==
          std::vector<uint8_t>{1, 1, 1, 1, 0, 1, 1, 1, 1, 1});
    CHECK(cast<int32_t, uint8_t>(*t, Type::kInt32, Type::kUint8, ints) ==
          std::vector<uint8_t>{0, 1, 255, 1, 255, 0});
    CHECK(cast<int32_t, uint8_t>(*t, Type::kInt32, Type::kBool, ints) ==
          std::vector<uint8_t>{0, 1, 1, 1, 1, 1});
    CHECK(cast<int32_t, float>(*t, Type::kInt32, Type::kFloat, ints) ==
          Floats{0, 1, -1, 257, 2147483648.0f, -2147483648.0f});
    CHECK(cast<int64_t, int32_t>(*t, Type::kInt64, Type::kInt32, longs) ==
          std::vector<int32_t>{0, -5, 0, 7});
    CHECK(cast<int64_t, float>(*t, Type::kInt64, Type::kFloat, longs) ==
          Floats{0, -5, 1099511627776.0f, 4294967296.0f});
    CHECK(cast<uint8_t, float>(*t, Type::kBool, Type::kFloat, {0, 1}) == Floats{0, 1});
    CHECK(cast<uint8_t, int64_t>(*t, Type::kUint8, Type::kInt64, {0, 200}) ==
          std::vector<int64_t>{0, 200});
    Floats many(100000, 2.5f);
    CHECK(cast<float, int32_t>(*t, Type::kFloat, Type::kInt32, many) ==
          std::vector<int32_t>(100000, 2));
  }
}

}  // namespace
}  // namespace caffe2::kernels::testing
