#include "bindings/models.h"

#include <string>
#include <string_view>

#include "bindings/host.h"
#include "core/model.h"

namespace caffe2::bindings {

namespace {

template <class Message>
nb::bytes to_bytes(const Message& message) {
  const std::string bytes = serialize(message);
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_models(nb::module_& m) {
  m.def(
      "without_values",
      [](const nb::bytes& net_def) {
        ParseOptions options;
        options.borrow = true;
        const std::string_view bytes(net_def.c_str(), net_def.size());
        return to_bytes(without_values(parse<NetDef>(bytes, options)));
      },
      nb::arg("net_def"), "A serialized NetDef without the values that its fills give.");
  nb::class_<ModelFile>(m, "ModelFile", "A ModelDef (init, predict) where it lies in a file.")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def(
          "init_outline",
          [](const ModelFile& file) { return to_bytes(without_values(file.init())); },
          "The net that fills the parameters, without their values.")
      .def(
          "predict", [](const ModelFile& file) { return to_bytes(file.predict()); },
          "The net that predicts.")
      .def(
          "run_init",
          [](ModelFile& file, Workspace& workspace) {
            Calls::instance().run([&] { file.run_init(workspace); });
          },
          nb::arg("workspace"), "Runs the first net, once: its tensors are memory of the file.");
}

}  // namespace caffe2::bindings
