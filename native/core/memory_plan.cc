#include "core/memory_plan.h"

#include <algorithm>
#include <cstdint>

#include "core/allocator.h"

namespace caffe2 {

size_t place(std::vector<Lifetime>& values) {
  std::vector<Lifetime*> largest_first;
  for (Lifetime& value : values) largest_first.push_back(&value);
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const Lifetime* a, const Lifetime* b) { return a->bytes > b->bytes; });
  const auto rounded = [](size_t bytes) {
    return (bytes + Allocator::kAlignment - 1) / Allocator::kAlignment * Allocator::kAlignment;
  };
  std::vector<const Lifetime*> placed;  // by offset
  size_t total = 0;
  for (Lifetime* value : largest_first) {
    // The smallest gap that it fits into, between those that live at the same time.
    size_t end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const Lifetime* other : placed) {
      if (other->last < value->first || value->last < other->first) continue;
      if (other->offset >= end && other->offset - end >= value->bytes &&
          other->offset - end < best_gap) {
        best = end;
        best_gap = other->offset - end;
      }
      end = std::max(end, other->offset + rounded(other->bytes));
    }
    value->offset = best == SIZE_MAX ? end : best;
    total = std::max(total, value->offset + rounded(value->bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), value,
                                   [](auto* a, auto* b) { return a->offset < b->offset; }),
                  value);
  }
  return total;
}

}  // namespace caffe2
