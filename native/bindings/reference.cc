#include "bindings/reference.h"

#include <nanobind/stl/string.h>

#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/host.h"
#include "core/wire.h"

namespace caffe2::bindings {

namespace {

class ReferenceOperator : public Operator {
 public:
  ReferenceOperator(const OperatorContext& context, HeldObject callable)
      : Operator(context), callable_(std::move(callable)), def_bytes_(serialize(context.def)) {}

 protected:
  void run() override {
    call_python([&] { call(); });
  }

 private:
  void call() {
    nb::list arrays;
    for (int i = 0; i < inputs(); i++) arrays.append(to_array(input(i)));
    const RandomStream stream = next_random_stream();
    const nb::object result = (*callable_)(nb::bytes(def_bytes_.data(), def_bytes_.size()), arrays,
                                           nb::make_tuple(stream.seed, stream.op, stream.run));
    std::vector<Tensor> found;
    for (nb::handle item : result) {
      const bool strings = nb::cast<std::string>(item.attr("dtype").attr("kind")) == "O";
      found.push_back(strings ? to_string_tensor(nb::borrow(item), engine())
                              : to_tensor(nb::cast<InputArray>(item), engine()));
    }
    CAFFE2_ENFORCE(static_cast<int>(found.size()) == outputs(), "its reference body gave ",
                   found.size(), " outputs; declared are ", outputs());
    std::vector<Tensor*> tensors;
    for (int i = 0; i < outputs(); i++) {
      tensors.push_back(&output(i, found[i].shape(), found[i].type()));
    }
    for (int i = 0; i < outputs(); i++) tensors[i]->copy_from(found[i]);
  }

  const HeldObject callable_;
  const std::string def_bytes_;
};

}  // namespace

ReferenceFactory reference_factory(nb::object callable) {
  return [held = hold(std::move(callable))](const OperatorContext& context) {
    return std::make_unique<ReferenceOperator>(context, held);
  };
}

}  // namespace caffe2::bindings
