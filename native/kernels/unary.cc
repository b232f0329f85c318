// Functions of one element and their gradients.
#include "kernels/functions.h"
#include "kernels/map.h"
#include "kernels/math.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

FORCE_INLINE vf abs(vf x) { return as_float(as_int(x) & 0x7fffffff); }
// a, with the sign of b.
FORCE_INLINE vf with_sign(vf a, vf b) {
  return as_float(as_int(a) | (as_int(b) & (int32_t)0x80000000));
}
// -1, 0 or 1; a NaN stays one.
FORCE_INLINE vf sign(vf x) { return select(x > 0.f, splat(1), select(x < 0.f, splat(-1), x)); }

// log(1 + x) for 0 <= x <= 1: what 1 + x loses is added to its logarithm.
FORCE_INLINE vf log1p(vf x) {
  const vf sum = 1.f + x;
  return log(sum) - ((sum - 1.f) - x) / sum;
}

// e^x - 1.
FORCE_INLINE vf expm1(vf x) {
  vf p = splat(1 / 5040.f);
  for (const float c : {1 / 720.f, 1 / 120.f, 1 / 24.f, 1 / 6.f, 1 / 2.f, 1.f}) p = p * x + c;
  return select(abs(x) < splat(0.35f), p * x, exp(x) - 1.f);
}

// 1 - erf(x) = t * e^(-x^2 + P(t)), t = 2 / (2 + x), for x >= 0.95; the coefficients of P and of
// erf below are least squares fits on Chebyshev nodes. At most 8e-6 of the value off.
FORCE_INLINE vf erfc_large(vf x) {
  const vf t = 2.f / (2.f + x);
  vf p = splat(-0.17337572574615479f);
  p = p * t + 0.7344672679901123f;
  p = p * t - 1.0181238651275635f;
  p = p * t + 0.39064979553222656f;
  p = p * t - 0.0679204910993576f;
  p = p * t + 0.4031628668308258f;
  p = p * t + 0.9971523284912109f;
  p = p * t - 1.2653917074203491f;
  return t * exp(p - x * x);
}
// The error function for |x| <= 1, at most 3 units off.
FORCE_INLINE vf erf_small(vf x) {
  const vf z = x * x;
  vf p = splat(7.882497448008507e-05f);
  p = p * z - 0.0008018855005502701f;
  p = p * z + 0.005189312156289816f;
  p = p * z - 0.02685432881116867f;
  p = p * z + 0.11283597350120544f;
  p = p * z - 0.3761262595653534f;
  p = p * z + 1.1283791065216064f;
  return p * x;
}
FORCE_INLINE vf erf(vf x) {
  const vf a = abs(x);
  return select(a < splat(1), erf_small(x), with_sign(1.f - erfc_large(a), x));
}

constexpr float SQRT_HALF = 0.707106781f;
// The normal distribution: how much of it lies below x, and its density at x.
FORCE_INLINE vf normal_below(vf x) {
  const vf z = abs(x) * SQRT_HALF, tail = 0.5f * erfc_large(z);
  const vf far = select(x < 0.f, tail, 1.f - tail);
  return select(z < splat(1), 0.5f + 0.5f * erf_small(x * SQRT_HALF), far);
}
FORCE_INLINE vf normal_density(vf x) { return 0.398942280f * exp(-0.5f * x * x); }

// (1 + tanh(u)) / 2 = sigmoid(2 u) of this is about normal_below(x).
FORCE_INLINE vf gelu_inner(vf x) { return 0.797884561f * x * (1.f + 0.044715f * x * x); }

// tanh(log(1 + e^x)) = n (n + 2) / (n (n + 2) + 2) with n = e^x.
FORCE_INLINE vf tanh_softplus(vf x) {
  const vf n = exp(x), product = n * (n + 2.f);
  return select(x > 20.f, splat(1), product / (product + 2.f));
}

FORCE_INLINE vf clip(vf x, float low, float high) { return min(splat(high), max(splat(low), x)); }

// Loops that the compiler turns into vector instructions of its own.
template <class F>
FORCE_INLINE void each(int64_t n, const float* x, float* y, const Parallel& parallel, const F& f) {
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    ELEMENTS_APART
    for (int64_t i = begin; i < end; i++) y[i] = f(x[i]);
  });
}

}  // namespace

