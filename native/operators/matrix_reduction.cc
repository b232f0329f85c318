// Reductions of the first or last dimensions, with a length for each result where given.
#include <algorithm>
#include <type_traits>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/axes.h"
#include "operators/dispatch.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

enum class Fold { kSum, kMean, kMax };

// X seen as [outer, n, inner], of which n is reduced.
struct Sizes {
  int64_t outer = 1, n = 1, inner = 1;
  Shape result;
  int64_t results() const { return outer * inner; }
};

class FoldOperator : public Operator {
 public:
  FoldOperator(const OperatorContext& context, bool front)
      : Operator(context), front_(front), dims_(args().int32("num_reduce_dim")) {}

 protected:
  Sizes sizes(const Shape& x) const {
    CAFFE2_ENFORCE(dims_ <= x.rank(), "argument 'num_reduce_dim' is ", dims_, ", but X has ",
                   x.rank(), " dimensions");
    Sizes s;
    const int cut = front_ ? dims_ : x.rank() - dims_;
    (front_ ? s.n : s.outer) = x.product(0, cut);
    (front_ ? s.inner : s.n) = x.product(cut, x.rank());
    for (int i = front_ ? cut : 0; i < (front_ ? x.rank() : cut); i++) s.result.append(x[i]);
    return s;
  }

  // How many elements of each result count; null: all.
  const int32_t* lengths(int i, const Sizes& s) const {
    if (!has_input(i)) return nullptr;
    const Tensor& given = input(i);
    CAFFE2_ENFORCE(dims_ == 1, "argument 'num_reduce_dim' is ", dims_,
                   "; with lengths it must be 1");
    CAFFE2_ENFORCE(given.size() == s.results(), describe_input(i), " has shape ",
                   given.shape().text(), "; ", s.results(), " lengths are needed");
    const int32_t* values = given.data<int32_t>();
    for (int64_t k = 0; k < given.size(); k++) {
      CAFFE2_ENFORCE(values[k] >= 0 && values[k] <= s.n, describe_input(i), " holds ", values[k],
                     " at position ", k, "; allowed is 0 <= length <= ", s.n);
    }
    return values;
  }

 private:
  const bool front_;
  const int dims_;
};

template <Fold F, class T>
T fold(const T* x, int64_t n, int64_t stride) {
  if constexpr (F == Fold::kMax) {
    T best = n > 0 ? x[0] : 0;
    for (int64_t i = 1; i < n; i++) {
      const T v = x[i * stride];
      if (v > best || v != v) best = v;
    }
    return best;
  } else if constexpr (std::is_integral_v<T>) {
    T total = 0;
    for (int64_t i = 0; i < n; i++) total = wrapping_add(total, x[i * stride]);
    return F == Fold::kMean && n > 0 ? static_cast<T>(total / static_cast<T>(n)) : total;
  } else {
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += x[i * stride];
    return static_cast<T>(F == Fold::kMean && n > 0 ? total / static_cast<double>(n) : total);
  }
}

template <Fold F, bool Front>
class ReduceFoldOperator : public FoldOperator {
 public:
  explicit ReduceFoldOperator(const OperatorContext& context) : FoldOperator(context, Front) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Sizes s = sizes(x.shape());
    const int32_t* counts = lengths(1, s);
    Tensor& y = output(0, s.result, x.type());
    if (x.type() == DataType::kFloat && counts == nullptr) return run_whole(s, x, y);
    dispatch<float, double, int32_t, int64_t>(x.type(), [&](auto zero) {
      using T = decltype(zero);
      const T* in = x.data<T>();
      T* out = y.mutable_data<T>();
      for_ranges(parallel(), s.results(), rows_per_range(s.n), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++) {
          const T* first = in + r / s.inner * s.n * s.inner + r % s.inner;
          out[r] = fold<F>(first, counts ? counts[r] : s.n, s.inner);
        }
      });
    });
  }

 private:
  void run_whole(const Sizes& s, const Tensor& x, Tensor& y) {
    float* out = y.mutable_data<float>();
    if (s.n == 0) return kernels().fill(y.size(), 0, out, parallel());
    kernels().reduce(F == Fold::kMax ? kernels::Reduction::kMax : kernels::Reduction::kSum, s.outer,
                     s.n, s.inner, x.data<float>(), out, parallel());
    if (F == Fold::kMean) {
      kernels().scale(y.size(), 1 / static_cast<float>(s.n), out, out, parallel());
    }
  }
};

// Sum and mean: inputs dY, X or its shape, (lengths). Max: inputs dY, X, Y, (lengths).
template <Fold F, bool Front>
class ReduceFoldGradientOperator : public FoldOperator {
 public:
  explicit ReduceFoldGradientOperator(const OperatorContext& context)
      : FoldOperator(context, Front) {}

