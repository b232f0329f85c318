// Models in files: a ModelDef of two nets, the first of which fills the parameters of the second.
#pragma once
#include <memory>
#include <string>

#include "core/mapped_file.h"
#include "core/messages.h"
#include "core/workspace.h"

namespace caffe2 {

// A net without the values that its fills give: what there is to look at before it runs.
NetDef without_values(NetDef net);

// A ModelDef where it lies in a file. Floats that are packed and begin at a multiple of 64 bytes,
// as caffe2/graph/model_file.py writes them, become tensors without a copy.
class ModelFile {
 public:
  // Raises Error, which names the file, for what cannot be read or is no model.
  explicit ModelFile(const std::string& path);

  const NetDef& init() const { return model_.net[0]; }
  const NetDef& predict() const { return model_.net[1]; }

  // Once: large tensors that the net fills are the file's own memory, which they keep alive.
  void run_init(Workspace& workspace);

 private:
  // What has been read of the file needs no memory until it is used.
  void drop() const { file_->drop(file_->bytes().data(), file_->bytes().size()); }

  std::shared_ptr<MappedFile> file_;
  ModelDef model_;
  bool ran_ = false;
};

}  // namespace caffe2
