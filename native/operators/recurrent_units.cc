// One step of recurrent cells: LSTMUnit, GRUUnit and their gradients.
#include <cstdint>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// The states are (1, rows, n), the gates (1, rows, gates * n).
class UnitOperator : public Operator {
 public:
  // Of the inputs, `lengths` is the first after the gates; it is left out without sequence_lengths.
  UnitOperator(const OperatorContext& context, int lengths, int gates, int least)
      : Operator(context),
        lengths_(lengths),
        gates_(gates),
        has_lengths_(args().boolean("sequence_lengths")),
        drop_(args().boolean("drop_states")) {
    const int wanted = least + has_lengths_;
    const auto given = static_cast<int>(context.def.input.size());
    CAFFE2_ENFORCE(given == wanted, "it has ", given,
                   " inputs; with sequence_lengths = ", has_lengths_ ? "1" : "0", " they are ",
                   wanted);
  }

 protected:
  int timestep_input() const { return lengths_ + has_lengths_; }
  int gates_input() const { return lengths_ - 1; }

  kernels::UnitStep step() const {
    const Tensor& state = input(gates_input() - 1);
    CAFFE2_ENFORCE(state.rank() == 3 && state.dim(0) == 1, describe_input(gates_input() - 1),
                   " has shape ", state.shape().text(), "; (1, sequences, units) is needed");
    const int64_t rows = state.dim(1), n = state.dim(2);
    const Tensor& gates = input(gates_input());
    CAFFE2_ENFORCE(gates.shape() == Shape({1, rows, gates_ * n}), describe_input(gates_input()),
                   " has shape ", gates.shape().text(), "; with states of shape ",
                   state.shape().text(), " it must be ", Shape({1, rows, gates_ * n}).text());
    const Tensor& time = input(timestep_input());
    CAFFE2_ENFORCE(time.size() == 1, describe_input(timestep_input()), " has shape ",
                   time.shape().text(), "; one value is needed");
    const int32_t* lengths = nullptr;
    if (has_lengths_) {
      const Tensor& tensor = input(lengths_);
      CAFFE2_ENFORCE(tensor.shape() == Shape({rows}), describe_input(lengths_), " has shape ",
                     tensor.shape().text(), "; it needs one length for each of the ", rows,
                     " sequences");
      lengths = tensor.data<int32_t>();
    }
    return {rows, n, lengths, time.data<int32_t>()[0], drop_};
  }

  // Input i, which must look like the state.
  const float* state_input(int i) const {
    const int state = gates_input() - 1;
    require_same_shape(describe_input(i), input(i), describe_input(state), input(state));
    return input(i).data<float>();
  }
  float* like_input(int i, int source) {
    return output(i, input(source).shape(), DataType::kFloat).mutable_data<float>();
  }

 private:
  const int lengths_, gates_;
  const bool has_lengths_, drop_;
};

class LstmUnitOperator : public UnitOperator {
 public:
  explicit LstmUnitOperator(const OperatorContext& context)
      : UnitOperator(context, 3, 4, 4), forget_bias_(args().real("forget_bias")) {}

 protected:
  void run() override {
    const kernels::UnitStep s = step();
    const float* h_prev = state_input(0);
    float *h = like_input(0, 1), *c = like_input(1, 1);
    kernels().lstm_unit(s, forget_bias_, h_prev, input(1).data<float>(), input(2).data<float>(), h,
                        c, parallel());
  }

 private:
  const float forget_bias_;
};

class LstmUnitGradientOperator : public UnitOperator {
 public:
  explicit LstmUnitGradientOperator(const OperatorContext& context)
      : UnitOperator(context, 3, 4, 8), forget_bias_(args().real("forget_bias")) {}

 protected:
  void run() override {
    const kernels::UnitStep s = step();
    const int rest = timestep_input() + 1;
    state_input(0);
    state_input(rest);
    const float *c = state_input(rest + 1), *dh = state_input(rest + 2),
                *dc = state_input(rest + 3);
    float *dh_prev = like_input(0, 1), *dc_prev = like_input(1, 1), *dgates = like_input(2, 2);
    kernels().lstm_unit_gradient(s, forget_bias_, input(1).data<float>(), input(2).data<float>(), c,
                                 dh, dc, dh_prev, dc_prev, dgates, parallel());
  }

 private:
  const float forget_bias_;
};

class GruUnitOperator : public UnitOperator {
 public:
  explicit GruUnitOperator(const OperatorContext& context) : UnitOperator(context, 2, 3, 3) {}

 protected:
  void run() override {
    const kernels::UnitStep s = step();
    float* h = like_input(0, 0);
    kernels().gru_unit(s, input(0).data<float>(), input(1).data<float>(), h, parallel());
  }
};

class GruUnitGradientOperator : public UnitOperator {
 public:
  explicit GruUnitGradientOperator(const OperatorContext& context)
      : UnitOperator(context, 2, 3, 5) {}

 protected:
  void run() override {
    const kernels::UnitStep s = step();
    const int rest = timestep_input() + 1;
    state_input(rest);
    const float* dh = state_input(rest + 1);
    float *dh_prev = like_input(0, 0), *dgates = like_input(1, 1);
    kernels().gru_unit_gradient(s, input(0).data<float>(), input(1).data<float>(), dh, dh_prev,
                                dgates, parallel());
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(LSTMUnit, LstmUnitOperator)
REGISTER_CPU_OPERATOR(LSTMUnitGradient, LstmUnitGradientOperator)
REGISTER_CPU_OPERATOR(GRUUnit, GruUnitOperator)
REGISTER_CPU_OPERATOR(GRUUnitGradient, GruUnitGradientOperator)

}  // namespace caffe2
