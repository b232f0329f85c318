// The files that operators name.
#pragma once
#include <string>

#include "core/operator.h"
#include "core/workspace.h"

namespace caffe2 {

// A path in an argument: in the root folder of the workspace, whatever it looks like, unless
// `absolute_path` is set.
class FilePath {
 public:
  FilePath(const OperatorContext& context, std::string path, bool absolute)
      : workspace_(&context.workspace), path_(std::move(path)), absolute_(absolute) {}

  const std::string& given() const { return path_; }
  std::string full() const { return full(path_); }
  std::string full(const std::string& path) const {
    return absolute_ ? path : workspace_->root_folder() + "/" + path;
  }

 private:
  const Workspace* workspace_;
  std::string path_;
  bool absolute_;
};

inline FilePath path_of(const OperatorContext& context, const char* argument) {
  const Arguments args(context.def, context.schema);
  return {context, args.text(argument), args.boolean("absolute_path")};
}

}  // namespace caffe2
