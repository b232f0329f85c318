#include <cmath>
#include <functional>
#include <limits>

#include "kernels_testing.h"

namespace caffe2::kernels::testing {
namespace {

const float kInf = std::numeric_limits<float>::infinity();

// Two dimensions of a broadcast operand, `rows` x `columns`, with distances of its own.
void check_broadcast(int64_t rows, int64_t columns, int64_t a_row, int64_t a_column, int64_t b_row,
                     int64_t b_column) {
  Broadcast shape;
  shape.rank = 2;
  shape.dims[0] = rows;
  shape.dims[1] = columns;
  shape.a[0] = a_row;
  shape.a[1] = a_column;
  shape.b[0] = b_row;
  shape.b[1] = b_column;
  const Floats a = Random(1).floats(rows * columns, -3, 3);
  const Floats b = Random(2).floats(rows * columns, 0.5f, 3);
  for (const Table* kernels : tables()) {
    for (int count : {1, 3}) {
      Floats y(a.size());
      std::vector<uint8_t> less(a.size());
      kernels->binary(Binary::kSub, Type::kFloat, shape, a.data(), b.data(), y.data(),
                      threads(count));
      kernels->binary(Binary::kLess, Type::kFloat, shape, a.data(), b.data(), less.data(),
                      threads(count));
      int wrong = 0;
      for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
          const float u = a[r * a_row + c * a_column], v = b[r * b_row + c * b_column];
          wrong += y[r * columns + c] != u - v;
          wrong += less[r * columns + c] != (u < v);
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("binary: rows, columns, scalars; long rows and many of them") {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {3, 5}, {7, 33}, {40000, 3}, {2, 70001}, {5, 0}, {0, 5}}) {
    check_broadcast(rows, columns, columns, 1, columns, 1);
    check_broadcast(rows, columns, columns, 1, 0, 1);
    check_broadcast(rows, columns, columns, 1, 1, 0);
    check_broadcast(rows, columns, 0, 1, columns, 1);
    check_broadcast(rows, columns, 1, 0, 0, 1);
  }
}

template <class T>
std::vector<T> apply(const Table& t, Binary f, Type type, const std::vector<T>& a,
                     const std::vector<T>& b) {
  Broadcast shape;
  shape.dims[0] = static_cast<int64_t>(a.size());
  std::vector<T> y(a.size());
  t.binary(f, type, shape, a.data(), b.data(), y.data(), Parallel());
  return y;
}

TEST_CASE("binary: integers wrap around, quotients go toward zero, a NaN stays") {
  const int32_t least = std::numeric_limits<int32_t>::min();
  const int64_t smallest = std::numeric_limits<int64_t>::min();
  for (const Table* t : tables()) {
    using Ints = std::vector<int32_t>;
    using Longs = std::vector<int64_t>;
    const Ints a = {7, -7, least, least}, b = {2, 2, -1, 1};
    CHECK(apply(*t, Binary::kDiv, Type::kInt32, a, b) == Ints{3, -3, least, least});
    CHECK(apply(*t, Binary::kSub, Type::kInt32, a, b) == Ints{5, -9, least + 1, 2147483647});
    CHECK(apply(*t, Binary::kXor, Type::kInt32, a, b) == Ints{5, -5, 2147483647, least + 1});
    CHECK(apply(*t, Binary::kDiv, Type::kInt64, Longs{smallest, -9}, Longs{-1, 4}) ==
          Longs{smallest, -2});
    CHECK(apply(*t, Binary::kMul, Type::kInt64, Longs{smallest, 3}, Longs{-1, -4}) ==
          Longs{smallest, -12});
    const Floats nan = {std::nanf(""), 1, kInf}, other = {1, std::nanf(""), -kInf};
    for (Binary f : {Binary::kMax, Binary::kMin}) {
      const Floats y = apply(*t, f, Type::kFloat, nan, other);
      CHECK(std::isnan(y[0]));
      CHECK(std::isnan(y[1]));
      CHECK(y[2] == (f == Binary::kMax ? kInf : -kInf));
    }
    CHECK(!t->binary_supports(Binary::kAnd, Type::kFloat));
    CHECK(!t->binary_supports(Binary::kMax, Type::kInt32));
    CHECK(t->binary_supports(Binary::kAnd, Type::kBool));
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double normal_below(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); }

struct Smooth {
  Unary f;
  float alpha, beta;
  std::function<double(double)> value, slope;  // the slope by x
  bool by_output;
  double relative;  // error allowed, as a share of the value
};

// What is computed with elementary functions: errors relative to the value itself, far out too.
TEST_CASE("unary: values and slopes") {
  const auto mish_slope = [](double x) {
    const double t = std::tanh(softplus(x));
    return t + x * sigmoid(x) * (1 - t * t);
  };
  const Smooth all[] = {
      {Unary::kErf, 0, 0, [](double x) { return std::erf(x); },
       [](double x) { return 2 / std::sqrt(M_PI) * std::exp(-x * x); }, false, 4e-6},
      {Unary::kElu, 1.5f, 0, [](double x) { return x < 0 ? 1.5 * std::expm1(x) : x; },
       [](double x) { return x < 0 ? 1.5 * std::exp(x) : 1; }, true, 5e-7},
      {Unary::kSoftplus, 0, 0, softplus, sigmoid, true, 1e-6},
      {Unary::kSoftsign, 0, 0, [](double x) { return x / (1 + std::abs(x)); },
       [](double x) { return 1 / std::pow(1 + std::abs(x), 2); }, false, 5e-7},
      {Unary::kSwish, 0, 0, [](double x) { return x * sigmoid(x); },
       [](double x) { return sigmoid(x) + x * sigmoid(x) * (1 - sigmoid(x)); }, false, 2e-6},
      {Unary::kMish, 0, 0, [](double x) { return x * std::tanh(softplus(x)); }, mish_slope, false,
       2e-6},
      {Unary::kGelu, 0, 0, [](double x) { return x * normal_below(x); },
       [](double x) { return normal_below(x) + x * normal_density(x); }, false, 2e-5},
  };
  Floats x = Random(3).floats(20000, -12, 12);
  for (const float v : {0.f, 1e-7f, -1e-7f, 1e-3f, -1e-3f, 0.35f, -0.35f, 1.f, -1.f}) {
    x.push_back(v);
  }
  const auto n = static_cast<int64_t>(x.size());
  const Floats ones(x.size(), 1);
  for (const Smooth& s : all) {
    INFO(static_cast<int>(s.f));
    for (const Table* t : tables()) {
      Floats y(x.size()), dx(x.size());
      t->unary(s.f, s.alpha, s.beta, n, x.data(), y.data(), threads(2));
      t->unary_gradient(s.f, s.alpha, s.beta, n, s.by_output ? y.data() : x.data(), ones.data(),
                        dx.data(), threads(2));
      int wrong = 0, wrong_slopes = 0;
      for (size_t i = 0; i < x.size(); i++) {
        const double value = s.value(x[i]), slope = s.slope(x[i]);
        wrong += std::abs(y[i] - value) > s.relative * std::abs(value) + 1e-37;
        // Slopes that are differences have an error of their own.
        wrong_slopes += std::abs(dx[i] - slope) > 1e-5 * std::abs(slope) + 1e-6;
      }
      CHECK(wrong == 0);
      CHECK(wrong_slopes == 0);
    }
  }
}

TEST_CASE("unary: a NaN stays, infinities go to the limit") {
  const Floats x = {std::nanf(""), kInf, -kInf};
  const struct {
    Unary f;
    float at_infinity, at_minus_infinity;
  } all[] = {{Unary::kErf, 1, -1},       {Unary::kElu, kInf, -2},   {Unary::kSoftplus, kInf, 0},
             {Unary::kClip, 3, 2},       {Unary::kAbs, kInf, kInf}, {Unary::kSelu, kInf, -6},
             {Unary::kHardSigmoid, 1, 0}};
  for (const Table* t : tables()) {
    for (const auto& s : all) {
      INFO(static_cast<int>(s.f));
      Floats y(3);
      t->unary(s.f, 2, 3, 3, x.data(), y.data(), Parallel());
      CHECK(std::isnan(y[0]));
      CHECK(y[1] == s.at_infinity);
      CHECK(y[2] == s.at_minus_infinity);
    }
  }
}

}  // namespace
}  // namespace caffe2::kernels::testing
