// Records with nested lists, kept as one tensor per field: how the fields belong together, and the
// cursor that reads them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/blob.h"

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
  const std::vector<std::string>& names() const { return names_; }
  // A field of lengths, by its name.
  static bool counts(const std::string& name);

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
  static constexpr const char* kKind = "std::unique_ptr<TreeCursor>";  // in saved blobs, too
  explicit TreeCursor(const std::vector<std::string>& fields) : tree(fields) {}
  const char* kind() const override { return kKind; }
  void serialize(BlobProto& proto) const override;
  static std::shared_ptr<TreeCursor> load(const BlobProto& proto);

  const RecordTree tree;
  mutable ForkMutex mutex;
  std::vector<int64_t> offsets;  // of the next row of each domain; empty before the first read
};

}  // namespace caffe2
