#include "operators/record_tree.h"

#include <algorithm>
#include <numeric>

#include "operators/segments.h"
#include "operators/view.h"

namespace caffe2 {

namespace {

constexpr const char* kLengths = "lengths";

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find(':', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool begins_with(const std::vector<std::string>& path, const std::vector<std::string>& prefix) {
  return path.size() > prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

}  // namespace

RecordTree::RecordTree(const std::vector<std::string>& fields) : names_(fields) {
  std::vector<std::vector<std::string>> paths, counted;  // counted: by each field of lengths
  for (const std::string& name : fields) {
    paths.push_back(parts_of(name));
    if (paths.back().back() != kLengths) continue;
    paths.back().pop_back();  // the list itself, which lies in what is around it
    counted.push_back(paths.back());
    length_field_.push_back(static_cast<int>(paths.size()) - 1);
  }
  for (const std::vector<std::string>& path : paths) {
    int found = 0;
    for (int k = 1; k < domains(); k++) {
      const bool longer = found == 0 || counted[k - 1].size() > counted[found - 1].size();
      if (begins_with(path, counted[k - 1]) && longer) found = k;
    }
    domain_.push_back(found);
  }
  order_.resize(length_field_.size());
  std::iota(order_.begin(), order_.end(), 1);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int a, int b) { return counted[a - 1].size() < counted[b - 1].size(); });
}

std::vector<int64_t> RecordTree::limits(const std::vector<const Tensor*>& data) const {
  std::vector<int64_t> found(domains(), -1);
  for (int i = 0; i < fields(); i++) {
    int64_t& limit = found[domain_[i]];
    const int64_t rows = data[i]->dim(0);
    limit = limit < 0 ? rows : std::min(limit, rows);
  }
  for (int64_t& limit : found) limit = std::max<int64_t>(limit, 0);
  return found;
}

std::vector<int64_t> RecordTree::sizes(const std::vector<const Tensor*>& data,
                                       const std::vector<int64_t>& offsets, int64_t records) const {
  const std::vector<int64_t> limit = limits(data);
  std::vector<int64_t> found(domains(), 0);
  CAFFE2_ENFORCE(offsets[0] <= limit[0], "the cursor stands behind record ", offsets[0],
                 ", but there are ", limit[0]);
  found[0] = std::min(records, limit[0] - offsets[0]);
  for (int d : order_) {
    const int field = length_field_[d - 1], parent = domain_[field];
    const int32_t* lengths = data[field]->data<int32_t>() + offsets[parent];
    for (int64_t k = 0; k < found[parent]; k++) {
      CAFFE2_ENFORCE(lengths[k] >= 0, "field ", field, " (", names_[field], ") holds ", lengths[k],
                     " at position ", offsets[parent] + k, "; lengths are not negative");
      found[d] += lengths[k];
    }
    CAFFE2_ENFORCE(offsets[d] + found[d] <= limit[d], "field ", field, " (", names_[field],
                   ") counts ", offsets[d] + found[d], " elements, but there are ", limit[d]);
  }
  return found;
}

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
    const std::vector<std::string> parts = parts_of(tree.name(i));
    CAFFE2_ENFORCE(
        parts.back() != kLengths || (data[i]->type() == DataType::kInt32 && data[i]->rank() == 1),
        describe_input(first + i), " has type ", type_name(data[i]->type()), " and shape ",
        data[i]->shape().text(), "; field '", tree.name(i), "' is int32 and has one dimension");
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
