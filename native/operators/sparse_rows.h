// Operators that change the rows of a parameter for which there is a gradient.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "core/operator.h"
#include "operators/shapes.h"

namespace caffe2 {

struct SparseRows {
  int64_t count;         // rows of the gradient
  int64_t width;         // elements of a row
  const int64_t* index;  // the row of the parameter for each row of the gradient, in range
};

class SparseRowsOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  // The rows of parameter `param` at `indices`, all of them in range.
  SparseRows rows_at(int param, int indices) {
    const Tensor &w = input(param), &i = input(indices);
    CAFFE2_ENFORCE(w.shape().rank() > 0, describe_input(param), " is a scalar; rows are needed");
    const int64_t rows = w.shape()[0];
    const int64_t* index = nullptr;
    if (i.type() == DataType::kInt64) {
      index = i.data<int64_t>();
    } else {
      auto* wide = scratch<int64_t>(i.size());
      for (int64_t k = 0; k < i.size(); k++) wide[k] = i.data<int32_t>()[k];
      index = wide;
    }
    for (int64_t k = 0; k < i.size(); k++) {
      CAFFE2_ENFORCE(index[k] >= 0 && index[k] < rows, describe_input(indices), " has ", index[k],
                     "; allowed is 0 <= index < ", rows);
    }
    return {i.size(), w.shape().product(1, w.shape().rank()), index};
  }

  // The same, and `gradient` has a row for each index.
  SparseRows rows_at(int param, int indices, int gradient) {
    const SparseRows rows = rows_at(param, indices);
    const Tensor& g = input(gradient);
    CAFFE2_ENFORCE(rows.width == 0
                       ? g.size() == 0
                       : g.size() % rows.width == 0 && g.size() / rows.width == rows.count,
                   describe_input(gradient), " has shape ", g.shape().text(), "; needed are ",
                   rows.count, " rows of ", rows.width, " elements");
    return rows;
  }

  void require_row_values(int values, int param) const {
    const Tensor &v = input(values), &w = input(param);
    CAFFE2_ENFORCE(v.size() == w.shape()[0], describe_input(values), " has shape ",
                   v.shape().text(), "; needed is one element for each row of ",
                   describe_input(param), ", which has shape ", w.shape().text());
  }

  // Output `o`, which is input `i` with a few changes, in place. Where that is not demanded, an
  // output asked for later may fail after this one is written: see changed_together.
  template <class T = float>
  T* changed(int o, int i) {
    Tensor& out = output(o, input(i).shape(), input(i).type());
    out.copy_from(input(i));
    return out.mutable_data<T>();
  }

  // Outputs 0, 1, ..., of floats, which are inputs 0, 1, ... with changes.
  template <size_t N>
  std::array<float*, N> changed_together() {
    Tensor* tensors[N];
    std::array<float*, N> values;
    for (size_t i = 0; i < N; i++) {
      const int k = static_cast<int>(i);
      tensors[i] = &output(k, input(k).shape(), DataType::kFloat);
    }
    for (size_t i = 0; i < N; i++) {
      Tensor& out = *tensors[i];
      out.copy_from(input(static_cast<int>(i)));
      values[i] = out.mutable_data<float>();
    }
    return values;
  }
};

// The number of the first step is 1, whose counter is 0.
inline int64_t step_number(const Tensor& iter, const Operand& what) {
  CAFFE2_ENFORCE(iter.size() == 1, what, " has shape ", iter.shape().text(),
                 "; one value is needed");
  const int64_t i = iter.data<int64_t>()[0];
  CAFFE2_ENFORCE(i >= 0 && i < INT64_MAX, what, " is ", i, "; an iteration is not negative");
  return i + 1;
}

}  // namespace caffe2
