// Records with nested lists, kept as one tensor per field: how the fields belong together, and the
// cursor that reads them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/operator.h"

namespace caffe2 {

// The rows of a field belong to a domain: 0, the records, or k + 1, the elements that the k-th
// field of lengths counts. "a:lengths" counts the elements of every field below "a".
class RecordTree {
 public:
  explicit RecordTree(const std::vector<std::string>& fields);

  int fields() const { return static_cast<int>(domain_.size()); }
  int domains() const { return static_cast<int>(length_field_.size()) + 1; }
  int domain(int field) const { return domain_[field]; }
  const std::string& name(int field) const { return names_[field]; }

  // How many rows each domain has behind `offsets` in the next `records` records, or in as many as
  // there are. Fields are given by their tensors, whose lengths are checked.
  std::vector<int64_t> sizes(const std::vector<const Tensor*>& data,
                             const std::vector<int64_t>& offsets, int64_t records) const;
  // The smallest number of rows of a field of each domain.
  std::vector<int64_t> limits(const std::vector<const Tensor*>& data) const;

 private:
  std::vector<std::string> names_;
  std::vector<int> domain_;        // of each field
  std::vector<int> length_field_;  // of each domain but the first
  std::vector<int> order_;         // domains but the first, each after the one it lies in
};

// A place in records that several threads may read from.
class TreeCursor : public Object {
 public:
  explicit TreeCursor(const std::vector<std::string>& fields) : tree(fields) {}
  const char* kind() const override { return "std::unique_ptr<caffe2::dataset_ops::TreeCursor>"; }

  const RecordTree tree;
  ForkMutex mutex;
  std::vector<int64_t> offsets;  // of the next row of each domain; empty before the first read
};

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
