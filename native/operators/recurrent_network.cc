// RecurrentNetwork: a net that runs once for each step of its input sequences, and its gradient.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "operators/nested_net.h"
#include "operators/recurrent.h"

namespace caffe2 {
namespace {

// Whether the dimensions are the same, those of size 1 left out.
bool same_but_ones(const Shape& a, const Shape& b) {
  const auto larger = [](const Shape& shape) {
    std::vector<int64_t> dims(shape.begin(), shape.end());
    std::erase(dims, 1);
    return dims;
  };
  return larger(a) == larger(b);
}

// A blob of the step net that is, in step t, rows [t + offset, t + offset + window) of a sequence.
struct Link {
  std::string internal, external;
  int64_t offset, window;
};

// An output that is the rows of a state from `offset` on, counted from the end when negative.
struct Alias {
  size_t state;
  int64_t offset;
  int64_t begin(const Tensor& states) const { return offset < 0 ? offset + states.dim(0) : offset; }
};

class RecurrentOperator : public ControlOperator {
 public:
  explicit RecurrentOperator(const OperatorContext& context)
      : ControlOperator(context),
        timestep_(args().text("timestep")),
        states_(args().texts("recurrent_states")),
        initial_(args().integers("initial_recurrent_state_ids")),
        inner_(&context.workspace, context.seed) {
    same_count("recurrent_states", states_.size(), "initial_recurrent_state_ids", initial_.size());
    const auto sources = args().texts("alias_src"), targets = args().texts("alias_dst");
    const auto offsets = args().integers("alias_offset");
    same_count("alias_src", sources.size(), "alias_dst", targets.size());
    same_count("alias_src", sources.size(), "alias_offset", offsets.size());
    for (size_t i = 0; i < sources.size(); i++) {
      const auto found = std::find(states_.begin(), states_.end(), sources[i]);
      CAFFE2_ENFORCE(found != states_.end(), "alias_src '", sources[i],
                     "' is not one of the recurrent_states");
      aliases_.push_back({static_cast<size_t>(found - states_.begin()), offsets[i]});
    }
  }

 protected:
  // What the outputs of the forward operator are, but for the step workspaces: the aliases in
  // order, and between them states under their own names, which are whole.
  void name_results(const std::vector<std::string>& blobs, size_t first) {
    size_t next = 0;
    for (size_t i = first; i + 1 < blobs.size(); i++) {
      const auto state = std::find(states_.begin(), states_.end(), blobs[i]);
      if (state != states_.end()) {
        results_.push_back({static_cast<size_t>(state - states_.begin()), 0});
      } else if (next++ < aliases_.size()) {
        results_.push_back(aliases_[next - 1]);
      }
    }
    CAFFE2_ENFORCE(next == aliases_.size() && first < blobs.size(), "it has ", next,
                   " outputs for ", aliases_.size(),
                   " aliases, beside states and the step workspaces");
  }

  static void same_count(const char* a, size_t n, const char* b, size_t m) {
    CAFFE2_ENFORCE(n == m, "argument '", a, "' has ", n, " elements and '", b, "' ", m,
                   "; they belong together");
  }

  std::vector<Link> links(const std::string& prefix) const {
    const auto internal = args().texts(prefix + "_internal");
    const auto external = args().texts(prefix + "_external");
    const auto offset = args().integers(prefix + "_offset");
    auto window = args().integers(prefix + "_window");
    same_count("link_internal", internal.size(), "link_external", external.size());
    same_count("link_internal", internal.size(), "link_offset", offset.size());
    if (window.empty()) window.resize(internal.size(), 1);
    same_count("link_internal", internal.size(), "link_window", window.size());
    std::vector<Link> out;
    for (size_t i = 0; i < internal.size(); i++) {
      out.push_back({internal[i], external[i], offset[i], window[i]});
    }
    return out;
  }

