// Reductions over any axes: ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceL1, ReduceL2.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/axes.h"
#include "operators/dispatch.h"
#include "operators/parallel.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

enum class ReduceKind { kSum, kMean, kMax, kMin, kL1, kL2 };

template <ReduceKind K>
constexpr kernels::Reduction kKernel = K == ReduceKind::kMax   ? kernels::Reduction::kMax
                                       : K == ReduceKind::kMin ? kernels::Reduction::kMin
                                       : K == ReduceKind::kL1  ? kernels::Reduction::kSumAbs
                                       : K == ReduceKind::kL2  ? kernels::Reduction::kSumSquares
                                                               : kernels::Reduction::kSum;

template <ReduceKind K, class T>
T start_value(bool empty) {
  using Limits = std::numeric_limits<T>;
  if constexpr (K == ReduceKind::kMax) {
    return empty || !Limits::has_infinity ? Limits::lowest() : -Limits::infinity();
  } else if constexpr (K == ReduceKind::kMin) {
    return empty || !Limits::has_infinity ? Limits::max() : Limits::infinity();
  } else {
    return 0;
  }
}

template <ReduceKind K, class T>
T joined_with(T total, T x) {
  if constexpr (K == ReduceKind::kMax) {
    return x > total || x != x ? x : total;
  } else if constexpr (K == ReduceKind::kMin) {
    return x < total || x != x ? x : total;
  } else if constexpr (K == ReduceKind::kL1) {
    return total + std::abs(x);
  } else if constexpr (K == ReduceKind::kL2) {
    return total + x * x;
  } else if constexpr (std::is_integral_v<T>) {
    return wrapping_add(total, x);
  } else {
    return total + x;
  }
}

template <ReduceKind K>
class ReduceOperator : public AxesOperator {
 public:
  using AxesOperator::AxesOperator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Axes axes = resolve(x.shape(), describe_input(0));
    const Runs runs(x.shape(), axes);
    if (x.type() == DataType::kFloat) {
      void* buffer = scratch(reduce_scratch_bytes(runs));
      Tensor& y = output(0, kept_shape(x.shape(), axes), x.type());
      float* out = y.mutable_data<float>();
      reduce(kernels(), kKernel<K>, runs, x.data<float>(), out, buffer, parallel());
      if (K == ReduceKind::kMean) {
        kernels().scale(y.size(), 1 / static_cast<float>(std::max<int64_t>(1, runs.reduced_size())),
                        out, out, parallel());
      }
      if (K == ReduceKind::kL2) {
        for (int64_t i = 0; i < y.size(); i++) out[i] = std::sqrt(out[i]);
      }
      return;
    }
    Tensor& y = output(0, kept_shape(x.shape(), axes), x.type());
    dispatch<double, int32_t, int64_t>(x.type(),
                                       [&](auto zero) { run_plain<decltype(zero)>(runs, x, y); });
  }

 private:
  template <class T>
  static void run_plain(const Runs& runs, const Tensor& x, Tensor& y) {
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    std::fill_n(out, y.size(), start_value<K, T>(x.size() == 0));
    runs.walk(0, x.size(), [&](int64_t from, int64_t to, int64_t n, int64_t step) {
      for (int64_t i = 0; i < n; i++) {
        out[to + i * step] = joined_with<K>(out[to + i * step], in[from + i]);
      }
    });
    if constexpr (K == ReduceKind::kMean || K == ReduceKind::kL2) {
      const T count = static_cast<T>(std::max<int64_t>(1, runs.reduced_size()));
      for (int64_t i = 0; i < y.size(); i++) {
        out[i] = K == ReduceKind::kMean ? out[i] / count : static_cast<T>(std::sqrt(out[i]));
      }
    }
  }
};

// Inputs dY, X, Y. dY and Y may have the reduced axes as 1 or not at all.
template <ReduceKind K>
class ReduceGradientOperator : public AxesOperator {
 public:
  using AxesOperator::AxesOperator;

 protected:
  void run() override {
    const Tensor &dy = input(0), &x = input(1), &y = input(2);
    const Axes axes = resolve(x.shape(), describe_input(1));
    const Runs runs(x.shape(), axes);
    for (int i : {0, 2}) {
      CAFFE2_ENFORCE(input(i).type() == x.type(), describe_input(i), " has type ",
                     type_name(input(i).type()), " but ", describe_input(1), " has ",
                     type_name(x.type()));
      CAFFE2_ENFORCE(input(i).size() == runs.kept_size(), describe_input(i), " has shape ",
                     input(i).shape().text(), "; ", runs.kept_size(), " values are needed");
    }
    Tensor& dx = output(0, x.shape(), x.type());
    dispatch<float, double, int32_t, int64_t>(x.type(), [&](auto zero) {
      using T = decltype(zero);
      compute(runs, dy.data<T>(), x.data<T>(), y.data<T>(), dx.mutable_data<T>());
    });
  }

 private:
  template <class T>
  void compute(const Runs& runs, const T* dy, const T* x, const T* y, T* dx) {
    const T count = static_cast<T>(std::max<int64_t>(1, runs.reduced_size()));
    for_ranges(parallel(), input(1).size(), kElementsPerRange, [&](int64_t begin, int64_t end) {
      runs.walk(begin, end, [&](int64_t from, int64_t to, int64_t n, int64_t step) {
        for (int64_t i = 0; i < n; i++) {
          const T in = x[from + i], out = y[to + i * step], grad = dy[to + i * step];
          dx[from + i] = value(grad, in, out, count);
        }
      });
    });
  }

  template <class T>
  static T value(T dy, T x, T y, T count) {
    if constexpr (K == ReduceKind::kSum) {
      return dy;
    } else if constexpr (K == ReduceKind::kMean) {
      return dy / count;
    } else if constexpr (K == ReduceKind::kL1) {
      return x > 0 ? dy : x < 0 ? -dy : 0;
    } else if constexpr (K == ReduceKind::kL2) {
      return y == 0 ? 0 : dy * x / y;
    } else {
      return x == y ? dy : 0;
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(ReduceSum, ReduceOperator<ReduceKind::kSum>)
REGISTER_CPU_OPERATOR(ReduceSumGradient, ReduceGradientOperator<ReduceKind::kSum>)
REGISTER_CPU_OPERATOR(ReduceMean, ReduceOperator<ReduceKind::kMean>)
REGISTER_CPU_OPERATOR(ReduceMeanGradient, ReduceGradientOperator<ReduceKind::kMean>)
REGISTER_CPU_OPERATOR(ReduceMax, ReduceOperator<ReduceKind::kMax>)
REGISTER_CPU_OPERATOR(ReduceMaxGradient, ReduceGradientOperator<ReduceKind::kMax>)
REGISTER_CPU_OPERATOR(ReduceMin, ReduceOperator<ReduceKind::kMin>)
REGISTER_CPU_OPERATOR(ReduceMinGradient, ReduceGradientOperator<ReduceKind::kMin>)
REGISTER_CPU_OPERATOR(ReduceL1, ReduceOperator<ReduceKind::kL1>)
REGISTER_CPU_OPERATOR(ReduceL1Gradient, ReduceGradientOperator<ReduceKind::kL1>)
REGISTER_CPU_OPERATOR(ReduceL2, ReduceOperator<ReduceKind::kL2>)
REGISTER_CPU_OPERATOR(ReduceL2Gradient, ReduceGradientOperator<ReduceKind::kL2>)

}  // namespace caffe2
