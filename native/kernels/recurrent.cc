// One step of recurrent units, a row (sequence) at a time.
#include "kernels/functions.h"
#include "kernels/map.h"
#include "kernels/math.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// Vectors of several arrays at the same place, of which the last may be a part.
struct Place {
  int64_t at;
  int left;

  vf read(const float* p) const { return left == VL ? load(p + at) : load_partial(p + at, left); }
  void write(float* p, vf v) const {
    if (left == VL) {
      store(p + at, v);
    } else {
      store_partial(p + at, v, left);
    }
  }
};

template <class Body>
void for_places(int64_t n, const Body& body) {
  for (int64_t j = 0; j < n; j += VL) body(Place{j, (int)min_of<int64_t>(VL, n - j)});
}

// Calls step(i) for rows whose sequence goes on, and over(i) for the others.
template <class Step, class Over>
void for_rows(const UnitStep& s, const Parallel& parallel, const Step& step, const Over& over) {
  const int64_t rows = max_of<int64_t>(1, ELEMENTS / 16 / max_of<int64_t>(1, s.n));
  for_ranges(parallel, s.rows, rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      if (s.lengths == nullptr || s.time < s.lengths[i]) {
        step(i);
      } else {
        over(i);
      }
    }
  });
}

void zero_row(int64_t n, float* y) {
  map_range(0, n, y, [] { return vf{}; });
}

// What a sequence that is over hands on.
void keep_row(const UnitStep& s, int64_t i, const float* x, float* y) {
  if (s.drop) {
    zero_row(s.n, y + i * s.n);
  } else {
    map_range(0, s.n, y + i * s.n, [](vf v) { return v; }, x + i * s.n);
  }
}

}  // namespace

void lstm_unit(const UnitStep& s, float forget_bias, const float* h_prev, const float* c_prev,
               const float* gates, float* h, float* c, const Parallel& parallel) {
  const int64_t n = s.n;
  for_rows(
      s, parallel,
      [&](int64_t i) {
        const float* g = gates + i * 4 * n;
        for_places(n, [&](Place p) {
          const vf input = sigmoid(p.read(g)), forget = sigmoid(p.read(g + n) + forget_bias);
          const vf output = sigmoid(p.read(g + 2 * n)), candidate = tanh(p.read(g + 3 * n));
          const vf cell = forget * p.read(c_prev + i * n) + input * candidate;
          p.write(c + i * n, cell);
          p.write(h + i * n, output * tanh(cell));
        });
      },
      [&](int64_t i) {
        keep_row(s, i, h_prev, h);
        keep_row(s, i, c_prev, c);
      });
}

void lstm_unit_gradient(const UnitStep& s, float forget_bias, const float* c_prev,
                        const float* gates, const float* c, const float* dh, const float* dc,
                        float* dh_prev, float* dc_prev, float* dgates, const Parallel& parallel) {
  const int64_t n = s.n;
  for_rows(
      s, parallel,
      [&](int64_t i) {
        const float* g = gates + i * 4 * n;
        float* dg = dgates + i * 4 * n;
        zero_row(n, dh_prev + i * n);  // the gates know of it
        for_places(n, [&](Place p) {
          const vf input = sigmoid(p.read(g)), forget = sigmoid(p.read(g + n) + forget_bias);
          const vf output = sigmoid(p.read(g + 2 * n)), candidate = tanh(p.read(g + 3 * n));
          const vf squashed = tanh(p.read(c + i * n)), from_h = p.read(dh + i * n);
          const vf cell = p.read(dc + i * n) + from_h * output * (1.f - squashed * squashed);
          p.write(dg, cell * candidate * input * (1.f - input));
          p.write(dg + n, cell * p.read(c_prev + i * n) * forget * (1.f - forget));
          p.write(dg + 2 * n, from_h * squashed * output * (1.f - output));
          p.write(dg + 3 * n, cell * input * (1.f - candidate * candidate));
          p.write(dc_prev + i * n, cell * forget);
        });
      },
      [&](int64_t i) {
        keep_row(s, i, dh, dh_prev);
        keep_row(s, i, dc, dc_prev);
        zero_row(4 * n, dgates + i * 4 * n);
      });
}

void gru_unit(const UnitStep& s, const float* h_prev, const float* gates, float* h,
              const Parallel& parallel) {
  const int64_t n = s.n;
  for_rows(
      s, parallel,
      [&](int64_t i) {
        const float* g = gates + i * 3 * n;
        for_places(n, [&](Place p) {
          const vf update = sigmoid(p.read(g + n)), candidate = tanh(p.read(g + 2 * n));
          p.write(h + i * n, update * p.read(h_prev + i * n) + (1.f - update) * candidate);
        });
      },
      [&](int64_t i) { keep_row(s, i, h_prev, h); });
}

void gru_unit_gradient(const UnitStep& s, const float* h_prev, const float* gates, const float* dh,
                       float* dh_prev, float* dgates, const Parallel& parallel) {
  const int64_t n = s.n;
  for_rows(
      s, parallel,
      [&](int64_t i) {
        const float* g = gates + i * 3 * n;
        float* dg = dgates + i * 3 * n;
        zero_row(n, dg);
        for_places(n, [&](Place p) {
          const vf update = sigmoid(p.read(g + n)), candidate = tanh(p.read(g + 2 * n));
          const vf d = p.read(dh + i * n);
          p.write(dg + n, d * (p.read(h_prev + i * n) - candidate) * update * (1.f - update));
          p.write(dg + 2 * n, d * (1.f - update) * (1.f - candidate * candidate));
          p.write(dh_prev + i * n, d * update);
        });
      },
      [&](int64_t i) {
        keep_row(s, i, dh, dh_prev);
        zero_row(3 * n, dgates + i * 3 * n);
      });
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