  // The net of an argument, to be run in order: its steps are short.
  std::shared_ptr<const NetDef> step_net(const char* name) const {
    const auto given = args().net(name);
    if (!given) return nullptr;
    auto net = std::make_shared<NetDef>(*given);
    net->type = "simple";
    return net;
  }

  // Makes the blobs local that the net writes, without having read them from outside.
  void keep_inside(const NetDef& net) {
    std::set<std::string> read, written;
    for (const OperatorDef& op : net.op) {
      for (const std::string& name : op.input) {
        if (written.count(name) == 0) read.insert(name);
      }
      for (const std::string& name : op.output) written.insert(name);
    }
    for (const std::string& name : written) {
      if (read.count(name) == 0) local(name);
    }
  }

  const std::shared_ptr<Blob>& local(const std::string& name) {
    std::shared_ptr<Blob>& blob = locals_[name];
    if (!blob) {
      blob = std::make_shared<Blob>();
      inner_.forward_blob(name, blob);
    }
    return blob;
  }
  const std::map<std::string, std::shared_ptr<Blob>>& locals() const { return locals_; }

  void set_timestep(int64_t t) {
    if (timestep_.empty()) return;
    Tensor time(engine().allocator(), {1}, DataType::kInt32);
    *time.mutable_data<int32_t>() = static_cast<int32_t>(t);
    local(timestep_)->set(std::move(time));
  }

  // A link's blob is a part of the sequence in step t.
  void apply(const Link& link, const Tensor& sequence, int64_t t) {
    local(link.internal)->set(rows(sequence, t + link.offset, link.window, link.external));
  }
  // What the step net wrote to a link's blob comes into the sequence, where it is not there yet.
  // Its shape may have other dimensions of size 1, as old step nets do.
  void collect(const Link& link, const Tensor& sequence, int64_t t) {
    Tensor target = rows(sequence, t + link.offset, link.window, link.external);
    const Tensor got = local(link.internal)->get().tensor;
    CAFFE2_ENFORCE(
        got.storage() && got.type() == target.type() && same_but_ones(got.shape(), target.shape()),
        "in step ", t, " the step net left in '", link.internal, "' ",
        got.storage() ? concat("type ", type_name(got.type()), " and shape ", got.shape().text())
                      : "no tensor",
        "; '", link.external, "' needs ", type_name(target.type()), " and ", target.shape().text());
    target.copy_from(got);
  }

  // The sequence of a state: its initial rows and one for each step. The former are (rows, batch,
  // n), (batch, n) or (n), the same for the whole batch.
  Shape state_shape(const Tensor& initial, const Operand& what, int64_t steps,
                    int64_t batch) const {
    const int rank = initial.rank();
    CAFFE2_ENFORCE(rank >= 1 && rank <= 3 && initial.type() == DataType::kFloat, what, " has type ",
                   type_name(initial.type()), " and shape ", initial.shape().text(),
                   "; an initial state is float and has 1 to 3 dimensions");
    CAFFE2_ENFORCE(rank == 1 || initial.dim(rank - 2) == batch, what, " has shape ",
                   initial.shape().text(), ", but the batch of the input has ", batch,
                   " sequences");
    return {steps + (rank == 3 ? initial.dim(0) : 1), batch, initial.dim(rank - 1)};
  }

  void check_ids(const char* name, const std::vector<int64_t>& ids, int64_t most) const {
    for (const int64_t id : ids) {
      CAFFE2_ENFORCE(id >= 0 && id < most, "argument '", name, "' holds ", id,
                     "; allowed are 0 to ", most - 1);
    }
  }

  Tensor zeros(const Shape& shape) {
    Tensor tensor(engine().allocator(), shape, DataType::kFloat);
    std::memset(tensor.raw_mutable_data(), 0, tensor.bytes());
    return tensor;
  }

  const std::string timestep_;
  const std::vector<std::string> states_;  // names of the sequences of states
  const std::vector<int64_t> initial_;     // the inputs that hold their first rows
  std::vector<Alias> aliases_;             // as the arguments say
  std::vector<Alias> results_;             // what each output is, see name_results
  Workspace inner_;                        // the blobs of one step

