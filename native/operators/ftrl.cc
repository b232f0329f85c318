// FTRL-Proximal, dense, sparse and for groups.
#include <cmath>

#include "core/registry.h"
#include "operators/sparse_rows.h"

namespace caffe2 {
namespace {

class FtrlBase : public SparseRowsOperator {
 public:
  explicit FtrlBase(const OperatorContext& context)
      : SparseRowsOperator(context),
        beta_(args().real("beta")),
        lambda1_(args().real("lambda1")),
        lambda2_(args().real("lambda2")) {}

 protected:
  // The learning rate: input `i`, or the argument.
  float alpha(int i) const {
    if (!has_input(i)) return args().has("alpha") ? args().real("alpha") : 0.005f;
    CAFFE2_ENFORCE(!args().has("alpha"), describe_input(i),
                   " is given as input and as argument; one of both is needed");
    return scalar_value(input(i), describe_input(i));
  }

  void check_sums() const {
    CAFFE2_ENFORCE(input(1).size() == 2 * input(0).size(), describe_input(1), " has shape ",
                   input(1).shape().text(), "; needed are two numbers for each of ",
                   describe_input(0), ", which has shape ", input(0).shape().text());
  }

  // The new sums of squares and of gradients.
  static void add(float w, float g, float alpha, float* sums) {
    const float n = sums[0] + g * g;
    sums[1] += g - (std::sqrt(n) - std::sqrt(sums[0])) / alpha * w;
    sums[0] = n;
  }

  float divisor(float n, float alpha) const { return (beta_ + std::sqrt(n)) / alpha + lambda2_; }

  void step(int64_t count, float alpha, const float* g, float* w, float* sums) const {
    for (int64_t i = 0; i < count; i++) {
      add(w[i], g[i], alpha, sums + 2 * i);
      const float z = sums[2 * i + 1];
      w[i] = std::fabs(z) > lambda1_
                 ? (std::copysign(lambda1_, z) - z) / divisor(sums[2 * i], alpha)
                 : 0;
    }
  }

  const float beta_, lambda1_, lambda2_;
};

class FtrlOperator : public FtrlBase {
 public:
  using FtrlBase::FtrlBase;

 protected:
  void run() override {
    check_sums();
    require_same_size(describe_input(2), input(2), describe_input(0), input(0));
    const float rate = alpha(3);
    const auto [w, sums] = changed_together<2>();
    step(input(0).size(), rate, input(2).data<float>(), w, sums);
  }
};

class SparseFtrlOperator : public FtrlBase {
 public:
  using FtrlBase::FtrlBase;

 protected:
  void run() override {
    const SparseRows rows = rows_at(0, 2, 3);
    check_sums();
    const float rate = alpha(4);
    const float* g = input(3).data<float>();
    const auto [w, sums] = changed_together<2>();
    for (int64_t r = 0; r < rows.count; r++) {
      const int64_t at = rows.index[r] * rows.width;
      step(rows.width, rate, g + r * rows.width, w + at, sums + 2 * at);
    }
  }
};

class GFtrlOperator : public FtrlBase {
 public:
  using FtrlBase::FtrlBase;

 protected:
  void run() override {
    const Shape& shape = input(0).shape();
    CAFFE2_ENFORCE(shape.rank() > 0, describe_input(0), " is a scalar; rows are needed");
    check_sums();
    require_same_shape(describe_input(2), input(2), describe_input(0), input(0));
    const float rate = alpha(3);
    const float* g = input(2).data<float>();
    const auto [w, sums] = changed_together<2>();
    const int64_t rows = shape[0], columns = shape.product(1, shape.rank());
    const double least = lambda1_ * std::sqrt(static_cast<double>(rows));
    for (int64_t j = 0; j < columns; j++) {
      double square = 0;
      for (int64_t i = j; i < rows * columns; i += columns) {
        add(w[i], g[i], rate, sums + 2 * i);
        square += static_cast<double>(sums[2 * i + 1]) * sums[2 * i + 1];
      }
      const double norm = std::sqrt(square);
      const auto factor = static_cast<float>(least / norm - 1);
      for (int64_t i = j; i < rows * columns; i += columns) {
        w[i] = norm > least ? sums[2 * i + 1] * factor / divisor(sums[2 * i], rate) : 0;
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Ftrl, FtrlOperator)
REGISTER_CPU_OPERATOR(SparseFtrl, SparseFtrlOperator)
REGISTER_CPU_OPERATOR(GFtrl, GFtrlOperator)

}  // namespace caffe2
