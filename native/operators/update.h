// Operators whose rule is a kernels::Update: dense, and row by row for sparse gradients.
#pragma once
#include <initializer_list>

#include "operators/sparse_rows.h"

namespace caffe2 {

// Output `index` replaces input `source`, or has its shape.
struct UpdateOutput {
  int index;
  int source;
};
using UpdateOutputs = std::initializer_list<UpdateOutput>;

class UpdateOperator : public SparseRowsOperator {
 public:
  using SparseRowsOperator::SparseRowsOperator;

 protected:
  // Inputs in the order of the rule, the gradient last; equally many elements each.
  void update(kernels::Update u, std::initializer_list<int> sources, UpdateOutputs targets) {
    const int gradient = *(sources.end() - 1);
    for (const int i : sources) {
      require_same_size(describe_input(i), input(i), describe_input(gradient), input(gradient));
    }
    int k = 0;
    for (const UpdateOutput& target : targets) {
      const int place = k++;
      if (target.index >= outputs()) continue;
      u.out[place] = output(target.index, input(target.source).shape(), DataType::kFloat)
                         .mutable_data<float>();
    }
    k = 0;
    for (const int i : sources) u.in[k++] = input(i).data<float>();
    kernels().update(u, input(gradient).size(), parallel());
  }

  // The states, `sources` without the last, are changed in place, one row of the gradient after
  // the other, so that a row that comes twice is updated twice.
  void update_rows(kernels::Update all, std::initializer_list<int> sources, int indices,
                   UpdateOutputs targets) {
    const int param = *sources.begin(), gradient = *(sources.end() - 1);
    const SparseRows rows = rows_at(param, indices, gradient);
    for (const int i : sources) {
      if (i == gradient) continue;
      require_same_shape(describe_input(i), input(i), describe_input(param), input(param));
    }
    const int states = static_cast<int>(sources.size()) - 1;
    int k = 0;
    for (const UpdateOutput& target : targets) {
      const int place = k++;
      if (place < states) {
        all.in[place] = all.out[place] = changed(target.index, target.source);
      } else if (target.index < outputs()) {
        all.out[place] = output(target.index, input(target.source).shape(), DataType::kFloat)
                             .mutable_data<float>();
      }
    }
    all.in[states] = input(gradient).data<float>();
    const kernels::Parallel alone;
    for (int64_t r = 0; r < rows.count; r++) {
      const int64_t row = rows.index[r] * rows.width, place = r * rows.width;
      kernels::Update u = all;
      for (int s = 0; s < states; s++) {
        u.in[s] += row;
        u.out[s] += row;
      }
      u.in[states] += place;
      if (u.out[states] != nullptr) u.out[states] += place;
      kernels().update(u, rows.width, alone);
    }
  }
};

}  // namespace caffe2
