// A net with its inputs and outputs looked up: arrays in, arrays out, in one call. Arrays that the
// net only reads are not copied, and forgotten at its end.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bindings/arrays.h"
#include "core/workspace.h"

namespace caffe2::bindings {

class PreparedRun {
 public:
  // The blobs of a created net; the inputs are made where they are missing. `workspace` has to
  // outlive it, and the blobs must not be removed.
  PreparedRun(Workspace& workspace, const std::string& net, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs);

  // The outputs; None, with nothing done, when `arrays` are not contiguous arrays of numbers, one
  // for each input.
  nb::object run(const nb::typed<nb::list, nb::object>& arrays);

 private:
  Workspace& workspace_;
  std::shared_ptr<CompiledNet> net_;
  std::vector<std::shared_ptr<Blob>> inputs_, outputs_;
  std::vector<bool> lent_;  // inputs that need no copy: empty but during a run
};

}  // namespace caffe2::bindings
