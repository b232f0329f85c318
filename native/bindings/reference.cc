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
  ReferenceOperator(const OperatorContext& context, HeldObject body)
      : Operator(context), body_(std::move(body)) {}

 protected:
  void run() override {
    in_python([&] { call(); });
  }

 private:
  void call() {
    nb::list arrays;
    for (int i = 0; i < inputs(); i++) arrays.append(to_array(input(i)));
    const RandomStream stream = next_random_stream();
    const nb::object result = (*body_)(arrays, nb::make_tuple(stream.seed, stream.op, stream.run));
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

  const HeldObject body_;
};

}  // namespace

ReferenceFactory reference_factory(nb::object callable) {
  return [held = hold(std::move(callable))](const OperatorContext& context) {
    const std::string def = serialize(context.def);
    HeldObject body;
    in_python([&] { body = hold((*held)(nb::bytes(def.data(), def.size()))); });
    return std::make_unique<ReferenceOperator>(context, std::move(body));
  };
}

}  // namespace caffe2::bindings