 protected:
  void run() override {
    const Tensor& dy = input(0);
    const Shape shape = x_shape();
    const Sizes s = sizes(shape);
    const int32_t* counts = lengths(F == Fold::kMax ? 3 : 2, s);
    for (int i : {0, F == Fold::kMax ? 2 : 0}) {
      CAFFE2_ENFORCE(input(i).size() == s.results(), describe_input(i), " has shape ",
                     input(i).shape().text(), "; ", s.results(), " values are needed");
    }
    Tensor& dx = output(0, shape, dy.type());
    dispatch<float, double, int32_t, int64_t>(dy.type(), [&](auto zero) {
      using T = decltype(zero);
      const T* x = F == Fold::kMax ? input(1).template data<T>() : nullptr;
      const T* y = F == Fold::kMax ? input(2).template data<T>() : nullptr;
      compute(s, counts, dy.data<T>(), x, y, dx.mutable_data<T>());
    });
  }

 private:
  Shape x_shape() const {
    const Tensor& x = input(1);
    if (F == Fold::kMax || x.type() != DataType::kInt64) return x.shape();
    CAFFE2_ENFORCE(x.rank() == 1, describe_input(1), " has shape ", x.shape().text(),
                   "; a shape has 1 dimension");
    Shape shape;
    for (int64_t i = 0; i < x.size(); i++) shape.append(x.data<int64_t>()[i]);
    return shape;
  }

  template <class T>
  void compute(const Sizes& s, const int32_t* counts, const T* dy, const T* x, const T* y, T* dx) {
    for_ranges(parallel(), s.outer * s.n, rows_per_range(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        const int64_t to = row / s.n * s.inner, place = row % s.n;
        for (int64_t i = 0; i < s.inner; i++) {
          const int64_t count = counts ? counts[to + i] : s.n;
          const T grad = F == Fold::kMean && count > 0
                             ? static_cast<T>(dy[to + i] / static_cast<T>(count))
                             : dy[to + i];
          const bool hit = F != Fold::kMax || x[row * s.inner + i] == y[to + i];
          dx[row * s.inner + i] = hit && place < count ? grad : 0;
        }
      }
    });
  }
};

// Largest elements along one axis of [B, M, N].
template <int Axis>
Sizes matrix_sizes(const Tensor& x, const Operand& what) {
  CAFFE2_ENFORCE(x.rank() == 3, what, " has shape ", x.shape().text(), "; 3 dimensions are needed");
  Sizes s;
  s.outer = x.shape().product(0, Axis), s.n = x.dim(Axis), s.inner = x.shape().product(Axis + 1, 3);
  s.result = {x.dim(0), x.dim(3 - Axis)};
  return s;
}

template <int Axis>
class MatrixMaxOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Sizes s = matrix_sizes<Axis>(x, describe_input(0));
    CAFFE2_ENFORCE(s.n > 0 || s.results() == 0, describe_input(0), " has shape ", x.shape().text(),
                   "; there is nothing to take the largest of");
    Tensor& y = output(0, s.result, DataType::kFloat);
    kernels().reduce(kernels::Reduction::kMax, s.outer, s.n, s.inner, x.data<float>(),
                     y.mutable_data<float>(), parallel());
  }
};

// Inputs X, Y, dY.
template <int Axis>
class MatrixMaxGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &x = input(0), &y = input(1), &dy = input(2);
    const Sizes s = matrix_sizes<Axis>(x, describe_input(0));
    for (int i : {1, 2}) {
      CAFFE2_ENFORCE(input(i).shape() == s.result, describe_input(i), " has shape ",
                     input(i).shape().text(), "; ", s.result.text(), " is needed");
    }
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    const float *in = x.data<float>(), *best = y.data<float>(), *grad = dy.data<float>();
    float* out = dx.mutable_data<float>();
    for_ranges(parallel(), s.outer * s.n, rows_per_range(s.inner), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        const int64_t to = row / s.n * s.inner;
        for (int64_t i = 0; i < s.inner; i++) {
          const int64_t from = row * s.inner + i;
          out[from] = in[from] == best[to + i] ? grad[to + i] : 0;
        }
      }
    });
  }
};

