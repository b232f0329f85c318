#include "operators/view.h"

#include <cstring>

namespace caffe2 {
namespace {

using Axis = View::Axis;

// Without axes of one element, and with neighbours joined that are one run of memory.
View simplified(const View& view) {
  View simple;
  for (int i = 0; i < view.rank; i++) {
    const Axis& axis = view.axes[i];
    if (axis.count == 1) continue;
    if (simple.rank > 0) {
      Axis& last = simple.axes[simple.rank - 1];
      if (last.from == axis.from * axis.count && last.to == axis.to * axis.count) {
        last = {last.count * axis.count, axis.from, axis.to};
        continue;
      }
    }
    simple.axes[simple.rank++] = axis;
  }
  return simple;
}

// Counts through all axes of a view, the last one fastest, from any place on.
class Odometer {
 public:
  Odometer(const View& view, int64_t place) : view_(view) {
    for (int i = view.rank - 1; i >= 0; i--) {
      index_[i] = place % view.axes[i].count;
      place /= view.axes[i].count;
      from_ += index_[i] * view.axes[i].from;
      to_ += index_[i] * view.axes[i].to;
    }
  }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }
  int64_t index(int axis) const { return index_[axis]; }
  void next() {
    for (int i = view_.rank - 1; i >= 0; i--) {
      const Axis& axis = view_.axes[i];
      from_ += axis.from;
      to_ += axis.to;
      if (++index_[i] < axis.count) return;
      from_ -= axis.count * axis.from;
      to_ -= axis.count * axis.to;
      index_[i] = 0;
    }
  }

 private:
  const View& view_;
  std::array<int64_t, View::kMostAxes> index_{};
  int64_t from_ = 0, to_ = 0;
};

// Calls body(odometer) for every place of the outer axes; each stands for `width` elements.
template <class T, class Body>
void for_places(const View& outer, int64_t width, const kernels::Parallel& parallel,
                const Body& body) {
  int64_t places = 1;
  for (int i = 0; i < outer.rank; i++) places *= outer.axes[i].count;
  const auto range = [&](int64_t begin, int64_t end) {
    Odometer place(outer, begin);
    for (int64_t i = begin; i < end; i++, place.next()) body(place);
  };
  // A copy of a string may throw, which a task of the pool must not.
  if constexpr (std::is_same_v<T, std::string>) {
    range(0, places);
  } else {
    for_ranges(parallel, places, rows_per_block(width), range);
  }
}

template <class T>
void copy(View view, const T* from, T* to, const kernels::Parallel& parallel) {
  if (view.rank == 0) view.add(1, 1, 1);
  const Axis inner = view.axes[--view.rank];
  if (inner.from == 1 && inner.to == 1) {
    if (view.rank == 0) {  // one run of memory: cut it for the threads
      view.add((inner.count + kBlockElements - 1) / kBlockElements, kBlockElements, kBlockElements);
      return for_places<T>(view, kBlockElements, parallel, [&](const Odometer& place) {
        const int64_t count = std::min(kBlockElements, inner.count - place.from());
        std::copy_n(from + place.from(), count, to + place.to());
      });
    }
    return for_places<T>(view, inner.count, parallel, [&](const Odometer& place) {
      std::copy_n(from + place.from(), inner.count, to + place.to());
    });
  }
  // A transpose reads along one axis and writes along another: in tiles that stay in the cache.
  int fast = -1;
  for (int i = 0; i < view.rank && inner.from > 1; i++) {
    if (view.axes[i].from == 1) fast = i;
  }
  if (fast < 0) {
    return for_places<T>(view, inner.count, parallel, [&](const Odometer& place) {
      const T* source = from + place.from();
      T* target = to + place.to();
      for (int64_t i = 0; i < inner.count; i++) target[i * inner.to] = source[i * inner.from];
    });
  }
  const Axis across = view.axes[fast];
  constexpr int64_t kTile = 32;
  const int64_t tile = std::max(kTile, kTile * kTile / inner.count);
  view.axes[fast] = {(across.count + tile - 1) / tile, tile, tile * across.to};
  for_places<T>(view, tile * inner.count, parallel, [&](const Odometer& place) {
    const int64_t rows = std::min(tile, across.count - place.index(fast) * tile);
    for (int64_t first = 0; first < inner.count; first += kTile) {
      const int64_t last = std::min(first + kTile, inner.count);
      for (int64_t i = 0; i < rows; i++) {
        const T* source = from + place.from() + i;
        T* target = to + place.to() + i * across.to;
        for (int64_t j = first; j < last; j++) target[j * inner.to] = source[j * inner.from];
      }
    }
  });
}

}  // namespace

void copy_view(DataType type, const View& view, const void* from, void* to,
               const kernels::Parallel& parallel) {
  for (int i = 0; i < view.rank; i++) {
    if (view.axes[i].count == 0) return;
  }
  by_size(type, [&](const auto& element) {
    using T = std::decay_t<decltype(element)>;
    copy<T>(simplified(view), static_cast<const T*>(from), static_cast<T*>(to), parallel);
  });
}

void copy_view(const View& view, const Tensor& source, int64_t from, Tensor& target, int64_t to,
               const kernels::Parallel& parallel) {
  const auto unit = static_cast<int64_t>(type_size(source.type()));
  copy_view(source.type(), view, static_cast<const char*>(source.raw_data()) + from * unit,
            static_cast<char*>(target.raw_mutable_data()) + to * unit, parallel);
}

void clear(Tensor& tensor) {
  if (tensor.type() == DataType::kString) {
    std::fill_n(tensor.mutable_data<std::string>(), tensor.size(), std::string());
  } else if (tensor.size() > 0) {
    std::memset(tensor.raw_mutable_data(), 0, tensor.bytes());
  }
}

}  // namespace caffe2