 private:
  std::map<std::string, std::shared_ptr<Blob>> locals_;
};

// Whether the net reads what the blob held before.
bool reads(const NetDef& net, const std::string& name) {
  for (const OperatorDef& op : net.op) {
    if (std::find(op.input.begin(), op.input.end(), name) != op.input.end()) return true;
    if (std::find(op.output.begin(), op.output.end(), name) != op.output.end()) return false;
  }
  return false;
}

bool writes(const NetDef& net, const std::string& name) {
  return std::any_of(net.op.begin(), net.op.end(), [&](const OperatorDef& op) {
    return std::find(op.output.begin(), op.output.end(), name) != op.output.end();
  });
}

class RecurrentNetworkOperator : public RecurrentOperator {
 public:
  explicit RecurrentNetworkOperator(const OperatorContext& context)
      : RecurrentOperator(context), def_(step_net("step_net")), links_(links("link")) {
    CAFFE2_ENFORCE(def_ != nullptr, "argument 'step_net' is empty");
    name_results(context.def.output, 0);
    check_ids("initial_recurrent_state_ids", initial_,
              static_cast<int64_t>(context.def.input.size()));
    for (const Link& link : links_) {
      local(link.internal);
      const bool is_state =
          std::find(states_.begin(), states_.end(), link.external) != states_.end();
      written_.push_back(writes(*def_, link.internal));
      CAFFE2_ENFORCE(is_state || !written_.back(), "the step net writes '", link.internal,
                     "', a part of '", link.external,
                     "', which is not one of the recurrent_states");
    }
    if (!timestep_.empty()) local(timestep_);
    keep_inside(*def_);
    net_.emplace(def_.get(), inner_, seed_);
    const auto backward = args().net("backward_step_net");
    if (!backward || backward->op.empty()) return;
    keeps_ = true;
    const auto recomputed = args().texts("recompute_blobs_on_backward");
    for (const auto& [name, blob] : locals()) {
      if (std::find(recomputed.begin(), recomputed.end(), name) == recomputed.end()) {
        kept_.push_back(name);
      }
    }
  }

 protected:
  void run() override {
    const Tensor& first = input(0);
    CAFFE2_ENFORCE(first.rank() >= 2, describe_input(0), " has shape ", first.shape().text(),
                   "; (steps, batch, ...) is needed");
    const int64_t steps = first.dim(0);
    std::map<std::string, Tensor> sequences;
    for (size_t i = 0; i < states_.size(); i++) {
      sequences[states_[i]] = begin_state(static_cast<int>(initial_[i]), steps, first.dim(1));
    }
    for (const Link& link : links_) {
      if (sequences.count(link.external) == 0) sequences[link.external] = outside(link.external);
    }
    auto kept = std::make_shared<StepWorkspaces>();
    if (keeps_) kept->names = kept_;
    for (int64_t t = 0; t < steps; t++) {
      context().cancellation.poll();
      set_timestep(t);
      for (const Link& link : links_) apply(link, sequences[link.external], t);
      net_->run(context());
      for (size_t i = 0; i < links_.size(); i++) {
        if (written_[i]) collect(links_[i], sequences[links_[i].external], t);
      }
      if (!keeps_) continue;
      auto& values = kept->steps.emplace_back();
      for (const std::string& name : kept_) values.push_back(local(name)->get());
      for (const auto& [name, blob] : locals()) blob->clear();
    }
    for (size_t i = 0; i < results_.size(); i++) {
      const std::string& name = states_[results_[i].state];
      const Tensor& states = sequences[name];
      const int64_t begin = results_[i].begin(states);
      output_value(static_cast<int>(i),
                   BlobValue{rows(states, begin, states.dim(0) - begin, name), nullptr});
    }
    output_object(outputs() - 1, std::move(kept));
    for (const Link& link : links_) local(link.internal)->clear();  // holds on to the sequence
    for (const std::string& name : states_) workspace_.create_blob(name)->set(sequences[name]);
  }