// Inputs DATA [n, ...], SCALARS [n].
class ReduceFrontWeightedSumOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &x = input(0), &w = input(1);
    CAFFE2_ENFORCE(x.rank() >= 1, describe_input(0), " is a scalar; a dimension of rows is needed");
    CAFFE2_ENFORCE(w.shape() == Shape{x.dim(0)}, describe_input(1), " has shape ", w.shape().text(),
                   "; (", x.dim(0), ",) is needed");
    Shape shape;
    for (int i = 1; i < x.rank(); i++) shape.append(x.dim(i));
    kernels::Gemm g;
    g.m = 1, g.n = shape.size(), g.k = x.dim(0);
    g.lda = g.k, g.ldb = g.n, g.ldc = g.n;
    Tensor& y = output(0, shape, DataType::kFloat);
    void* buffer = scratch(kernels().gemm_scratch_bytes(g, parallel().threads));
    kernels().gemm(g, w.data<float>(), x.data<float>(), y.mutable_data<float>(), buffer,
                   parallel());
  }
};

// Inputs SCALARS [n], dOUTPUT [...], the shape of DATA.
class ReduceFrontWeightedSumGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &w = input(0), &dy = input(1), &dims = input(2);
    CAFFE2_ENFORCE(w.rank() == 1, describe_input(0), " has shape ", w.shape().text(),
                   "; 1 dimension is needed");
    Shape shape{w.dim(0)};
    for (int64_t dim : dy.shape()) shape.append(dim);
    const int64_t* given = dims.data<int64_t>();
    CAFFE2_ENFORCE(
        dims.shape() == Shape{shape.rank()} && std::equal(shape.begin(), shape.end(), given),
        describe_input(2), " is not the shape ", shape.text(), " that ", describe_input(0), " and ",
        describe_input(1), " make");
    Tensor& dx = output(0, shape, DataType::kFloat);
    const float *weights = w.data<float>(), *grad = dy.data<float>();
    float* out = dx.mutable_data<float>();
    for (int64_t i = 0; i < w.size(); i++) {
      kernels().scale(dy.size(), weights[i], grad, out + i * dy.size(), parallel());
    }
  }
};

using FrontSum = ReduceFoldOperator<Fold::kSum, true>;
using FrontSumGradient = ReduceFoldGradientOperator<Fold::kSum, true>;
using FrontMean = ReduceFoldOperator<Fold::kMean, true>;
using FrontMeanGradient = ReduceFoldGradientOperator<Fold::kMean, true>;
using FrontMax = ReduceFoldOperator<Fold::kMax, true>;
using FrontMaxGradient = ReduceFoldGradientOperator<Fold::kMax, true>;
using BackSum = ReduceFoldOperator<Fold::kSum, false>;
using BackSumGradient = ReduceFoldGradientOperator<Fold::kSum, false>;
using BackMean = ReduceFoldOperator<Fold::kMean, false>;
using BackMeanGradient = ReduceFoldGradientOperator<Fold::kMean, false>;
using BackMax = ReduceFoldOperator<Fold::kMax, false>;
using BackMaxGradient = ReduceFoldGradientOperator<Fold::kMax, false>;

}  // namespace

REGISTER_CPU_OPERATOR(ReduceFrontSum, FrontSum)
REGISTER_CPU_OPERATOR(ReduceFrontSumGradient, FrontSumGradient)
REGISTER_CPU_OPERATOR(ReduceFrontMean, FrontMean)
REGISTER_CPU_OPERATOR(ReduceFrontMeanGradient, FrontMeanGradient)
REGISTER_CPU_OPERATOR(ReduceFrontMax, FrontMax)
REGISTER_CPU_OPERATOR(ReduceFrontMaxGradient, FrontMaxGradient)
REGISTER_CPU_OPERATOR(ReduceBackSum, BackSum)
REGISTER_CPU_OPERATOR(ReduceBackSumGradient, BackSumGradient)
REGISTER_CPU_OPERATOR(ReduceBackMean, BackMean)
REGISTER_CPU_OPERATOR(ReduceBackMeanGradient, BackMeanGradient)
REGISTER_CPU_OPERATOR(ReduceBackMax, BackMax)
REGISTER_CPU_OPERATOR(ReduceBackMaxGradient, BackMaxGradient)
REGISTER_CPU_OPERATOR(RowwiseMax, MatrixMaxOperator<2>)
REGISTER_CPU_OPERATOR(RowwiseMaxGradient, MatrixMaxGradientOperator<2>)
REGISTER_CPU_OPERATOR(ColwiseMax, MatrixMaxOperator<1>)
REGISTER_CPU_OPERATOR(ColwiseMaxGradient, MatrixMaxGradientOperator<1>)
REGISTER_CPU_OPERATOR(ReduceFrontWeightedSum, ReduceFrontWeightedSumOperator)
REGISTER_CPU_OPERATOR(ReduceFrontWeightedSumGradient, ReduceFrontWeightedSumGradientOperator)

}  // namespace caffe2