void unary(Unary f, float alpha, float beta, int64_t n, const float* x, float* y,
           const Parallel& parallel) {
  const auto each_of = [&](const auto& g) { each(n, x, y, parallel, g); };
  const auto map_of = [&](const auto& g) { map(parallel, n, y, g, x); };
  switch (f) {
    case Unary::kSquare:
      return map_of([](vf v) { return v * v; });
    case Unary::kSqrt:
      return each_of([](float v) { return __builtin_sqrtf(v); });
    case Unary::kRsqrt:
      return each_of([](float v) { return 1 / __builtin_sqrtf(v); });
    case Unary::kReciprocal:
      return map_of([](vf v) { return 1.f / v; });
    case Unary::kFloor:
      return each_of([](float v) { return __builtin_floorf(v); });
    case Unary::kCeil:
      return each_of([](float v) { return __builtin_ceilf(v); });
    case Unary::kAbs:
      return map_of([](vf v) { return abs(v); });
    case Unary::kErf:
      return map_of([](vf v) { return erf(v); });
    case Unary::kClip:
      return map_of([=](vf v) { return clip(v, alpha, beta); });
    case Unary::kLeakyRelu:
      return map_of([=](vf v) { return select(v < 0.f, alpha * v, v); });
    case Unary::kThresholdedRelu:
      return map_of([=](vf v) { return select(v > alpha, v, vf{}); });
    case Unary::kHardSigmoid:
      return map_of([=](vf v) { return clip(alpha * v + beta, 0, 1); });
    case Unary::kElu:
      return map_of([=](vf v) { return select(v < 0.f, alpha * expm1(v), v); });
    case Unary::kSelu:
      return map_of([=](vf v) { return beta * select(v < 0.f, alpha * expm1(v), v); });
    case Unary::kSoftplus:
      return map_of([](vf v) { return max(vf{}, v) + log1p(exp(-abs(v))); });
    case Unary::kSoftsign:
      return map_of([](vf v) { return v / (1.f + abs(v)); });
    case Unary::kSwish:
      return map_of([](vf v) { return v * sigmoid(v); });
    case Unary::kMish:
      return map_of([](vf v) { return v * tanh_softplus(v); });
    case Unary::kGelu:
      return map_of([](vf v) { return v * normal_below(v); });
    case Unary::kFastGelu:
      return map_of([](vf v) { return v * sigmoid(2.f * gelu_inner(v)); });
  }
}

void unary_gradient(Unary f, float alpha, float beta, int64_t n, const float* v, const float* dy,
                    float* dx, const Parallel& parallel) {
  const auto map_of = [&](const auto& g) { map(parallel, n, dx, g, v, dy); };
  switch (f) {
    case Unary::kRsqrt:
      return map_of([](vf y, vf d) { return -0.5f * d * (y * y * y); });
    case Unary::kReciprocal:
      return map_of([](vf y, vf d) { return -d * (y * y); });
    case Unary::kAbs:
      return map_of([](vf x, vf d) { return d * sign(x); });
    case Unary::kErf:
      return map_of([](vf x, vf d) { return 1.128379167f * d * exp(-x * x); });
    case Unary::kClip:
      return map_of([=](vf y, vf d) { return select((y > alpha) & (y < beta), d, vf{}); });
    case Unary::kLeakyRelu:
      return map_of([=](vf y, vf d) { return select(y < 0.f, alpha * d, d); });
    case Unary::kThresholdedRelu:
      return map_of([](vf y, vf d) { return select(y != 0.f, d, vf{}); });
    case Unary::kHardSigmoid:
      return map_of([=](vf y, vf d) { return select((y > 0.f) & (y < 1.f), alpha * d, vf{}); });
    case Unary::kElu:
      return map_of([=](vf y, vf d) { return select(y < 0.f, d * (y + alpha), d); });
    case Unary::kSelu:
      return map_of([=](vf y, vf d) { return select(y > 0.f, beta * d, d * (y + alpha * beta)); });
    case Unary::kSoftplus:
      return map_of([](vf y, vf d) { return -d * expm1(-y); });
    case Unary::kSoftsign:
      return map_of([](vf x, vf d) {
        const vf sum = 1.f + abs(x);
        return d / (sum * sum);
      });
    case Unary::kSwish:
      return map_of([](vf x, vf d) {
        const vf s = sigmoid(x);
        return d * (s + x * s * (1.f - s));
      });
    case Unary::kMish:
      return map_of([](vf x, vf d) {
        const vf t = tanh_softplus(x);
        return d * (t + x * sigmoid(x) * (1.f - t * t));
      });
    case Unary::kGelu:
      return map_of([](vf x, vf d) { return d * (normal_below(x) + x * normal_density(x)); });
    case Unary::kFastGelu:
      return map_of([](vf x, vf d) {
        const vf s = sigmoid(2.f * gelu_inner(x));
        const vf slope = 1.595769122f * (1.f + 3 * 0.044715f * x * x);
        return d * (s + x * s * (1.f - s) * slope);
      });
    default:
      return;  // Its gradient is made of other operators.
  }
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
