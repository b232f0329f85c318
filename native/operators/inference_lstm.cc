// InferenceLSTM: layers of LSTM units over whole sequences, forward alone.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "core/operator.h"
#include "core/registry.h"

namespace caffe2 {
namespace {

class InferenceLSTMOperator : public Operator {
 public:
  explicit InferenceLSTMOperator(const OperatorContext& context)
      : Operator(context),
        layers_(args().integer("num_layers")),
        directions_(args().boolean("bidirectional") ? 2 : 1),
        biases_(args().boolean("has_biases")),
        batch_first_(args().boolean("batch_first")) {
    const auto inputs = static_cast<int64_t>(context.def.input.size());
    const int64_t each = per_direction();
    CAFFE2_ENFORCE(layers_ <= (inputs - 3) / each && 3 + layers_ * directions_ * each == inputs,
                   "it has ", inputs, " inputs; ", layers_, " layers of ", directions_,
                   " direction(s) have 3 and ", each, " each");
  }

 protected:
  void run() override {
    const Sizes s = sizes();
    check_states(s);
    const int64_t hidden = s.units, gates = 4 * hidden, width = directions_ * hidden;
    const int64_t rows = s.steps * s.batch;
    check_weights(s);
    const int64_t widest = std::max(s.features, width);
    float* sequence = floats(rows * widest);  // what a layer reads
    float* result = floats(rows * width);
    float* inner = floats(rows * gates);
    float* weights = floats(gates * (widest + hidden + 2));
    float* states[4];  // h and c, before and after a step
    for (float*& state : states) state = floats(s.batch * hidden);
    int64_t bytes = 0;
    for (const kernels::Gemm& g : {product(rows, hidden, s.features), product(rows, hidden, width),
                                   product(s.batch, hidden, hidden)}) {
      bytes = std::max(bytes, kernels().gemm_scratch_bytes(g, parallel().threads));
    }
    void* buffer = scratch(bytes);
    Tensor& y = output(0, with_features(width), DataType::kFloat);
    float* last_h = output(1, input(1).shape(), DataType::kFloat).mutable_data<float>();
    float* last_c = output(2, input(2).shape(), DataType::kFloat).mutable_data<float>();

    reorder(s, s.features, input(0).data<float>(), sequence, true);
    int64_t taken = s.features;
    for (int64_t layer = 0; layer < layers_; layer++) {
      for (int64_t direction = 0; direction < directions_; direction++) {
        const int64_t k = layer * directions_ + direction, state = k * s.batch * hidden;
        std::copy_n(input(1).data<float>() + state, s.batch * hidden, states[0]);
        std::copy_n(input(2).data<float>() + state, s.batch * hidden, states[1]);
        const Weights w = arrange(k, taken, hidden, weights);
        kernels::Gemm g = product(rows, hidden, taken);
        g.bias = w.bias_x;
        kernels().gemm(g, sequence, w.x, inner, buffer, parallel());
        g = product(s.batch, hidden, hidden);
        g.beta = 1;
        g.bias = w.bias_h;
        for (int64_t i = 0; i < s.steps; i++) {
          const int64_t t = direction == 0 ? i : s.steps - 1 - i;
          float* at = inner + t * s.batch * gates;
          kernels().gemm(g, states[0], w.h, at, buffer, parallel());
          kernels().lstm_unit({s.batch, hidden, nullptr, 0, false}, 0, states[0], states[1], at,
                              states[2], states[3], parallel());
          std::swap(states[0], states[2]);
          std::swap(states[1], states[3]);
          for (int64_t n = 0; n < s.batch; n++) {
            std::copy_n(states[0] + n * hidden, hidden,
                        result + (t * s.batch + n) * width + direction * hidden);
          }
        }
        std::copy_n(states[0], s.batch * hidden, last_h + state);
        std::copy_n(states[1], s.batch * hidden, last_c + state);
      }
      taken = width;
      if (layer + 1 < layers_) std::copy_n(result, rows * width, sequence);
    }
    reorder(s, width, result, y.mutable_data<float>(), false);
  }

