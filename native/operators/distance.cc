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
    const float *x = input(0).template data<float>(), *y = input(1).template data<float>();
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
    const float *x = input(0).template data<float>(), *y = input(1).template data<float>(),
                *grad = dz.data<float>();
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

// Rows of different lengths: the shorter ones are repeated, or filled up with a number.
class PaddedRows : public Operator {
 public:
  explicit PaddedRows(const OperatorContext& context)
      : Operator(context),
        pad_(args().real("pad_value")),
        replicate_(args().boolean("replicate")) {}

 protected:
  void check() {
    const Tensor &x = input(0), &y = input(1);
    CAFFE2_ENFORCE(x.rank() >= 1 && x.rank() == y.rank() && x.dim(0) == y.dim(0), describe_input(0),
                   " has shape ", x.shape().text(), " but ", describe_input(1), " has ",
                   y.shape().text(), "; equally many dimensions and rows are needed");
    rows_ = x.dim(0);
    const int64_t nx = x.shape().product(1, x.rank()), ny = y.shape().product(1, y.rank());
    longer_ = ny > nx ? 1 : 0;
    large_ = std::max(nx, ny), small_ = std::min(nx, ny);
    CAFFE2_ENFORCE(!replicate_ || large_ == small_ || (small_ > 0 && large_ % small_ == 0),
                   "argument 'replicate' is 1; rows of ", large_,
                   " values are no multiple of rows of ", small_);
  }

  // Column j of a filled-up row of the shorter input.
  float filled(const float* row, int64_t j) const {
    return j < small_ ? row[j] : replicate_ ? row[j % small_] : pad_;
  }

  const float pad_;
  const bool replicate_;
  int64_t rows_ = 0, large_ = 0, small_ = 0;
  int longer_ = 0;  // the input with the longer rows
};

class DotProductWithPaddingOperator : public PaddedRows {
 public:
  using PaddedRows::PaddedRows;

 protected:
  void run() override {
    check();
    Tensor& z = output(0, {rows_}, DataType::kFloat);
    const float *x = input(longer_).data<float>(), *y = input(1 - longer_).data<float>();
    float* out = z.mutable_data<float>();
    for_ranges(parallel(), rows_, rows_per_range(large_), [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        double sum = 0;
        for (int64_t j = 0; j < large_; j++) {
          sum += static_cast<double>(x[i * large_ + j]) * filled(y + i * small_, j);
        }
        out[i] = static_cast<float>(sum);
      }
    });
  }
};

// Inputs X, Y, dZ.
class DotProductWithPaddingGradientOperator : public PaddedRows {
 public:
  using PaddedRows::PaddedRows;

 protected:
  void run() override {
    check();
    const Tensor& dz = input(2);
    CAFFE2_ENFORCE(dz.size() == rows_, describe_input(2), " has shape ", dz.shape().text(), "; ",
                   rows_, " values are needed");
    float* out[2];
    for (int i = 0; i < 2; i++) {
      out[i] = output(i, input(i).shape(), DataType::kFloat).mutable_data<float>();
    }
    const float *x = input(longer_).data<float>(), *y = input(1 - longer_).data<float>();
    const float* grad = dz.data<float>();
    float *dx = out[longer_], *dy = out[1 - longer_];
    for_ranges(parallel(), rows_, rows_per_range(large_), [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const float *large = x + i * large_, *small = y + i * small_;
        for (int64_t j = 0; j < large_; j++) dx[i * large_ + j] = grad[i] * filled(small, j);
        for (int64_t j = 0; j < small_; j++) {
          double sum = large[j];
          for (int64_t k = j + small_; replicate_ && k < large_; k += small_) sum += large[k];
          dy[i * small_ + j] = static_cast<float>(grad[i] * sum);
        }
      }
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(DotProductWithPadding, DotProductWithPaddingOperator)
REGISTER_CPU_OPERATOR(DotProductWithPaddingGradient, DotProductWithPaddingGradientOperator)
REGISTER_CPU_OPERATOR(DotProduct, DistanceOperator<Dot>)
REGISTER_CPU_OPERATOR(DotProductGradient, DistanceGradientOperator<Dot>)
REGISTER_CPU_OPERATOR(SquaredL2Distance, DistanceOperator<SquaredL2>)
REGISTER_CPU_OPERATOR(SquaredL2DistanceGradient, DistanceGradientOperator<SquaredL2>)
REGISTER_CPU_OPERATOR(L1Distance, DistanceOperator<L1>)
REGISTER_CPU_OPERATOR(L1DistanceGradient, DistanceGradientOperator<L1>)
REGISTER_CPU_OPERATOR(CosineSimilarity, DistanceOperator<Cosine>)
REGISTER_CPU_OPERATOR(CosineSimilarityGradient, DistanceGradientOperator<Cosine>)

}  // namespace caffe2
