// Minimal filtering F(m, r) in one dimension, as in Lavin and Gray, 2015 (arXiv 1509.09308), with
// the points 0, +-1, (+-2,) infinity. In two dimensions it is applied to columns, then to rows.
// What becomes of the input depends on the points alone: F(4, 3) and F(2, 5) share it.
#pragma once

#include "kernels/simd.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

template <int M, int R>
struct Winograd;

template <>
struct Winograd<2, 3> {
  static constexpr int A = 4;  // input values of a tile, and products: M + R - 1
  FORCE_INLINE static void input(const vf (&d)[4], vf (&v)[4]) {
    v[0] = d[0] - d[2];
    v[1] = d[1] + d[2];
    v[2] = d[2] - d[1];
    v[3] = d[3] - d[1];
  }
  FORCE_INLINE static void filter(const vf (&g)[3], vf (&u)[4]) {
    const vf sum = g[0] + g[2];
    u[0] = g[0];
    u[1] = 0.5f * (sum + g[1]);
    u[2] = 0.5f * (sum - g[1]);
    u[3] = g[2];
  }
  FORCE_INLINE static void output(const vf (&m)[4], vf (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] + m[3];
  }
};

// Six points.
struct WinogradInput6 {
  static constexpr int A = 6;
  FORCE_INLINE static void input(const vf (&d)[6], vf (&v)[6]) {
    const vf even = d[4] - 4.0f * d[2], odd = d[3] - 4.0f * d[1];
    const vf even2 = d[4] - d[2], odd2 = 2.0f * (d[3] - d[1]);
    v[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = even2 + odd2;
    v[4] = even2 - odd2;
    v[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
  }
};

template <>
struct Winograd<4, 3> : WinogradInput6 {
  FORCE_INLINE static void filter(const vf (&g)[3], vf (&u)[6]) {
    const vf one = (-1 / 6.0f) * (g[0] + g[2]), two = (1 / 24.0f) * g[0] + (1 / 6.0f) * g[2];
    u[0] = 0.25f * g[0];
    u[1] = one - (1 / 6.0f) * g[1];
    u[2] = one + (1 / 6.0f) * g[1];
    u[3] = two + (1 / 12.0f) * g[1];
    u[4] = two - (1 / 12.0f) * g[1];
    u[5] = g[2];
  }
  FORCE_INLINE static void output(const vf (&m)[6], vf (&y)[4]) {
    const vf sum = m[1] + m[2], difference = m[1] - m[2];
    const vf sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    y[0] = m[0] + sum + sum2;
    y[1] = difference + 2.0f * difference2;
    y[2] = sum + 4.0f * sum2;
    y[3] = difference + 8.0f * difference2 + m[5];
  }
};

template <>
struct Winograd<2, 5> : WinogradInput6 {
  FORCE_INLINE static void filter(const vf (&g)[5], vf (&u)[6]) {
    const vf one = (-1 / 6.0f) * (g[0] + g[2] + g[4]), odd = (-1 / 6.0f) * (g[1] + g[3]);
    const vf two = (1 / 24.0f) * g[0] + (1 / 6.0f) * g[2] + (2 / 3.0f) * g[4];
    const vf odd2 = (1 / 12.0f) * g[1] + (1 / 3.0f) * g[3];
    u[0] = 0.25f * g[0];
    u[1] = one + odd;
    u[2] = one - odd;
    u[3] = two + odd2;
    u[4] = two - odd2;
    u[5] = g[4];
  }
  FORCE_INLINE static void output(const vf (&m)[6], vf (&y)[2]) {
    y[0] = m[0] + m[1] + m[2] + m[3] + m[4];
    y[1] = m[1] - m[2] + 2.0f * (m[3] - m[4]) + m[5];
  }
};

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
