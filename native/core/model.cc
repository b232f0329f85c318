#include "core/model.h"

#include <optional>
#include <string>
#include <utility>

namespace caffe2 {

NetDef without_values(NetDef net) {
  for (OperatorDef& op : net.op) {
    for (Argument& arg : op.arg) {
      if (arg.name != "values") continue;
      const std::optional<std::string> name = std::move(arg.name);
      arg = Argument();
      arg.name = name;
    }
  }
  return net;
}

ModelFile::ModelFile(const std::string& path) : file_(std::make_shared<MappedFile>(path)) {
  ParseOptions options;
  options.borrow = true;
  options.lender = file_;
  try {
    model_ = parse<ModelDef>(file_->bytes(), options);
  } catch (const Error& error) {
    fail(error.code(), "file '", path, "' holds no serialized ModelDef: ", error.text());
  }
  drop();
  CAFFE2_ENFORCE(model_.net.size() == 2 && !init().op.empty() && !predict().op.empty(), "file '",
                 path, "' holds no model: a ModelDef with two nets is needed, one that fills the ",
                 "parameters and one that predicts");
}

void ModelFile::run_init(Workspace& workspace) {
  CAFFE2_ENFORCE(!std::exchange(ran_, true), "a model file fills its parameters once");
  workspace.run_net_once(init(), {});
  drop();
}

}  // namespace caffe2