 private:
  Tensor begin_state(int i, int64_t steps, int64_t batch) {
    const Tensor& initial = input(i);
    Tensor states = zeros(state_shape(initial, describe_input(i), steps, batch));
    auto* out = states.mutable_data<float>();
    const int64_t copies = initial.rank() == 1 ? batch : 1;
    for (int64_t k = 0; k < copies && initial.size() > 0; k++) {
      std::memcpy(out + k * initial.size(), initial.data<float>(), initial.bytes());
    }
    return states;
  }

  Tensor outside(const std::string& name) const {
    const auto& names = def().input;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return input(static_cast<int>(found - names.begin()));
    const BlobValue value = workspace_.get_blob(name)->get();
    CAFFE2_ENFORCE(value.is_tensor(), "the linked blob '", name, "' holds ", value.kind(),
                   ", not a tensor");
    return value.tensor;
  }

  const std::shared_ptr<const NetDef> def_;
  const std::vector<Link> links_;
  std::vector<bool> written_;  // whether the step net writes the blob of a link
  std::optional<NestedNet> net_;
  bool keeps_ = false;             // the steps, for a gradient
  std::vector<std::string> kept_;  // the blobs whose values are kept
};

class RecurrentNetworkGradientOperator : public RecurrentOperator {
 public:
  explicit RecurrentNetworkGradientOperator(const OperatorContext& context)
      : RecurrentOperator(context),
        def_(step_net("backward_step_net")),
        links_(links("backward_link")),
        params_(args().integers("param")),
        param_grads_(args().texts("param_grads")),
        with_grads_(args().integers("outputs_with_grads")),
        forward_inputs_(static_cast<int64_t>(context.def.input.size() - with_grads_.size()) -
                        forward_outputs(context.def.input)) {
    CAFFE2_ENFORCE(def_ != nullptr, "argument 'backward_step_net' is empty");
    CAFFE2_ENFORCE(forward_inputs_ > 0, "it has ", context.def.input.size(), " inputs for ",
                   with_grads_.size(), " gradients, the inputs and the ",
                   forward_outputs(context.def.input), " outputs of the forward operator");
    name_results(context.def.input, with_grads_.size() + static_cast<size_t>(forward_inputs_));
    check_ids("param", params_, forward_inputs_);
    if (param_grads_.empty()) {  // as in old nets
      for (const int64_t id : params_) {
        param_grads_.push_back(context.def.input[with_grads_.size() + static_cast<size_t>(id)] +
                               "_grad");
      }
    }
    same_count("param", params_.size(), "param_grads", param_grads_.size());
    const size_t outputs = context.def.output.size(), wanted = 1 + params_.size() + states_.size();
    CAFFE2_ENFORCE(outputs == wanted, "it has ", outputs, " outputs; the gradients of the input, ",
                   params_.size(), " parameters and ", states_.size(), " initial states are ",
                   wanted);
    check_ids("outputs_with_grads", with_grads_, static_cast<int64_t>(results_.size()));
    check_ids("initial_recurrent_state_ids", initial_, forward_inputs_);
    for (const Link& link : links_) {
      local(link.internal);
      read_.push_back(reads(*def_, link.internal));
      written_.push_back(writes(*def_, link.internal));
    }
    if (!timestep_.empty()) local(timestep_);
    keep_inside(*def_);
    net_.emplace(def_.get(), inner_, seed_);
  }

