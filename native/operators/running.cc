// Range, and Accumulate, a running sum.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// Inputs stop; start, stop; or start, stop, step.
class RangeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    for (int i = 0; i < inputs(); i++) {
      CAFFE2_ENFORCE(input(i).size() == 1, describe_input(i), " has shape ",
                     input(i).shape().text(), "; one element is needed");
      require_same_type(describe_input(0), input(0), describe_input(i), input(i));
    }
    dispatch<float, double, int32_t, int64_t>(input(0).type(), [&](auto zero) {
      using T = decltype(zero);
      const T start = inputs() > 1 ? value<T>(0) : 0, stop = value<T>(inputs() > 1 ? 1 : 0);
      fill(start, stop, inputs() > 2 ? value<T>(2) : T{1});
    });
  }

 private:
  template <class T>
  T value(int i) const {
    const T value = input(i).data<T>()[0];
    if constexpr (std::is_floating_point_v<T>) {
      CAFFE2_ENFORCE(std::isfinite(value), describe_input(i), " is ", value,
                     "; finite numbers are needed");
    }
    return value;
  }

  template <class T>
  void fill(T start, T stop, T step) {
    CAFFE2_ENFORCE(step != 0, describe_input(2), " is 0");
    const int64_t n = step > 0 ? steps(start, stop, step) : steps(stop, start, step);
    T* y = output(0, {n}, input(0).type()).template mutable_data<T>();
    for (int64_t i = 0; i < n; i++) {
      if constexpr (std::is_floating_point_v<T>) {
        y[i] = static_cast<T>(start + static_cast<double>(i) * step);
      } else {
        y[i] = static_cast<T>(start + i * step);
      }
    }
  }

  // How many steps of |step| there are from low on until high.
  template <class T>
  int64_t steps(T low, T high, T step) const {
    constexpr double kMost = 0x1p62;
    if (low >= high) return 0;
    if constexpr (std::is_floating_point_v<T>) {
      const double n =
          std::ceil((static_cast<double>(high) - low) / std::fabs(static_cast<double>(step)));
      CAFFE2_ENFORCE(n <= kMost, "there would be ", n, " values");
      return static_cast<int64_t>(n);
    } else {
      const uint64_t room = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
      const auto size = static_cast<uint64_t>(step);
      const uint64_t n = (room - 1) / (step > 0 ? size : 0 - size) + 1;
      CAFFE2_ENFORCE(static_cast<double>(n) <= kMost, "there would be ", n, " values");
      return static_cast<int64_t>(n);
    }
  }
};

class AccumulateOperator : public Operator {
 public:
  explicit AccumulateOperator(const OperatorContext& context)
      : Operator(context), gamma_(args().real("gamma")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const BlobValue before = present_output(0);
    const bool goes_on = before.is_tensor() && before.tensor.type() == DataType::kFloat &&
                         before.tensor.shape() == x.shape();
    const float* sum = goes_on ? before.tensor.data<float>() : nullptr;
    const float* in = x.data<float>();
    float* y = output(0, x.shape(), DataType::kFloat).mutable_data<float>();
    for (int64_t i = 0; i < x.size(); i++) y[i] = in[i] + (sum ? gamma_ * sum[i] : 0);
  }

 private:
  const float gamma_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Range, RangeOperator)
REGISTER_CPU_OPERATOR(Accumulate, AccumulateOperator)

}  // namespace caffe2
