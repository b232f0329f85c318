// Reading records through a cursor, in order or at random.
#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>

#include "core/registry.h"
#include "operators/records.h"

namespace caffe2 {
namespace {

class CreateTreeCursorOperator : public Operator {
 public:
  explicit CreateTreeCursorOperator(const OperatorContext& context)
      : Operator(context), fields_(args().texts("fields")) {}

 protected:
  void run() override { output_object(0, std::make_shared<TreeCursor>(fields_)); }

 private:
  const std::vector<std::string> fields_;
};

class ResetCursorOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto cursor = input_object<TreeCursor>(0);
    std::lock_guard lock(cursor->mutex);
    cursor->offsets.clear();
  }
};

class GetCursorOffsetOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto cursor = input_object<TreeCursor>(0);
    std::lock_guard lock(cursor->mutex);
    const std::vector<int64_t>& offsets = cursor->offsets;
    Tensor& y = output(0, {static_cast<int64_t>(offsets.size())}, DataType::kInt32);
    std::copy(offsets.begin(), offsets.end(), y.mutable_data<int32_t>());
  }
};

class ReadNextBatchOperator : public RecordOperator {
 public:
  explicit ReadNextBatchOperator(const OperatorContext& context)
      : RecordOperator(context),
        batch_size_(args().integer("batch_size")),
        whole_(args().boolean("enforce_batch_size")) {}

 protected:
  void run() override {
    const auto cursor = input_object<TreeCursor>(0);
    const RecordTree& tree = cursor->tree;
    const std::vector<const Tensor*> data = fields(tree, 1);
    std::vector<int64_t> from, sizes;
    std::vector<Tensor*> made;
    {
      std::lock_guard lock(cursor->mutex);
      from = cursor->offsets;
      from.resize(tree.domains());
      sizes = tree.sizes(data, from, batch_size_);
      std::vector<int64_t> next = from;
      for (int d = 0; d < tree.domains(); d++) next[d] += sizes[d];
      if (whole_ && sizes[0] < batch_size_) std::fill(sizes.begin(), sizes.end(), 0);
      made = outputs_like(tree, data, sizes);
      cursor->offsets = next;
    }
    for (int i = 0; i < tree.fields(); i++) {
      const int d = tree.domain(i);
      copy_rows(*data[i], from[d], sizes[d], *made[i], 0, parallel());
    }
  }

 private:
  const int64_t batch_size_;
  const bool whole_;
};

class ComputeOffsetOperator : public RecordOperator {
 public:
  using RecordOperator::RecordOperator;

 protected:
  void run() override {
    const auto cursor = input_object<TreeCursor>(0);
    const RecordTree& tree = cursor->tree;
    const std::vector<const Tensor*> data = fields(tree, 1);
    std::vector<int64_t> at;
    {
      std::lock_guard lock(cursor->mutex);
      at = cursor->offsets;
    }
    at.resize(tree.domains());
    const int64_t records = tree.limits(data)[0];
    tree.sizes(data, at, records);  // all lengths, before the first write
    Tensor& y = output(0, {records + 1, tree.domains()}, DataType::kInt64);
    int64_t* out = y.mutable_data<int64_t>();
    for (int64_t r = 0; r <= records; r++) {
      out = std::copy(at.begin(), at.end(), out);
      if (r == records) break;
      const std::vector<int64_t> sizes = tree.sizes(data, at, 1);
      for (int d = 0; d < tree.domains(); d++) at[d] += sizes[d];
    }
  }
};

// Inputs cursor, idx, offsets, fields.
class ReadRandomBatchOperator : public RecordOperator {
 public:
  explicit ReadRandomBatchOperator(const OperatorContext& context)
      : RecordOperator(context),
        batch_size_(args().integer("batch_size")),
        whole_(args().boolean("enforce_batch_size")),
        loops_(args().boolean("loop_over")) {}

