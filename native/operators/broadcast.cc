#include "operators/broadcast.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "operators/dispatch.h"

namespace caffe2 {

namespace {

// How far apart the elements of a dense operand lie along each dimension; 0 where it is repeated.
std::vector<int64_t> strides(const Shape& operand, const Shape& result) {
  std::vector<int64_t> found(static_cast<size_t>(result.rank()));
  int64_t distance = 1;
  for (int d = result.rank() - 1; d >= 0; d--) {
    found[d] = operand[d] == 1 && result[d] != 1 ? 0 : distance;
    distance *= operand[d];
  }
  return found;
}

Shape padded(const Shape& shape, int rank) {
  Shape found;
  for (int d = shape.rank(); d < rank; d++) found.append(1);
  for (const int64_t dim : shape) found.append(dim);
  return found;
}

// Neighbouring dimensions that are summed over, or kept, together.
struct Group {
  int64_t size;
  bool summed;
};

std::vector<Group> groups(const Shape& from, const Shape& to) {
  std::vector<Group> found;
  for (int d = 0; d < from.rank(); d++) {
    if (from[d] == 1) continue;
    const bool summed = to[d] == 1;
    if (!found.empty() && found.back().summed == summed) {
      found.back().size *= from[d];
    } else {
      found.push_back({from[d], summed});
    }
  }
  return found;
}

// y[o][i] = sum over j of x[o][j][i]
template <class T>
void sum_axis(const kernels::Table& kernels, const kernels::Parallel& parallel, int64_t outer,
              int64_t n, int64_t inner, const T* x, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    kernels.reduce(kernels::Reduction::kSum, outer, n, inner, x, y, parallel);
  } else {
    // Integers wrap around: they are added as unsigned ones.
    using Sum = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                            std::type_identity<T>>::type;
    std::fill(y, y + outer * inner, T(0));
    for (int64_t o = 0; o < outer; o++) {
      for (int64_t j = 0; j < n; j++) {
        const T* from = x + (o * n + j) * inner;
        T* to = y + o * inner;
        for (int64_t i = 0; i < inner; i++) {
          to[i] = static_cast<T>(static_cast<Sum>(to[i]) + static_cast<Sum>(from[i]));
        }
      }
    }
  }
}

}  // namespace

BroadcastRule::BroadcastRule(const Arguments& args, bool legacy)
    : legacy_(legacy), axis_(args.int32("axis")) {
  const std::string axis = args.text("axis_str"), order = args.text("order");
  if (!legacy_ || axis.empty()) return;
  CAFFE2_ENFORCE(axis_ == -1, "it has both arguments 'axis' and 'axis_str'; one can be given");
  const size_t place = order.find(axis);
  CAFFE2_ENFORCE(axis.size() == 1 && place != std::string::npos, "argument 'axis_str' = '", axis,
                 "' is no letter of the order '", order, "'");
  axis_ = static_cast<int>(place);
}

Broadcasting BroadcastRule::apply(const Shape& a, const Shape& b, const Operand& what_a,
                                  const Operand& what_b) const {
  Broadcasting found;
  if (!legacy_) {
    const int rank = std::max(a.rank(), b.rank());
    found.a = padded(a, rank);
    found.b = padded(b, rank);
    for (int d = 0; d < rank; d++) {
      const int64_t first = found.a[d], second = found.b[d];
      CAFFE2_ENFORCE(first == second || first == 1 || second == 1, what_a, " has shape ", a.text(),
                     " but ", what_b, " has ", b.text(), ", which cannot be broadcast with it");
      found.result.append(first == 1 ? second : first);
    }
    return found;
  }
  found.result = found.a = a;
  if (b.size() == 1) {
    found.b = padded({}, a.rank());
    return found;
  }
  const int first = axis_ == -1 ? a.rank() - b.rank() : axis_;
  CAFFE2_ENFORCE(b.rank() <= a.rank() && first <= a.rank() - b.rank(), what_b, " has shape ",
                 b.text(), ", which is no part of ", a.text(), ", the shape of ", what_a,
                 ", from axis ", first, " on");
  int begin = 0, end = b.rank();
  while (b[begin] == 1) begin++;
  while (b[end - 1] == 1) end--;
  for (int d = 0; d < a.rank(); d++) {
    const bool inside = d >= first + begin && d < first + end;
    CAFFE2_ENFORCE(!inside || a[d] == b[d - first], what_b, " has shape ", b.text(), " but ",
                   what_a, " has ", a.text(), " from axis ", first, " on");
    found.b.append(inside ? b[d - first] : 1);
  }
  return found;
}

kernels::Broadcast Broadcasting::loops() const {
  static_assert(Shape::kMaxDims <= kernels::Broadcast::kMaxDims);
  const std::vector<int64_t> from_a = strides(a, result), from_b = strides(b, result);
  kernels::Broadcast found;
  int rank = 0;
  for (int d = 0; d < result.rank(); d++) {
    if (result[d] == 1) continue;
    const int last = rank - 1;
    if (rank > 0 && found.a[last] == from_a[d] * result[d] &&
        found.b[last] == from_b[d] * result[d]) {
      found.dims[last] *= result[d];
      found.a[last] = from_a[d];
      found.b[last] = from_b[d];
    } else {
      found.dims[rank] = result[d];
      found.a[rank] = from_a[d];
      found.b[rank] = from_b[d];
      rank++;
    }
  }
  found.rank = std::max(rank, 1);
  return found;
}

kernels::Broadcast side_by_side(int64_t n) {
  kernels::Broadcast found;
  found.dims[0] = n;
  return found;
}

kernels::Broadcast repeated_over(int64_t n) {
  kernels::Broadcast found = side_by_side(n);
  found.a[0] = 0;
  return found;
}

int64_t sum_to_scratch(const Shape& from, const Shape& to, DataType type) {
  int64_t most = 0, size = from.size();
  std::vector<Group> all = groups(from, to);
  if (size == 0) return 0;
  for (auto group = all.rbegin(); group != all.rend(); ++group) {
    if (!group->summed) continue;
    size /= group->size;
    most = std::max(most, size);
  }
  // Two halves, read and written in turn.
  return 2 * most * static_cast<int64_t>(type_size(type));
}

void sum_to(const kernels::Table& kernels, const kernels::Parallel& parallel, DataType type,
            const Shape& from, const void* x, const Shape& to, void* y, void* scratch) {
  dispatch<float, double, int32_t, int64_t>(type, [&](auto zero) {
    using T = decltype(zero);
    const T* source = static_cast<const T*>(x);
    T* target = static_cast<T*>(y);
    int64_t size = from.size();
    if (size == 0) {
      std::fill(target, target + to.size(), T(0));
      return;
    }
    std::vector<Group> all = groups(from, to);
    int64_t left = std::count_if(all.begin(), all.end(), [](const Group& g) { return g.summed; });
    if (left == 0 && source != target) std::memcpy(target, source, size * sizeof(T));
    T* free = static_cast<T*>(scratch);
    T* other = free + sum_to_scratch(from, to, type) / (2 * static_cast<int64_t>(sizeof(T)));
    int64_t inner = 1;
    while (left > 0) {
      const Group group = all.back();
      all.pop_back();
      if (!group.summed) {
        inner *= group.size;
        continue;
      }
      T* sums = --left == 0 ? target : free;
      sum_axis(kernels, parallel, size / group.size / inner, group.size, inner, source, sums);
      size /= group.size;
      source = sums;
      std::swap(free, other);
    }
  });
}

}  // namespace caffe2
