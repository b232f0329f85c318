// Segments: rows that belong together, as lengths or as the number of the segment of each row.
#pragma once
#include <algorithm>
#include <string>

#include "core/operator.h"
#include "operators/view.h"

namespace caffe2 {

enum class SegmentKind { kLengths, kSorted, kUnsorted };

// Operators on segments: finds them, checked, before anything is written.
class SegmentBase : public Operator {
 public:
  using Operator::Operator;

 protected:
  // Segment k has the rows row(p) for offset(k) <= p < offset(k + 1); unsorted ones only after
  // group_rows.
  int64_t segments() const { return segments_; }
  int64_t rows() const { return rows_; }
  int64_t offset(int64_t k) const { return offsets_[k]; }
  int64_t row(int64_t p) const { return order_ == nullptr ? p : order_[p]; }

  // From input i. rows: how many there are in all; -1 takes what the input says.
  void find_segments(SegmentKind kind, int i, int64_t rows, int64_t num_segments = -1) {
    const Tensor& given = input(i);
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(i), " has shape ", given.shape().text(),
                   "; one dimension is needed");
    const int32_t* values = given.data<int32_t>();
    order_ = nullptr;
    if (kind == SegmentKind::kLengths) {
      find_lengths(i, values, given.size(), rows);
    } else {
      CAFFE2_ENFORCE(rows < 0 || given.size() == rows, describe_input(i), " has shape ",
                     given.shape().text(), ", but there are ", rows, " rows");
      rows_ = given.size();
      if (kind == SegmentKind::kSorted) {
        find_sorted(i, values);
      } else {
        find_unsorted(i, values, num_segments);
      }
    }
  }

  // Of unsorted segments, once all memory is there: one number in the data may ask for very much.
  void group_rows() {
    // Counting sort, which keeps the order of the rows of a segment.
    std::fill_n(offsets_, segments_ + 2, 0);
    int64_t* next = offsets_ + 1;  // next[k] becomes offset(k + 1) in the end
    for (int64_t j = 0; j < rows_; j++) next[ids_[j] + 1]++;
    for (int64_t k = 0; k < segments_; k++) next[k + 1] += next[k];
    for (int64_t j = 0; j < rows_; j++) order_[next[ids_[j]]++] = j;
  }

  // What belongs to each of some things, one after the other: the offsets of n lengths and their
  // sum.
  int64_t* offsets_of(int i, const int32_t* lengths, int64_t n) {
    auto* offsets = scratch<int64_t>(n + 1);
    offsets[0] = 0;
    for (int64_t k = 0; k < n; k++) {
      CAFFE2_ENFORCE(lengths[k] >= 0, describe_input(i), " holds ", lengths[k], " at position ", k,
                     "; lengths are not negative");
      offsets[k + 1] = offsets[k] + lengths[k];
    }
    return offsets;
  }

  // Checks that input i holds n row numbers, each in [0, limit); null or the numbers as int64.
  const int64_t* find_indices(int i, int64_t limit) {
    const Tensor& given = input(i);
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(i), " has shape ", given.shape().text(),
                   "; one dimension is needed");
    const int64_t* indices = nullptr;
    if (given.type() == DataType::kInt64) {
      indices = given.data<int64_t>();
    } else {
      auto* wide = scratch<int64_t>(given.size());
      std::copy_n(given.data<int32_t>(), given.size(), wide);
      indices = wide;
    }
    for (int64_t j = 0; j < given.size(); j++) {
      CAFFE2_ENFORCE(indices[j] >= 0 && indices[j] < limit, describe_input(i), " holds ",
                     indices[j], " at position ", j, "; there are ", limit, " rows");
    }
    return indices;
  }

 private:
  void find_lengths(int i, const int32_t* lengths, int64_t n, int64_t rows) {
    offsets_ = offsets_of(i, lengths, n);
    segments_ = n;
    rows_ = offsets_[n];
    CAFFE2_ENFORCE(rows < 0 || rows == rows_, describe_input(i), " sums to ", rows_,
                   ", but there are ", rows, " rows");
  }

  void find_sorted(int i, const int32_t* ids) {
    for (int64_t j = 0; j < rows_; j++) {
      const int64_t last = j == 0 ? -1 : ids[j - 1];
      CAFFE2_ENFORCE(ids[j] == last + 1 || (j > 0 && ids[j] == last), describe_input(i), " holds ",
                     ids[j], " at position ", j, " after ", last,
                     "; segments begin with 0 and follow each other without gaps");
    }
    segments_ = rows_ == 0 ? 0 : int64_t{ids[rows_ - 1]} + 1;
    offsets_ = scratch<int64_t>(segments_ + 1);
    offsets_[segments_] = rows_;
    for (int64_t j = rows_ - 1; j >= 0; j--) offsets_[ids[j]] = j;
  }

  void find_unsorted(int i, const int32_t* ids, int64_t num_segments) {
    segments_ = num_segments;
    if (num_segments < 0) {
      segments_ = 0;
      for (int64_t j = 0; j < rows_; j++) segments_ = std::max(segments_, int64_t{ids[j]} + 1);
    }
    for (int64_t j = 0; j < rows_; j++) {
      CAFFE2_ENFORCE(ids[j] >= 0 && ids[j] < segments_, describe_input(i), " holds ", ids[j],
                     " at position ", j, "; there are ", segments_, " segments");
    }
    ids_ = ids;
    offsets_ = scratch<int64_t>(segments_ + 2);
    order_ = scratch<int64_t>(rows_);
  }

  int64_t segments_ = 0, rows_ = 0;
  const int32_t* ids_ = nullptr;
  int64_t* offsets_ = nullptr;
  int64_t* order_ = nullptr;
};

// The shape of `like` with another first dimension.
inline Shape with_rows(const Shape& like, int64_t rows) {
  Shape shape{rows};
  for (int i = 1; i < like.rank(); i++) shape.append(like[i]);
  return shape;
}

}  // namespace caffe2
