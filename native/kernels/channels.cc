// Sums and affine maps per channel, for data [outer][channels][inner].
#include "kernels/functions.h"
#include "kernels/map.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// How the values of a channel meet a vector of data: one value for all lanes where inner > 1 ...
struct OneChannel {
  int64_t c;
  FORCE_INLINE vf operator()(const float* values) const {
    return values == nullptr ? vf{} : splat(values[c]);
  }
};
// ... and neighbouring channels in neighbouring lanes where inner = 1.
struct NeighbouringChannels {
  int64_t first;
  int count;
  FORCE_INLINE vf operator()(const float* values) const {
    return values == nullptr ? vf{} : part(values + first);
  }
  FORCE_INLINE vf part(const float* x) const {
    return count == VL ? load(x) : load_partial(x, count);
  }
};

// y = f(inputs...) with f = make(at): at(values) is the vector that belongs to the channels in
// hand.
template <class Make, class... Inputs>
FORCE_INLINE void map_channels(const ChannelShape& s, float* y, const Parallel& parallel,
                               const Make& make, Inputs... inputs) {
  const int64_t size = s.channels * s.inner;
  if (s.inner == 1) {
    for_ranges(parallel, s.outer, max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, size)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = 0; c < s.channels; c += VL) {
                   const NeighbouringChannels at{c, (int)min_of<int64_t>(VL, s.channels - c)};
                   const auto f = make(at);
                   for (int64_t i = begin * size + c; i < end * size; i += size) {
                     const vf v = f(at.part(inputs + i)...);
                     if (at.count == VL) {
                       store(y + i, v);
                     } else {
                       store_partial(y + i, v, at.count);
                     }
                   }
                 }
               });
    return;
  }
  for_ranges(
      parallel, s.outer * s.channels, max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, s.inner)),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          map_range(i * s.inner, (i + 1) * s.inner, y, make(OneChannel{i % s.channels}), inputs...);
        }
      });
}

// sums[c] = the sum of f(inputs...) over channel c: short stretches in float, added up in double.
template <class Make, class... Inputs>
FORCE_INLINE void sum_channels(const ChannelShape& s, float* sums, const Parallel& parallel,
                               const Make& make, Inputs... inputs) {
  if (s.inner == 1) {
    for_ranges(parallel, s.channels, VL, [&](int64_t first, int64_t last) {
      const NeighbouringChannels at{first, (int)(last - first)};
      const auto f = make(at);
      double total[VL] = {};
      for (int64_t begin = 0; begin < s.outer; begin += 32) {
        vf sum{};
        for (int64_t i = begin; i < min_of(s.outer, begin + 32); i++) {
          sum += f(at.part(inputs + i * s.channels + first)...);
        }
        for (int l = 0; l < VL; l++) total[l] += sum[l];
      }
      for (int l = 0; l < at.count; l++) sums[first + l] = (float)total[l];
    });
    return;
  }
  const int64_t step = max_of<int64_t>(1, ELEMENTS / max_of<int64_t>(1, s.outer * s.inner));
  for_ranges(parallel, s.channels, step, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) {
      const auto f = make(OneChannel{c});
      double total = 0;
      for (int64_t o = 0; o < s.outer; o++) {
        const int64_t start = (o * s.channels + c) * s.inner, stop = start + s.inner;
        for (int64_t i = start; i < stop;) {
          vf sum{};
          for (const int64_t pause = i + 32 * VL; i < pause && i + VL <= stop; i += VL) {
            sum += f(load(inputs + i)...);
          }
          if (i < stop && i + VL > stop) {
            const int rest = (int)(stop - i);
            const vf v = f(load_partial(inputs + i, rest)...);
            sum += select(lane_numbers() < splat_int(rest), v, vf{});
            i = stop;
          }
          total += reduce_sum(sum);
        }
      }
      sums[c] = (float)total;
    }
  });
}

}  // namespace

void channel_sums(const ChannelShape& s, const float* x, float* sums, const Parallel& parallel) {
  sum_channels(s, sums, parallel, [](const auto&) { return [](vf v) { return v; }; }, x);
}

void channel_products(const ChannelShape& s, const float* x, const float* x_center, const float* y,
                      const float* y_center, float* sums, const Parallel& parallel) {
  sum_channels(
      s, sums, parallel,
      [&](const auto& at) {
        const vf a = at(x_center), b = at(y_center);
        return [=](vf v, vf w) { return (v - a) * (w - b); };
      },
      x, y);
}

void channel_affine(const ChannelShape& s, const float* x, const float* center, const float* scale,
                    const float* bias, float* y, const Parallel& parallel) {
  map_channels(
      s, y, parallel,
      [&](const auto& at) {
        const vf m = at(center), a = at(scale), b = at(bias);
        return [=](vf v) { return (v - m) * a + b; };
      },
      x);
}

void channel_combine(const ChannelShape& s, const float* x, const float* a, const float* y,
                     const float* center, const float* b, const float* c, float* z,
                     const Parallel& parallel) {
  map_channels(
      s, z, parallel,
      [&](const auto& at) {
        const vf va = at(a), m = at(center), vb = at(b), vc = at(c);
        return [=](vf v, vf w) { return v * va + ((w - m) * vb + vc); };
      },
      x, y);
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