 protected:
  void run() override {
    const auto kept = input_object<StepWorkspaces>(inputs() - 1);
    const Tensor& first = forward_input(0);
    CAFFE2_ENFORCE(first.rank() >= 2, describe_forward(0), " has shape ", first.shape().text(),
                   "; (steps, batch, ...) is needed");
    const int64_t steps = first.dim(0);
    CAFFE2_ENFORCE(static_cast<int64_t>(kept->steps.size()) == steps, describe_input(inputs() - 1),
                   " has ", kept->steps.size(), " steps for the ", steps, " of ",
                   describe_forward(0), "; the forward operator has run for something else");
    std::map<std::string, Tensor> sequences;
    for (size_t i = 0; i < states_.size(); i++) {
      const int64_t id = initial_[i];
      sequences[states_[i] + "_grad"] =
          zeros(state_shape(forward_input(id), describe_forward(id), steps, first.dim(1)));
    }
    sequences.emplace(def().output[0], zeros(first.shape()));
    for (const Link& link : links_) {
      if (sequences.count(link.external) == 0) sequences[link.external] = like_sequence(link);
    }
    check_output_gradients(sequences);
    std::vector<Tensor> sums;
    for (const int64_t id : params_) sums.push_back(zeros(forward_input(id).shape()));

    for (int64_t t = steps - 1; t >= 0; t--) {
      context().cancellation.poll();
      for (size_t i = 0; i < kept->names.size(); i++) {
        local(kept->names[i])->set(kept->steps[t][i]);
      }
      set_timestep(t);
      add_output_gradients(sequences, t, t == steps - 1);
      for (const Link& link : links_) apply(link, sequences[link.external], t);
      net_->run(context());
      for (size_t i = 0; i < links_.size(); i++) {
        if (written_[i]) collect(links_[i], sequences[links_[i].external], t);
      }
      for (size_t i = 0; i < sums.size(); i++) add_parameter_gradient(i, sums[i]);
    }
    add_output_gradients(sequences, -1, steps == 0);
    for (const auto& [name, blob] : locals()) blob->clear();
    hand_over(sequences, sums);
  }

 private:
  // Among the inputs: one for each alias, states under their own names, the step workspaces.
  int64_t forward_outputs(const std::vector<std::string>& inputs) const {
    const auto whole = std::count_if(inputs.begin(), inputs.end(), [&](const std::string& name) {
      return std::find(states_.begin(), states_.end(), name) != states_.end();
    });
    return static_cast<int64_t>(aliases_.size()) + whole + 1;
  }
  const Tensor& forward_input(int64_t i) const {
    return input(static_cast<int>(i) + static_cast<int>(with_grads_.size()));
  }
  Operand describe_forward(int64_t i) const {
    return describe_input(static_cast<int>(i) + static_cast<int>(with_grads_.size()));
  }

  // The gradient of an input other than the first, which is no output of this operator.
  Tensor like_sequence(const Link& link) {
    const auto& names = def().input;
    for (int64_t i = 0; i < forward_inputs_; i++) {
      const std::string& name = names[static_cast<size_t>(i) + with_grads_.size()];
      if (name + "_grad" == link.external) return zeros(forward_input(i).shape());
    }
    fail(Code::kInvalidArgument, "backward_link_external '", link.external,
         "' is the gradient of no state and of no input");
  }

  Tensor& gradient_of(std::map<std::string, Tensor>& sequences, const Alias& alias) const {
    return sequences[states_[alias.state] + "_grad"];
  }

  void check_output_gradients(std::map<std::string, Tensor>& sequences) const {
    for (size_t k = 0; k < with_grads_.size(); k++) {
      const Alias& alias = results_[with_grads_[k]];
      const Tensor& states = gradient_of(sequences, alias);
      const int64_t begin = alias.begin(states);
      const Tensor wanted = rows(states, begin, states.dim(0) - begin, states_[alias.state]);
      const Tensor& given = input(static_cast<int>(k));
      CAFFE2_ENFORCE(given.type() == DataType::kFloat && given.shape() == wanted.shape(),
                     describe_input(static_cast<int>(k)), " has type ", type_name(given.type()),
                     " and shape ", given.shape().text(), "; the output has float and ",
                     wanted.shape().text());
    }
  }

