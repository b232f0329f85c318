// Operators that treat the rows or columns of a tensor differently, element by element.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/registry.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

class ElementwiseLinearBase : public Operator {
 public:
  explicit ElementwiseLinearBase(const OperatorContext& context)
      : Operator(context), axis_(args().int32("axis")) {}

 protected:
  struct Matrix {
    int64_t rows, columns;
  };

  Matrix matrix(int x) const {
    const Shape& shape = input(x).shape();
    const int axis = canonical_axis(axis_, shape.rank(), describe_input(x));
    return {shape.product(0, axis), shape.product(axis, shape.rank())};
  }

  void require_vector(int i, int64_t columns) const {
    const Tensor& tensor = input(i);
    CAFFE2_ENFORCE(tensor.rank() == 1 && tensor.size() == columns, describe_input(i), " has shape ",
                   tensor.shape().text(), "; one value for each of ", columns,
                   " columns is needed");
  }

 private:
  const int axis_;
};

class ElementwiseLinearOperator : public ElementwiseLinearBase {
 public:
  using ElementwiseLinearBase::ElementwiseLinearBase;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Matrix m = matrix(0);
    require_vector(1, m.columns);
    require_vector(2, m.columns);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const float *from = x.data<float>(), *w = input(1).data<float>(), *b = input(2).data<float>();
    float* to = y.mutable_data<float>();
    for_ranges(parallel(), m.rows, m.columns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        const int64_t start = r * m.columns;
        for (int64_t c = 0; c < m.columns; c++) to[start + c] = from[start + c] * w[c] + b[c];
      }
    });
  }
};

class ElementwiseLinearGradientOperator : public ElementwiseLinearBase {
 public:
  using ElementwiseLinearBase::ElementwiseLinearBase;

 protected:
  void run() override {
    const Tensor &dy = input(0), &x = input(1), &w = input(2);
    require_same_shape(describe_input(0), dy, describe_input(1), x);
    const Matrix m = matrix(1);
    require_vector(2, m.columns);
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    Tensor& dw = output(1, w.shape(), DataType::kFloat);
    Tensor& db = output(2, w.shape(), DataType::kFloat);
    const float *gradient = dy.data<float>(), *in = x.data<float>(), *weights = w.data<float>();
    float* out = dx.mutable_data<float>();
    float *weight_sums = dw.mutable_data<float>(), *bias_sums = db.mutable_data<float>();
    for_ranges(parallel(), m.columns, m.rows, [&](int64_t begin, int64_t end) {
      std::vector<double> weight(end - begin), bias(end - begin);
      for (int64_t r = 0; r < m.rows; r++) {
        for (int64_t c = begin; c < end; c++) {
          const int64_t i = r * m.columns + c;
          weight[c - begin] += static_cast<double>(gradient[i]) * in[i];
          bias[c - begin] += gradient[i];
          out[i] = gradient[i] * weights[c];
        }
      }
      std::copy(weight.begin(), weight.end(), weight_sums + begin);
      std::copy(bias.begin(), bias.end(), bias_sums + begin);
    });
  }
};

// Operators on rows: an index of the first dimension each.
class RowsOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  int64_t row_length() const {
    CAFFE2_ENFORCE(input(0).rank() > 0, describe_input(0),
                   " is a scalar; one dimension at least is needed");
    return input(0).shape().product(1, input(0).rank());
  }

  // output 0 = input 0 with row r multiplied by factor(r).
  template <class F>
  void multiply_rows(int64_t length, const F& factor) {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    const float* from = x.data<float>();
    float* to = y.mutable_data<float>();
    for_ranges(parallel(), x.dim(0), length, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        kernels().scale(length, factor(r), from + r * length, to + r * length, {});
      }
    });
  }
};

class RowMulOperator : public RowsOperator {
 public:
  using RowsOperator::RowsOperator;

 protected:
  void run() override {
    const int64_t length = row_length();
    const Tensor& w = input(1);
    CAFFE2_ENFORCE(w.size() == input(0).dim(0), describe_input(1), " has shape ", w.shape().text(),
                   "; one value for each of ", input(0).dim(0), " rows is needed");
    multiply_rows(length, [values = w.data<float>()](int64_t r) { return values[r]; });
  }
};

class ReduceTailSumOperator : public RowsOperator {
 public:
  using RowsOperator::RowsOperator;

 protected:
  void run() override {
    const int64_t length = row_length(), rows = input(0).dim(0);
    Tensor& y = output(0, {rows}, DataType::kFloat);
    kernels().reduce(kernels::Reduction::kSum, rows, length, 1, input(0).data<float>(),
                     y.mutable_data<float>(), parallel());
  }
};

class SquareRootDivideOperator : public RowsOperator {
 public:
  using RowsOperator::RowsOperator;

