#include "operators/records.h"

#include "operators/segments.h"
#include "operators/view.h"

namespace caffe2 {

std::vector<const Tensor*> RecordOperator::fields(const RecordTree& tree, int first) const {
  CAFFE2_ENFORCE(inputs() - first == tree.fields(), "there are ", inputs() - first, " inputs for ",
                 tree.fields(), " fields");
  std::vector<const Tensor*> data;
  for (int i = 0; i < tree.fields(); i++) {
    const Tensor& x = input(first + i);
    CAFFE2_ENFORCE(x.rank() > 0, describe_input(first + i), " is a scalar; rows are needed");
    data.push_back(&x);
  }
  for (int i = 0; i < tree.fields(); i++) {
    CAFFE2_ENFORCE(!RecordTree::counts(tree.name(i)) ||
                       (data[i]->type() == DataType::kInt32 && data[i]->rank() == 1),
                   describe_input(first + i), " has type ", type_name(data[i]->type()),
                   " and shape ", data[i]->shape().text(), "; field '", tree.name(i),
                   "' is int32 and has one dimension");
  }
  return data;
}

std::vector<Tensor*> RecordOperator::outputs_like(const RecordTree& tree,
                                                  const std::vector<const Tensor*>& data,
                                                  const std::vector<int64_t>& rows) {
  CAFFE2_ENFORCE(outputs() == tree.fields(), "there are ", outputs(), " outputs for ",
                 tree.fields(), " fields");
  std::vector<Tensor*> made;
  for (int i = 0; i < tree.fields(); i++) {
    made.push_back(&output(i, with_rows(data[i]->shape(), rows[tree.domain(i)]), data[i]->type()));
  }
  return made;
}

void copy_rows(const Tensor& source, int64_t from, int64_t rows, Tensor& target, int64_t to,
               const kernels::Parallel& parallel) {
  const int64_t width = source.shape().product(1, source.rank());
  View view;
  view.add(rows * width, 1, 1);
  copy_view(view, source, from * width, target, to * width, parallel);
}

}  // namespace caffe2