  // Adds the gradients of the outputs to the rows that step t is about to read: earlier ones are
  // still to be written by the step net. The last step (comes first) takes all later rows; after
  // the first step, t = -1 takes what is left.
  void add_output_gradients(std::map<std::string, Tensor>& sequences, int64_t t, bool later) {
    for (size_t k = 0; k < with_grads_.size(); k++) {
      const Alias& alias = results_[with_grads_[k]];
      Tensor& states = gradient_of(sequences, alias);
      int64_t reach = 0;
      for (size_t i = 0; i < links_.size(); i++) {
        if (read_[i] && links_[i].external == states_[alias.state] + "_grad") {
          reach = std::max(reach, links_[i].offset);
        }
      }
      const int64_t begin = std::max(alias.begin(states), t < 0 ? 0 : t + reach);
      const int64_t end = later ? states.dim(0) : std::min(t + reach + 1, states.dim(0));
      const Tensor& given = input(static_cast<int>(k));
      const int64_t row = states.shape().product(1, states.rank());
      if (begin >= end || row == 0) continue;
      float* target = states.mutable_data<float>() + begin * row;
      kernels().axpby((end - begin) * row, 1,
                      given.data<float>() + (begin - alias.begin(states)) * row, 1, target,
                      parallel());
    }
  }

  void add_parameter_gradient(size_t i, Tensor& sum) {
    const BlobValue value = local(param_grads_[i])->get();
    CAFFE2_ENFORCE(value.is_tensor() && value.tensor.type() == DataType::kFloat &&
                       value.tensor.size() == sum.size(),
                   "the step net left in '", param_grads_[i], "' ", value.kind(),
                   value.is_tensor() ? " of type " + std::string(type_name(value.tensor.type())) +
                                           " and shape " + value.tensor.shape().text()
                                     : "",
                   "; the gradient of ", describe_forward(params_[i]), " has float and ",
                   sum.shape().text());
    auto* out = sum.mutable_data<float>();
    kernels().axpby(sum.size(), 1, value.tensor.data<float>(), 1, out, parallel());
  }

  void hand_over(std::map<std::string, Tensor>& sequences, std::vector<Tensor>& sums) {
    std::vector<Tensor> results{sequences[def().output[0]]};
    for (Tensor& sum : sums) results.push_back(std::move(sum));
    for (size_t i = 0; i < states_.size(); i++) {
      const Tensor& initial = forward_input(initial_[i]);
      const Tensor& states = sequences[states_[i] + "_grad"];
      Tensor gradient(engine().allocator(), initial.shape(), DataType::kFloat);
      auto* out = gradient.mutable_data<float>();
      if (initial.rank() == 1) {
        kernels().reduce(kernels::Reduction::kSum, 1, states.dim(1), initial.size(),
                         states.data<float>(), out, parallel());
      } else if (initial.size() > 0) {
        std::memcpy(out, states.data<float>(), initial.bytes());
      }
      results.push_back(std::move(gradient));
    }
    for (size_t i = 0; i < results.size(); i++) {
      output_value(static_cast<int>(i), BlobValue{std::move(results[i]), nullptr});
    }
    // Gradients of further inputs are found by their names.
    for (const Link& link : links_) {
      const bool is_state = std::any_of(states_.begin(), states_.end(), [&](const auto& name) {
        return name + "_grad" == link.external;
      });
      if (is_state || link.external == def().output[0]) continue;
      workspace_.create_blob(link.external)->set(sequences[link.external]);
    }
  }

  const std::shared_ptr<const NetDef> def_;
  const std::vector<Link> links_;
  std::vector<bool> read_, written_;   // what the step net does with the blob of a link
  const std::vector<int64_t> params_;  // inputs of the forward operator
  std::vector<std::string> param_grads_;
  const std::vector<int64_t> with_grads_;  // outputs of the forward operator
  const int64_t forward_inputs_;
  std::optional<NestedNet> net_;
};

}  // namespace

REGISTER_CPU_OPERATOR(RecurrentNetwork, RecurrentNetworkOperator)
REGISTER_CPU_OPERATOR(RecurrentNetworkGradient, RecurrentNetworkGradientOperator)

}  // namespace caffe2