 protected:
  void run() override {
    const int64_t length = row_length();
    const Tensor& scale = input(1);
    CAFFE2_ENFORCE(scale.rank() == 1 && scale.size() == input(0).dim(0), describe_input(1),
                   " has shape ", scale.shape().text(), "; one value for each of ", input(0).dim(0),
                   " rows is needed");
    dispatch<float, int32_t, int64_t>(scale.type(), [&](auto zero) {
      using T = decltype(zero);
      const T *values = scale.template data<T>(), *end = values + scale.size();
      const T* negative = std::find_if_not(values, end, [](T v) { return v >= T(0); });
      CAFFE2_ENFORCE(negative == end, describe_input(1), " is ", *negative, " at element ",
                     negative - values, "; 0 is the least");
      multiply_rows(length, [values](int64_t r) {
        return values[r] == T(0)
                   ? 1.f
                   : static_cast<float>(1 / std::sqrt(static_cast<double>(values[r])));
      });
    });
  }
};

class BatchBoxCoxOperator : public RowsOperator {
 public:
  using RowsOperator::RowsOperator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    const int64_t columns = x.rank() == 0 ? 0 : x.shape().product(1, x.rank());
    row_length();
    for (int i = 1; i < 3; i++) {
      require_same_type(describe_input(0), x, describe_input(i), input(i));
      CAFFE2_ENFORCE(input(i).size() == columns, describe_input(i), " has shape ",
                     input(i).shape().text(), "; one value for each of ", columns,
                     " columns is needed");
    }
    Tensor& y = output(0, x.shape(), x.type());
    dispatch<float, double>(x.type(), [&](auto zero) {
      using T = decltype(zero);
      const T *from = x.template data<T>(), *power = input(1).template data<T>(),
              *shift = input(2).template data<T>();
      T* to = y.template mutable_data<T>();
      for_ranges(parallel(), x.dim(0), columns * 8, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++) {
          for (int64_t c = 0; c < columns; c++) {
            const double shifted = static_cast<double>(from[r * columns + c]) + shift[c];
            const double logarithm = std::log(std::max(shifted, 1e-6));
            to[r * columns + c] = static_cast<T>(
                power[c] == 0 ? logarithm : std::expm1(power[c] * logarithm) / power[c]);
          }
        }
      });
    });
  }
};

class MakeTwoClassOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    Shape shape = x.shape();
    shape.append(2);
    Tensor& y = output(0, shape, DataType::kFloat);
    const float* from = x.data<float>();
    float* to = y.mutable_data<float>();
    for (int64_t i = 0; i < x.size(); i++) {
      to[2 * i] = 1 - from[i];
      to[2 * i + 1] = from[i];
    }
  }
};

class MakeTwoClassGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& dy = input(0);
    CAFFE2_ENFORCE(dy.rank() > 0 && dy.dim(dy.rank() - 1) == 2, describe_input(0), " has shape ",
                   dy.shape().text(), "; the last dimension must be 2");
    Shape shape;
    for (int d = 0; d + 1 < dy.rank(); d++) shape.append(dy.dim(d));
    Tensor& dx = output(0, shape, DataType::kFloat);
    const float* from = dy.data<float>();
    float* to = dx.mutable_data<float>();
    for (int64_t i = 0; i < dx.size(); i++) to[i] = from[2 * i + 1] - from[2 * i];
  }
};

class StumpFuncOperator : public Operator {
 public:
  explicit StumpFuncOperator(const OperatorContext& context)
      : Operator(context),
        threshold_(args().real("threshold")),
        low_(args().real("low_value")),
        high_(args().real("high_value")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    map(
        parallel(), x.size(), [this](float v) { return v <= threshold_ ? low_ : high_; },
        y.mutable_data<float>(), x.data<float>());
  }

 private:
  const float threshold_, low_, high_;
};

class StumpFuncIndexOperator : public Operator {
 public:
  explicit StumpFuncIndexOperator(const OperatorContext& context)
      : Operator(context), threshold_(args().real("threshold")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const float* from = x.data<float>();
    const int64_t count =
        std::count_if(from, from + x.size(), [this](float v) { return v <= threshold_; });
    Tensor& low = output(0, {count}, DataType::kInt64);
    Tensor& high = output(1, {x.size() - count}, DataType::kInt64);
    int64_t *below = low.mutable_data<int64_t>(), *above = high.mutable_data<int64_t>();
    for (int64_t i = 0; i < x.size(); i++) *(from[i] <= threshold_ ? below : above)++ = i;
  }

 private:
  const float threshold_;
};

}  // namespace

REGISTER_CPU_OPERATOR(ElementwiseLinear, ElementwiseLinearOperator)
REGISTER_CPU_OPERATOR(ElementwiseLinearGradient, ElementwiseLinearGradientOperator)
REGISTER_CPU_OPERATOR(RowMul, RowMulOperator)
REGISTER_CPU_OPERATOR(ReduceTailSum, ReduceTailSumOperator)
REGISTER_CPU_OPERATOR(SquareRootDivide, SquareRootDivideOperator)
REGISTER_CPU_OPERATOR(BatchBoxCox, BatchBoxCoxOperator)
REGISTER_CPU_OPERATOR(MakeTwoClass, MakeTwoClassOperator)
REGISTER_CPU_OPERATOR(MakeTwoClassGradient, MakeTwoClassGradientOperator)
REGISTER_CPU_OPERATOR(StumpFunc, StumpFuncOperator)
REGISTER_CPU_OPERATOR(StumpFuncIndex, StumpFuncIndexOperator)

}  // namespace caffe2