 protected:
  void run() override {
    const auto cursor = input_object<TreeCursor>(0);
    const RecordTree& tree = cursor->tree;
    const std::vector<const Tensor*> data = fields(tree, 3);
    const Tensor &idx = input(1), &offsets = input(2);
    CAFFE2_ENFORCE(idx.rank() == 1, describe_input(1), " has shape ", idx.shape().text(),
                   "; one dimension is needed");
    CAFFE2_ENFORCE(offsets.rank() == 2 && offsets.dim(1) == tree.domains() && offsets.dim(0) > 0,
                   describe_input(2), " has shape ", offsets.shape().text(), "; rows of ",
                   tree.domains(), " are needed");
    const int64_t* numbers = idx.data<int64_t>();
    const int64_t* starts = offsets.data<int64_t>();
    int64_t begin, rows;
    std::vector<Tensor*> made;
    {
      std::lock_guard lock(cursor->mutex);
      begin = cursor->offsets.empty() ? 0 : cursor->offsets[0];
      const int64_t wanted = whole_ ? batch_size_ : 1;
      if (loops_ && begin + wanted > idx.size()) begin = 0;
      rows = std::clamp<int64_t>(idx.size() - begin, 0, batch_size_);
      if (whole_ && rows < batch_size_) rows = 0;
      made = outputs_like(tree, data, total(tree, data, numbers + begin, rows));
      cursor->offsets = {begin + batch_size_};
    }
    for (int i = 0; i < tree.fields(); i++) {
      const int d = tree.domain(i);
      int64_t to = 0;
      for (int64_t r = 0; r < rows; r++) {
        const int64_t* row = starts + numbers[begin + r] * tree.domains();
        const int64_t from = row[d], count = row[tree.domains() + d] - from;
        copy_rows(*data[i], from, count, *made[i], to, parallel());
        to += count;
      }
    }
  }

 private:
  // Rows of each domain in these records, all of them inside of the data.
  std::vector<int64_t> total(const RecordTree& tree, const std::vector<const Tensor*>& data,
                             const int64_t* numbers, int64_t rows) const {
    const Tensor& offsets = input(2);
    const int64_t records = offsets.dim(0) - 1;
    const std::vector<int64_t> limits = tree.limits(data);
    std::vector<int64_t> sum(tree.domains(), 0);
    for (int64_t r = 0; r < rows; r++) {
      CAFFE2_ENFORCE(numbers[r] >= 0 && numbers[r] < records, describe_input(1), " holds ",
                     numbers[r], "; there are ", records, " records");
      const int64_t* row = offsets.data<int64_t>() + numbers[r] * tree.domains();
      for (int d = 0; d < tree.domains(); d++) {
        const int64_t from = row[d], to = row[tree.domains() + d];
        CAFFE2_ENFORCE(from >= 0 && from <= to && to <= limits[d], describe_input(2),
                       " says that record ", numbers[r], " has rows ", from, " to ", to,
                       "; there are ", limits[d]);
        sum[d] += to - from;
      }
    }
    return sum;
  }

  const int64_t batch_size_;
  const bool whole_, loops_;
};

class SortAndShuffleOperator : public RecordOperator {
 public:
  explicit SortAndShuffleOperator(const OperatorContext& context)
      : RecordOperator(context),
        field_(args().int32("sort_by_field_idx")),
        batch_size_(args().integer("batch_size")),
        shuffle_size_(args().integer("shuffle_size")) {}

 protected:
  void run() override {
    const auto cursor = input_object<TreeCursor>(0);
    const RecordTree& tree = cursor->tree;
    const std::vector<const Tensor*> data = fields(tree, 1);
    CAFFE2_ENFORCE(field_ < tree.fields(), "argument 'sort_by_field_idx' is ", field_,
                   "; there are ", tree.fields(), " fields");
    const int64_t n = tree.limits(data)[0];
    std::vector<int64_t> rows(n);
    std::iota(rows.begin(), rows.end(), 0);
    if (field_ >= 0) {
      const Tensor& key = *data[field_];
      CAFFE2_ENFORCE(
          tree.domain(field_) == 0 && key.size() == key.dim(0) && key.type() == DataType::kInt32,
          describe_input(1 + field_),
          " is sorted by: it must be int32, with one element per record");
      const int32_t* values = key.data<int32_t>();
      std::stable_sort(rows.begin(), rows.end(),
                       [=](int64_t a, int64_t b) { return values[a] < values[b]; });
    }
    Tensor& y = output(0, {n}, DataType::kInt64);
    // Each shuffle begins with the same generator, as in the original: orders are the same.
    int64_t chunk = 0;
    const int64_t whole = n / batch_size_ * batch_size_;
    if (__builtin_mul_overflow(batch_size_, shuffle_size_, &chunk)) chunk = whole;
    chunk = std::min(chunk, whole);
    for (int64_t at = 0; chunk > 1 && at < n - chunk; at += chunk) {
      std::shuffle(rows.begin() + at, rows.begin() + at + chunk, std::minstd_rand0());
    }
    std::vector<int64_t> batches(n / batch_size_);
    std::iota(batches.begin(), batches.end(), 0);
    std::shuffle(batches.begin(), batches.end(), std::minstd_rand0());
    int64_t* out = y.mutable_data<int64_t>();
    for (int64_t batch : batches) {
      out = std::copy_n(rows.begin() + batch * batch_size_, batch_size_, out);
    }
    std::copy(rows.begin() + static_cast<int64_t>(batches.size()) * batch_size_, rows.end(), out);
  }