 private:
  struct Sizes {
    int64_t steps, batch, features, units;
  };
  struct Weights {
    const float *x, *h, *bias_x, *bias_h;
  };

  // Of m rows and the weights of all gates, which have k columns.
  static kernels::Gemm product(int64_t m, int64_t units, int64_t k) {
    kernels::Gemm g;
    g.trans_b = true;
    g.m = m, g.n = 4 * units, g.k = k;
    g.lda = g.ldb = k, g.ldc = g.n;
    return g;
  }

  int64_t per_direction() const { return biases_ ? 4 : 2; }
  float* floats(int64_t n) { return scratch<float>(n); }
  Shape with_features(int64_t features) const {
    return {input(0).dim(0), input(0).dim(1), features};
  }

  Sizes sizes() const {
    const Tensor &x = input(0), &h = input(1);
    CAFFE2_ENFORCE(x.rank() == 3, describe_input(0), " has shape ", x.shape().text(),
                   "; three dimensions are needed");
    CAFFE2_ENFORCE(h.rank() == 3, describe_input(1), " has shape ", h.shape().text(),
                   "; three dimensions are needed");
    return {x.dim(batch_first_ ? 1 : 0), x.dim(batch_first_ ? 0 : 1), x.dim(2), h.dim(2)};
  }

  void check_states(const Sizes& s) const {
    for (const int i : {1, 2}) require(i, {layers_ * directions_, s.batch, s.units});
  }
  void check_weights(const Sizes& s) const {
    for (int64_t k = 0; k < layers_ * directions_; k++) {
      const int first = first_of(k);
      const int64_t taken = k < directions_ ? s.features : directions_ * s.units;
      require(first, {4 * s.units, taken});
      require(first + 1, {4 * s.units, s.units});
      for (int i = 2; i < per_direction(); i++) require(first + i, {4 * s.units});
    }
  }
  void require(int i, const Shape& shape) const {
    CAFFE2_ENFORCE(input(i).shape() == shape, describe_input(i), " has shape ",
                   input(i).shape().text(), "; ", shape.text(), " is needed");
  }
  int first_of(int64_t k) const { return static_cast<int>(3 + k * per_direction()); }

  // Gates come as input, forget, candidate, output; the kernel takes the last two the other way
  // round.
  Weights arrange(int64_t k, int64_t taken, int64_t units, float* memory) const {
    const float* arranged[4] = {};
    for (int i = 0; i < per_direction(); i++) {
      const int64_t block = units * (i == 0 ? taken : i == 1 ? units : 1);
      const float* from = input(first_of(k) + i).data<float>();
      std::copy_n(from, 2 * block, memory);
      std::copy_n(from + 3 * block, block, memory + 2 * block);
      std::copy_n(from + 2 * block, block, memory + 3 * block);
      arranged[i] = memory;
      memory += 4 * block;
    }
    return {arranged[0], arranged[1], arranged[2], arranged[3]};
  }

  // The sequences of the caller as [steps][batch][n], or (to_steps: false) back.
  void reorder(const Sizes& s, int64_t n, const float* from, float* to, bool to_steps) const {
    if (!batch_first_) {
      std::copy_n(from, s.steps * s.batch * n, to);
      return;
    }
    for (int64_t t = 0; t < s.steps; t++) {
      for (int64_t b = 0; b < s.batch; b++) {
        const int64_t by_step = (t * s.batch + b) * n, by_batch = (b * s.steps + t) * n;
        std::copy_n(from + (to_steps ? by_batch : by_step), n,
                    to + (to_steps ? by_step : by_batch));
      }
    }
  }

  const int64_t layers_, directions_;
  const bool biases_, batch_first_;
};

}  // namespace

REGISTER_CPU_OPERATOR(InferenceLSTM, InferenceLSTMOperator)

}  // namespace caffe2
