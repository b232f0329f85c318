// A net with its parameters, ready to answer, by the rules of caffe2/runtime/predictor.py.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/exchange.h"
#include "core/workspace.h"

namespace caffe2 {

class Predictor {
 public:
  struct Input {
    std::string name;
    bool needed;  // init_net does not fill it: it has to be fed for each run
    bool fed = false;
  };

  // init_net fills the parameters, run once here; predict_net computes external_output from
  // external_input. Both are serialized NetDefs. Raises Error when they are none or do not fit
  // together, before any of them runs, or when init_net fails.
  Predictor(std::shared_ptr<Engine> engine, std::string_view init_net,
            std::string_view predict_net);
  // Both in one file, a ModelDef, whose weights are used where they lie.
  Predictor(std::shared_ptr<Engine> engine, const std::string& path);

  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<std::string>& outputs() const { return outputs_; }

  void feed(std::string_view input, const ForeignTensor& values);
  void run();
  Tensor output(std::string_view name) const;  // of the last run, which succeeded

 private:
  // fill runs init_net.
  void open(const NetDef& init, NetDef predict, const std::function<void()>& fill);
  void check_blobs(const NetDef& init, const NetDef& predict,
                   const std::vector<std::string>& filled) const;
  std::string needed_text() const;

  Workspace workspace_;
  std::vector<Input> inputs_;
  std::vector<std::string> outputs_;
  std::string net_;
  bool answered_ = false;
};

}  // namespace caffe2
