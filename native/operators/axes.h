// Operators that reduce the axes of the argument `axes`, or all when there are none.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/operator.h"
#include "operators/shapes.h"

namespace caffe2 {

using Axes = std::array<bool, Shape::kMaxDims>;  // which axes are reduced

// A shape as runs of axes that are all reduced or all kept, for loops over it.
class Runs {
 public:
  Runs(const Shape& shape, const Axes& reduced) {
    for (int i = 0; i < shape.rank(); i++) {
      (reduced[i] ? reduced_size_ : kept_size_) *= shape[i];
      if (shape[i] == 1) continue;
      if (count_ > 0 && reduced_[count_ - 1] == reduced[i]) {
        sizes_[count_ - 1] *= shape[i];
      } else {
        sizes_[count_] = shape[i], reduced_[count_++] = reduced[i];
      }
    }
  }

  int count() const { return count_; }
  int64_t size(int run) const { return sizes_[run]; }
  bool reduced(int run) const { return reduced_[run]; }
  int64_t reduced_size() const { return reduced_size_; }
  int64_t kept_size() const { return kept_size_; }

  // Goes over the elements [begin, end) in stretches: f(from, to, n, step) for n elements at
  // `from`, which belong to the results at to, to + step, to + 2 * step, ...
  template <class F>
  void walk(int64_t begin, int64_t end, const F& f) const {
    const int64_t last = count_ > 0 ? sizes_[count_ - 1] : 1;
    const int64_t step = count_ > 0 && reduced_[count_ - 1] ? 0 : 1;
    for (int64_t at = begin; at < end;) {
      const int64_t column = at % last, n = std::min(last - column, end - at);
      int64_t rest = at / last, to = column * step, stride = step ? last : 1;
      for (int i = count_ - 2; i >= 0; i--) {
        const int64_t digit = rest % sizes_[i];
        rest /= sizes_[i];
        if (reduced_[i]) continue;
        to += digit * stride;
        stride *= sizes_[i];
      }
      f(at, to, n, step);
      at += n;
    }
  }

 private:
  int count_ = 0;
  int64_t sizes_[Shape::kMaxDims];
  bool reduced_[Shape::kMaxDims];
  int64_t reduced_size_ = 1, kept_size_ = 1;
};

// Integers of sums wrap around.
template <class T>
T wrapping_add(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
}

// Memory for `reduce` of these runs.
int64_t reduce_scratch_bytes(const Runs& runs);

// Reduces the runs one after the other, from the back.
void reduce(const kernels::Table& table, kernels::Reduction reduction, const Runs& runs,
            const float* x, float* y, void* scratch, const kernels::Parallel& parallel);

class AxesOperator : public Operator {
 public:
  explicit AxesOperator(const OperatorContext& context)
      : Operator(context), axes_(args().integers("axes")), keepdims_(args().boolean("keepdims")) {}

 protected:
  Axes resolve(const Shape& shape, const Operand& what) const {
    Axes reduced{};
    for (int i = 0; axes_.empty() && i < shape.rank(); i++) reduced[i] = true;
    for (int64_t axis : axes_) {
      reduced[canonical_axis(static_cast<int>(axis), shape.rank(), what)] = true;
    }
    return reduced;
  }

  Shape kept_shape(const Shape& shape, const Axes& reduced) const {
    Shape kept;
    for (int i = 0; i < shape.rank(); i++) {
      if (!reduced[i] || keepdims_) kept.append(reduced[i] ? 1 : shape[i]);
    }
    return kept;
  }

 private:
  const std::vector<int64_t> axes_;
  const bool keepdims_;
};

}  // namespace caffe2