 private:
  const int field_;
  const int64_t batch_size_, shuffle_size_;
};

class CheckDatasetConsistencyOperator : public RecordOperator {
 public:
  explicit CheckDatasetConsistencyOperator(const OperatorContext& context)
      : RecordOperator(context), tree_(args().texts("fields")) {}

 protected:
  void run() override {
    const std::vector<const Tensor*> data = fields(tree_, 0);
    const std::vector<int64_t> limits = tree_.limits(data);
    for (int i = 0; i < tree_.fields(); i++) {
      CAFFE2_ENFORCE(data[i]->dim(0) == limits[tree_.domain(i)], "field ", i, " (", tree_.name(i),
                     ") has ", data[i]->dim(0), " rows; another of the same list has ",
                     limits[tree_.domain(i)]);
    }
    const std::vector<int64_t> none(tree_.domains(), 0);
    const std::vector<int64_t> sizes = tree_.sizes(data, none, limits[0]);
    for (int i = 0; i < tree_.fields(); i++) {
      CAFFE2_ENFORCE(sizes[tree_.domain(i)] == data[i]->dim(0), "field ", i, " (", tree_.name(i),
                     ") has ", data[i]->dim(0), " rows; its lengths sum to ",
                     sizes[tree_.domain(i)]);
    }
  }

 private:
  const RecordTree tree_;
};

class TrimDatasetOperator : public RecordOperator {
 public:
  explicit TrimDatasetOperator(const OperatorContext& context)
      : RecordOperator(context),
        tree_(args().texts("fields")),
        multiple_of_(args().integer("multiple_of")) {}

 protected:
  void run() override {
    const std::vector<const Tensor*> data = fields(tree_, 0);
    const int64_t records = tree_.limits(data)[0];
    const std::vector<int64_t> none(tree_.domains(), 0);
    const std::vector<int64_t> sizes =
        tree_.sizes(data, none, records / multiple_of_ * multiple_of_);
    const std::vector<Tensor*> made = outputs_like(tree_, data, sizes);
    for (int i = 0; i < tree_.fields(); i++) {
      if (made[i]->storage() == data[i]->storage()) continue;
      copy_rows(*data[i], 0, made[i]->dim(0), *made[i], 0, parallel());
    }
  }

 private:
  const RecordTree tree_;
  const int64_t multiple_of_;
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateTreeCursor, CreateTreeCursorOperator)
REGISTER_CPU_OPERATOR(ResetCursor, ResetCursorOperator)
REGISTER_CPU_OPERATOR(GetCursorOffset, GetCursorOffsetOperator)
REGISTER_CPU_OPERATOR(ReadNextBatch, ReadNextBatchOperator)
REGISTER_CPU_OPERATOR(ComputeOffset, ComputeOffsetOperator)
REGISTER_CPU_OPERATOR(ReadRandomBatch, ReadRandomBatchOperator)
REGISTER_CPU_OPERATOR(SortAndShuffle, SortAndShuffleOperator)
REGISTER_CPU_OPERATOR(CheckDatasetConsistency, CheckDatasetConsistencyOperator)
REGISTER_CPU_OPERATOR(TrimDataset, TrimDatasetOperator)

}  // namespace caffe2
