// Range: numbers at equal distances.
#include <cmath>
#include <type_traits>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class RangeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    for (int i = 0; i < inputs(); i++) {
      require_same_type(describe_input(0), input(0), describe_input(i), input(i));
      CAFFE2_ENFORCE(input(i).size() == 1, describe_input(i), " has shape ",
                     input(i).shape().text(), "; one value is needed");
    }
    dispatch<float, double, int32_t, int64_t>(input(0).type(), [&](auto zero) { fill(zero); });
  }

 private:
  template <class T>
  void fill(T start) {
    T stop = input(0).data<T>()[0], step = 1;
    if (has_input(1)) {
      start = stop;
      stop = input(1).data<T>()[0];
    }
    if (has_input(2)) step = input(2).data<T>()[0];
    CAFFE2_ENFORCE(step != 0, describe_input(2), " is 0");
    const int64_t count = count_steps(start, stop, step);
    T* out = output(0, {count}, TypeOf<T>::value).template mutable_data<T>();
    for (int64_t i = 0; i < count; i++) {
      if constexpr (std::is_integral_v<T>) {
        // What overflows on the way to a value of the range comes back on it.
        using Unsigned = std::make_unsigned_t<T>;
        out[i] = static_cast<T>(static_cast<Unsigned>(start) +
                                static_cast<Unsigned>(i) * static_cast<Unsigned>(step));
      } else {
        out[i] = start + static_cast<T>(i) * step;
      }
    }
  }

  template <class T>
  static int64_t count_steps(T start, T stop, T step) {
    constexpr double kMost = 0x1p62;
    if constexpr (std::is_integral_v<T>) {
      const auto way = static_cast<__int128>(stop) - start;
      if ((way > 0) != (step > 0) || way == 0) return 0;
      const __int128 size = step > 0 ? __int128{step} : -__int128{step};
      const __int128 steps = ((way > 0 ? way : -way) + size - 1) / size;
      CAFFE2_ENFORCE(steps < static_cast<__int128>(kMost), "it has too many steps from ", start,
                     " to ", stop);
      return static_cast<int64_t>(steps);
    } else {
      const T steps = std::ceil((stop - start) / step);
      CAFFE2_ENFORCE(std::isfinite(steps) && steps < kMost, "it has ", steps, " steps from ", start,
                     " to ", stop);
      return steps > 0 ? static_cast<int64_t>(steps) : 0;
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Range, RangeOperator)

}  // namespace caffe2
