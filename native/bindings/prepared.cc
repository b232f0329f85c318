#include "bindings/prepared.h"

#include <utility>

#include "bindings/host.h"

namespace caffe2::bindings {

PreparedRun::PreparedRun(Workspace& workspace, const std::string& net,
                         const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs)
    : workspace_(workspace), net_(workspace.get_net(net)) {
  for (const std::string& name : inputs) {
    inputs_.push_back(workspace.create_blob(name));
    // What a filled input is given stays there, whatever becomes of the array.
    lent_.push_back(inputs_.back()->get().empty() && net_->only_reads(name));
  }
  for (const std::string& name : outputs) outputs_.push_back(workspace.get_blob(name));
}

nb::object PreparedRun::run(const nb::typed<nb::list, nb::object>& arrays) {
  if (arrays.size() != inputs_.size()) return nb::none();
  std::vector<InputArray> given;
  given.reserve(inputs_.size());
  for (nb::handle item : arrays) {
    InputArray array;
    const bool text = nb::isinstance<nb::bytes>(item);  // not an array of its bytes
    if (text || !nb::try_cast(item, array, false) || !is_data_type(array.dtype())) {
      return nb::none();
    }
    given.push_back(std::move(array));
  }
  std::vector<Tensor> tensors;
  tensors.reserve(given.size());
  for (size_t i = 0; i < given.size(); i++) {
    const auto make = lent_[i] ? lend_tensor : to_tensor;
    tensors.push_back(make(given[i], workspace_.engine()));
  }
  struct GiveBack {
    const PreparedRun& run;
    ~GiveBack() {
      for (size_t i = 0; i < run.inputs_.size(); i++) {
        if (run.lent_[i]) run.inputs_[i]->clear();
      }
    }
  } give_back{*this};
  for (size_t i = 0; i < tensors.size(); i++) inputs_[i]->set(std::move(tensors[i]));
  Calls::instance().run([&] { net_->run(); });
  nb::list results;
  for (const auto& output : outputs_) {
    const BlobValue value = output->get();
    if (!value.is_tensor()) {
      fail(Code::kFailedPrecondition, "an output holds ", value.kind(), ", not a tensor");
    }
    results.append(to_array(value.tensor));
  }
  return results;
}

}  // namespace caffe2::bindings
