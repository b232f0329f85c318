// Operators on records with nested lists.
#pragma once
#include <cstdint>
#include <vector>

#include "core/operator.h"
#include "core/record_tree.h"

namespace caffe2 {

// Operators on the fields of records.
class RecordOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  // The inputs from `first` on, one per field.
  std::vector<const Tensor*> fields(const RecordTree& tree, int first) const;
  // Outputs 0, 1, ...: a tensor like the field with the rows of its domain.
  std::vector<Tensor*> outputs_like(const RecordTree& tree, const std::vector<const Tensor*>& data,
                                    const std::vector<int64_t>& rows);
};

// Copies `rows` rows of a tensor, from row `from` on, to row `to` of another one of its type.
void copy_rows(const Tensor& source, int64_t from, int64_t rows, Tensor& target, int64_t to,
               const kernels::Parallel& parallel);

}  // namespace caffe2
