// YellowFin: momentum with a learning rate and a momentum that tune themselves.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/registry.h"
#include "operators/sparse_rows.h"

namespace caffe2 {
namespace {

constexpr double kLeast = 1.1754943508222875e-38;

// The x in (0, 1] with p * x = (1 - x)^3.
double root(double p) {
  p = std::min(p, 1e16);  // beyond, x is 0, and rounding would make it something else
  const double w = std::cbrt((-std::sqrt(p * p + 4.0 / 27 * p * p * p) - p) / 2);
  return w == 0 ? 1 : 1 + (w - p / 3 / w);
}

class YellowFinOperator : public SparseRowsOperator {
 public:
  explicit YellowFinOperator(const OperatorContext& context)
      : SparseRowsOperator(context),
        beta_(args().real("beta")),
        epsilon_(args().real("epsilon")),
        width_(args().integer("curv_win_width")),
        nesterov_(args().boolean("nesterov")),
        zero_debias_(args().boolean("zero_debias")) {}

 protected:
  void run() override {
    for (const int i : {0, 1, 5, 6}) {
      require_same_size(describe_input(i), input(i), describe_input(8), input(8));
    }
    const float lr = scalar_value(input(2), describe_input(2));
    const float mu = scalar_value(input(3), describe_input(3));
    require_size(4, width_);
    require_size(7, 5);
    CAFFE2_ENFORCE(input(9).size() == 1, describe_input(9), " has shape ", input(9).shape().text(),
                   "; one value is needed");
    const int64_t step = input(9).data<int64_t>()[0];
    CAFFE2_ENFORCE(step >= 1, describe_input(9), " is ", step, "; it is 1 at the first step");
    const std::array<float*, 8> state = changed_together<8>();
    const int64_t n = input(8).size();
    const float* g = input(8).data<float>();
    move(n, g, lr, mu, state[0], state[1]);
    const double mean_square = average(n, g, state[5], state[6], step);
    remember(kernels().dot(n, g, g, parallel()), step, state[4], state[7]);
    if (step > 1) tune(mean_square, step, state[7], state[2], state[3]);
  }

 private:
  void require_size(int i, int64_t wanted) const {
    CAFFE2_ENFORCE(input(i).size() == wanted, describe_input(i), " has shape ",
                   input(i).shape().text(), "; ", wanted, " elements are needed");
  }

  double weight(int64_t step) const {
    return zero_debias_ ? 1 - std::pow(beta_, static_cast<double>(step)) : 1;
  }

  void move(int64_t n, const float* g, float lr, float mu, float* w, float* m) const {
    for (int64_t i = 0; i < n; i++) {
      const float next = mu * m[i] + lr * g[i];
      w[i] -= nesterov_ ? (1 + mu) * next - mu * m[i] : next;
      m[i] = next;
    }
  }

  // The running means of the gradient and its square; |the former|^2, without bias.
  double average(int64_t n, const float* g, float* mean, float* square, int64_t step) const {
    const auto keep = static_cast<float>(beta_), add = static_cast<float>(1 - beta_);
    const double scale = weight(step);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
      mean[i] = keep * mean[i] + add * g[i];
      square[i] = keep * square[i] + add * g[i] * g[i];
      sum += (mean[i] / scale) * (mean[i] / scale);
    }
    return sum;
  }

  void remember(double square, int64_t step, float* window, float* memory) const {
    window[(step - 1) % width_] = static_cast<float>(std::log(std::max(square, kLeast)));
    const auto [low, high] = std::minmax_element(window, window + std::min(width_, step));
    const double seen[] = {std::sqrt(square), square, *low, *high};
    double now[5];
    for (int i = 0; i < 4; i++) now[i] = beta_ * memory[i] + (1 - beta_) * seen[i];
    const double distance = now[1] != 0 ? now[0] / now[1] : 0;
    now[4] = beta_ * memory[4] + (1 - beta_) * distance;
    for (int i = 0; i < 5; i++) memory[i] = static_cast<float>(now[i]);
  }

  void tune(double mean_square, int64_t step, const float* memory, float* lr, float* mu) const {
    const double scale = weight(step), low = memory[2] / scale, high = memory[3] / scale;
    const double least = std::exp(low), distance = memory[4] / scale;
    const double variance = std::max({memory[1] / scale - mean_square, epsilon_, kLeast});
    const double x = root(distance * distance * least * least / 2 / variance);
    const double ratio = std::exp((high - low) / 2), range = (ratio - 1) / (ratio + 1);
    const double best = std::max(x * x, range * range);
    const double left = 1 - std::sqrt(best);
    *mu = static_cast<float>(beta_ * *mu + (1 - beta_) * best);
    *lr = static_cast<float>(beta_ * *lr + (1 - beta_) * left * left / least);
  }

  const double beta_, epsilon_;
  const int64_t width_;
  const bool nesterov_, zero_debias_;
};

}  // namespace

REGISTER_CPU_OPERATOR(YellowFin, YellowFinOperator)

}  // namespace caffe2
