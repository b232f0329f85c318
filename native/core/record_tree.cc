#include "core/record_tree.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <span>

#include "core/messages.h"

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

bool RecordTree::counts(const std::string& name) { return parts_of(name).back() == kLengths; }

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

// As the original writes it: the names, each with a space behind it, and the offsets, if any.
void TreeCursor::serialize(BlobProto& proto) const {
  std::string names;
  for (const std::string& name : tree.names()) names += name + " ";
  proto.type = kKind;
  proto.content = wire::Bytes(std::move(names));
  const std::lock_guard lock(mutex);
  if (offsets.empty()) return;
  TensorProto tensor;
  tensor.dims = {static_cast<int64_t>(offsets.size())};
  tensor.data_type = static_cast<int32_t>(DataType::kInt64);
  tensor.int64_data = wire::Packed<int64_t>(std::span<const int64_t>(offsets));
  proto.tensor = std::move(tensor);
}

std::shared_ptr<TreeCursor> TreeCursor::load(const BlobProto& proto) {
  std::vector<std::string> names;
  const std::string_view text = proto.content ? proto.content->view() : std::string_view();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    names.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  auto cursor = std::make_shared<TreeCursor>(names);
  if (!proto.tensor) return cursor;
  cursor->offsets = proto.tensor->int64_data.values();
  for (const int64_t offset : cursor->offsets) {
    CAFFE2_ENFORCE(offset >= 0 && offset <= INT64_MAX / 2, "a saved cursor stands at row ", offset);
  }
  return cursor;
}

}  // namespace caffe2
