#include "bindings/reference.h"

#include <cstring>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "core/wire.h"

namespace caffe2::bindings {

namespace {

class ReferenceOperator : public Operator {
 public:
  ReferenceOperator(const OperatorContext& context, nb::object callable)
      : Operator(context), callable_(std::move(callable)), def_bytes_(serialize(context.def)) {}

  ~ReferenceOperator() override {
    nb::gil_scoped_acquire gil;
    callable_.reset();
  }

 protected:
  void run() override {
    nb::gil_scoped_acquire gil;
    try {
      call();
    } catch (const nb::python_error& error) {
      // Its destructor needs the interpreter: turned into an engine error while we hold it.
      const std::string kind = nb::cast<std::string>(error.type().attr("__name__"));
      fail(Code::kInvalidArgument, kind, ": ", nb::cast<std::string>(nb::str(error.value())));
    }
  }

 private:
  void call() {
    nb::list arrays;
    for (int i = 0; i < inputs(); i++) arrays.append(to_array(input(i)));
    const RandomStream stream = next_random_stream();
    const nb::object result =
        callable_(nb::bytes(def_bytes_.data(), def_bytes_.size()), arrays,
                  nb::make_tuple(stream.seed, stream.op, stream.run));
    std::vector<InputArray> found;
    for (nb::handle item : result) found.push_back(nb::cast<InputArray>(item));
    CAFFE2_ENFORCE(static_cast<int>(found.size()) == outputs(), "its reference body gave ",
                   found.size(), " outputs; declared are ", outputs());
    std::vector<Tensor*> tensors;
    for (int i = 0; i < outputs(); i++) {
      tensors.push_back(&output(i, shape_of(found[i]), data_type(found[i].dtype())));
    }
    for (int i = 0; i < outputs(); i++) {
      const size_t bytes = tensors[i]->bytes();
      if (bytes > 0) std::memmove(tensors[i]->raw_mutable_data(), found[i].data(), bytes);
    }
  }

  nb::object callable_;
  const std::string def_bytes_;
};

}  // namespace

ReferenceFactory reference_factory(nb::object callable) {
  return [callable](const OperatorContext& context) -> std::unique_ptr<Operator> {
    nb::gil_scoped_acquire gil;
    return std::make_unique<ReferenceOperator>(context, callable);
  };
}

}  // namespace caffe2::bindings
