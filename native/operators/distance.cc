// Distances and products of the rows of two tensors.
#include <algorithm>
#include <cmath>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

constexpr double kSmallest = 1e-12;  // no squared norm counts as less

struct Dot {
  static double of(int64_t n, const float* x, const float* y) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += static_cast<double>(x[i]) * y[i];
    return sum;
  }
  static void gradient(int64_t n, const float* x, const float* y, float dz, float* dx, float* dy) {
    for (int64_t i = 0; i < n; i++) {
      dx[i] = dz * y[i];
      dy[i] = dz * x[i];
    }
  }
};

struct SquaredL2 {
  static double of(int64_t n, const float* x, const float* y) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
      const double d = static_cast<double>(x[i]) - y[i];
      sum += d * d;
    }
    return sum / 2;
  }
  static void gradient(int64_t n, const float* x, const float* y, float dz, float* dx, float* dy) {
    for (int64_t i = 0; i < n; i++) {
      dx[i] = dz * (x[i] - y[i]);
      dy[i] = -dx[i];
    }
  }
};

struct L1 {
  static double of(int64_t n, const float* x, const float* y) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += std::fabs(static_cast<double>(x[i]) - y[i]);
    return sum;
  }
  static void gradient(int64_t n, const float* x, const float* y, float dz, float* dx, float* dy) {
    for (int64_t i = 0; i < n; i++) {
      dx[i] = x[i] > y[i] ? dz : x[i] < y[i] ? -dz : 0;
      dy[i] = -dx[i];
    }
  }
};

struct Cosine {
  static double norm(int64_t n, const float* x) {
    return std::sqrt(std::max(Dot::of(n, x, x), kSmallest));
  }
  static double of(int64_t n, const float* x, const float* y) {
    return Dot::of(n, x, y) / (norm(n, x) * norm(n, y));
  }
  static void gradient(int64_t n, const float* x, const float* y, float dz, float* dx, float* dy) {
    const double nx = norm(n, x), ny = norm(n, y), scale = dz / (nx * ny);
    const double product = Dot::of(n, x, y);
    for (int64_t i = 0; i < n; i++) {
      dx[i] = static_cast<float>(scale * (y[i] - x[i] * product / (nx * nx)));
      dy[i] = static_cast<float>(scale * (x[i] - y[i] * product / (ny * ny)));
    }
  }
};

class RowPairs : public Operator {
 public:
  using Operator::Operator;

 protected:
  // Rows and columns of X and Y; a scalar is one row.
  void check() {
    const Tensor& x = input(0);
    require_same_shape(describe_input(0), x, describe_input(1), input(1));
    rows_ = x.rank() > 0 ? x.dim(0) : 1;
    columns_ = x.rank() > 0 ? x.shape().product(1, x.rank()) : 1;
  }
  int64_t rows_ = 0, columns_ = 0;
};

template <class Distance>
class DistanceOperator : public RowPairs {
 public:
  using RowPairs::RowPairs;

 protected:
  void run() override {
    check();
    Tensor& z = output(0, {rows_}, DataType::kFloat);
    const float *x = input(0).data<float>(), *y = input(1).data<float>();
    float* out = z.mutable_data<float>();
    const int64_t n = columns_;
    for_ranges(parallel(), rows_, rows_per_range(n), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        out[i] = static_cast<float>(Distance::of(n, x + i * n, y + i * n));
      }
    });
  }
};

// Inputs X, Y, dZ.
template <class Distance>
class DistanceGradientOperator : public RowPairs {
 public:
  using RowPairs::RowPairs;

 protected:
  void run() override {
    check();
    const Tensor& dz = input(2);
    CAFFE2_ENFORCE(dz.size() == rows_, describe_input(2), " has shape ", dz.shape().text(), "; ",
                   rows_, " values are needed");
    Tensor& dx = output(0, input(0).shape(), DataType::kFloat);
    Tensor& dy = output(1, input(0).shape(), DataType::kFloat);
    const float *x = input(0).data<float>(), *y = input(1).data<float>(), *grad = dz.data<float>();
    float *x_out = dx.mutable_data<float>(), *y_out = dy.mutable_data<float>();
    const int64_t n = columns_;
    for_ranges(parallel(), rows_, rows_per_range(n), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t at = i * n;
        Distance::gradient(n, x + at, y + at, grad[i], x_out + at, y_out + at);
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(DotProduct, DistanceOperator<Dot>)
REGISTER_CPU_OPERATOR(DotProductGradient, DistanceGradientOperator<Dot>)
REGISTER_CPU_OPERATOR(SquaredL2Distance, DistanceOperator<SquaredL2>)
REGISTER_CPU_OPERATOR(SquaredL2DistanceGradient, DistanceGradientOperator<SquaredL2>)
REGISTER_CPU_OPERATOR(L1Distance, DistanceOperator<L1>)
REGISTER_CPU_OPERATOR(L1DistanceGradient, DistanceGradientOperator<L1>)
REGISTER_CPU_OPERATOR(CosineSimilarity, DistanceOperator<Cosine>)
REGISTER_CPU_OPERATOR(CosineSimilarityGradient, DistanceGradientOperator<Cosine>)

}  // namespace caffe2
