// The rules of optimizers that work element by element, and the dot product that others need.
#include "kernels/blocks.h"
#include "kernels/functions.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

// Each rule says how many inputs and outputs it has, and computes one vector of all outputs.
struct Adam {
  static constexpr int INPUTS = 4, OUTPUTS = 4;
  float lr, beta1, beta2, epsilon, correction;

  FORCE_INLINE void operator()(const vf (&in)[INPUTS], vf (&out)[OUTPUTS]) const {
    const vf g = in[3];
    out[1] = beta1 * in[1] + (1 - beta1) * g;
    out[2] = beta2 * in[2] + (1 - beta2) * (g * g);
    out[3] = correction * out[1] / (sqrt(out[2]) + epsilon);
    out[0] = in[0] + lr * out[3];
  }
};

// As Adam, while the variance of few gradients is not to be trusted.
struct AdamWarmUp {
  static constexpr int INPUTS = 4, OUTPUTS = 4;
  float lr, beta1, beta2, epsilon, correction;

  FORCE_INLINE void operator()(const vf (&in)[INPUTS], vf (&out)[OUTPUTS]) const {
    const vf g = in[3];
    out[1] = beta1 * in[1] + (1 - beta1) * g;
    out[2] = beta2 * in[2] + (1 - beta2) * (g * g);
    out[3] = correction * out[1];
    out[0] = in[0] + lr * out[3];
  }
};

struct DecayAdagrad {
  static constexpr int INPUTS = 4, OUTPUTS = 3;
  float lr, beta1, epsilon, correction, weight_decay;

  FORCE_INLINE void operator()(const vf (&in)[INPUTS], vf (&out)[OUTPUTS]) const {
    const vf g = in[3];
    out[1] = beta1 * in[1] + (1 - beta1) * g;
    out[2] = in[2] + g * g;
    const vf step = correction * out[1] / (sqrt(out[2]) + epsilon);
    out[0] = in[0] + lr * (step + weight_decay * in[0]);
  }
};

struct Adagrad {
  static constexpr int INPUTS = 3, OUTPUTS = 4;
  float lr, epsilon, decay, weight_decay;

  FORCE_INLINE void operator()(const vf (&in)[INPUTS], vf (&out)[OUTPUTS]) const {
    const vf g = in[2] + weight_decay * in[0];
    out[1] = decay * in[1] + g * g;
    out[2] = lr / (sqrt(out[1]) + epsilon);
    out[3] = out[2] * g;
    out[0] = in[0] + out[3];
  }
};

struct RmsProp {
  static constexpr int INPUTS = 3, OUTPUTS = 3;
  float lr, decay, momentum, epsilon;

  FORCE_INLINE void operator()(const vf (&in)[INPUTS], vf (&out)[OUTPUTS]) const {
    const vf g = in[2];
    out[0] = in[0] + (1 - decay) * (g * g - in[0]);
    out[1] = momentum * in[1] + lr * g / sqrt(epsilon + out[0]);
    out[2] = out[1];
  }
};

struct Adadelta {
  static constexpr int INPUTS = 4, OUTPUTS = 3;
  float lr, decay, epsilon;

  FORCE_INLINE void operator()(const vf (&in)[INPUTS], vf (&out)[OUTPUTS]) const {
    const vf g = in[3];
    out[1] = decay * in[1] + (1 - decay) * (g * g);
    const vf step = sqrt((in[2] + epsilon) / (out[1] + epsilon)) * g;
    out[2] = decay * in[2] + (1 - decay) * (step * step);
    out[0] = in[0] + lr * step;
  }
};

template <class Rule>
void apply(const Rule& rule, const Update& u, int64_t n, const Parallel& parallel) {
  for_ranges(parallel, n, ELEMENTS, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += VL) {
      const int left = (int)min_of<int64_t>(VL, end - i);
      vf in[Rule::INPUTS], out[Rule::OUTPUTS];
      for (int j = 0; j < Rule::INPUTS; j++) {
        in[j] = left == VL ? load(u.in[j] + i) : load_partial(u.in[j] + i, left);
      }
      rule(in, out);
      for (int j = 0; j < Rule::OUTPUTS; j++) {
        if (u.out[j] == nullptr) continue;
        if (left == VL) {
          store(u.out[j] + i, out[j]);
        } else {
          store_partial(u.out[j] + i, out[j], left);
        }
      }
    }
  });
}

}  // namespace

double dot(int64_t n, const float* x, const float* y, const Parallel& parallel) {
  constexpr int64_t PARTS = 64, STRETCH = 64 * VL;  // a lane adds 64 numbers before it is read
  double parts[PARTS];
  const int64_t step = max_of(ELEMENTS, ceil_div(n, PARTS));
  for_ranges(parallel, n, step, [&](int64_t begin, int64_t end) {
    double total = 0;
    for (int64_t first = begin; first < end; first += STRETCH) {
      const int64_t last = min_of(end, first + STRETCH);
      vf sum = {};
      for (int64_t i = first; i < last; i += VL) {
        const int left = (int)min_of<int64_t>(VL, last - i);
        sum += left == VL ? load(x + i) * load(y + i)
                          : load_partial(x + i, left) * load_partial(y + i, left);
      }
      total += reduce_sum(sum);
    }
    parts[begin / step] = total;
  });
  double total = 0;
  for (int64_t i = 0; i < ceil_div(n, step); i++) total += parts[i];
  return total;
}

void update(const Update& u, int64_t n, const Parallel& parallel) {
  const auto& c = u.constants;
  switch (u.rule) {
    case UpdateRule::kAdam:
      return apply(Adam{c[0], c[1], c[2], c[3], c[4]}, u, n, parallel);
    case UpdateRule::kAdamWarmUp:
      return apply(AdamWarmUp{c[0], c[1], c[2], c[3], c[4]}, u, n, parallel);
    case UpdateRule::kDecayAdagrad:
      return apply(DecayAdagrad{c[0], c[1], c[2], c[3], c[4]}, u, n, parallel);
    case UpdateRule::kAdagrad:
      return apply(Adagrad{c[0], c[1], c[2], c[3]}, u, n, parallel);
    case UpdateRule::kRmsProp:
      return apply(RmsProp{c[0], c[1], c[2], c[3]}, u, n, parallel);
    case UpdateRule::kAdadelta:
      return apply(Adadelta{c[0], c[1], c[2]}, u, n, parallel);
  }
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
