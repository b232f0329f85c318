#include "api/predictor.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/model.h"
#include "core/near_names.h"

namespace caffe2 {

namespace {

NetDef parse_net(std::string_view bytes, const char* what, const ParseOptions& options = {}) {
  NetDef net;
  try {
    net = parse<NetDef>(bytes, options);
  } catch (const Error& error) {
    fail(error.code(), what, " is no serialized NetDef: ", error.text());
  }
  CAFFE2_ENFORCE(!net.op.empty(), what, " holds no operators: a truncated or foreign file?");
  return net;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "none" : out;
}

// What the operators of a net read, and what is wanted of it, that nobody wrote before.
std::vector<std::string> unresolved(const NetDef& net, std::set<std::string_view> known,
                                    const std::vector<std::string>& wanted) {
  std::vector<std::string> missing;
  const auto use = [&](const std::string& name) {
    if (known.insert(name).second) missing.push_back(name);
  };
  for (const OperatorDef& op : net.op) {
    for (const std::string& name : op.input) use(name);
    known.insert(op.output.begin(), op.output.end());
  }
  for (const std::string& name : wanted) use(name);
  return missing;
}

}  // namespace

Predictor::Predictor(std::shared_ptr<Engine> engine, std::string_view init_net,
                     std::string_view predict_net)
    : workspace_(std::move(engine)) {
  ParseOptions options;
  options.borrow = true;  // the net is gone before the bytes are
  const NetDef init = parse_net(init_net, "init_net", options);
  open(init, parse_net(predict_net, "predict_net"), [&] { workspace_.run_net_once(init, {}); });
}

Predictor::Predictor(std::shared_ptr<Engine> engine, const std::string& path)
    : workspace_(std::move(engine)) {
  ModelFile file(path);
  open(file.init(), parse_net(serialize(file.predict()), "the second net of the file"),
       [&] { file.run_init(workspace_); });
}

void Predictor::open(const NetDef& init, NetDef predict, const std::function<void()>& fill) {
  workspace_.allow(0);  // a net from anywhere reads and writes no files
  std::set<std::string> filled;
  for (const OperatorDef& op : init.op) filled.insert(op.output.begin(), op.output.end());

  std::set<std::string_view> seen;
  for (const std::string& name : predict.external_input) {
    if (!seen.insert(name).second) continue;
    inputs_.push_back({name, filled.count(name) == 0});
  }
  outputs_ = predict.external_output;
  check_blobs(init, predict, {filled.begin(), filled.end()});

  fill();
  for (const Input& input : inputs_) workspace_.create_blob(input.name);
  if (predict.name.value_or("").empty()) predict.name = "predict_net";
  net_ = *predict.name;
  workspace_.create_net(std::move(predict), {}, false,
                        {.hide_intermediates = true, .own_inputs = true});
}

void Predictor::check_blobs(const NetDef& init, const NetDef& predict,
                            const std::vector<std::string>& filled) const {
  const std::vector<std::string> outside = unresolved(init, {}, {});
  CAFFE2_ENFORCE(outside.empty(),
                 "init_net reads blobs that it does not fill before: ", joined(outside),
                 ". Were the two nets swapped?");
  CAFFE2_ENFORCE(!outputs_.empty(),
                 "predict_net names no external_output, so it has no answer to give");
  std::set<std::string_view> known(filled.begin(), filled.end());
  for (const Input& input : inputs_) known.insert(input.name);
  const std::vector<std::string> missing = unresolved(predict, std::move(known), outputs_);
  CAFFE2_ENFORCE(missing.empty(), "predict_net uses blobs that nothing provides: ", joined(missing),
                 "; its inputs are ", needed_text(), ", init_net fills ", joined(filled),
                 ". Were the two nets swapped?");
}

std::string Predictor::needed_text() const {
  std::vector<std::string> names;
  for (const Input& input : inputs_) {
    if (input.needed) names.push_back(input.name);
  }
  return joined(names);
}

void Predictor::feed(std::string_view name, const ForeignTensor& values) {
  const auto input = std::find_if(inputs_.begin(), inputs_.end(),
                                  [&](const Input& candidate) { return candidate.name == name; });
  if (input == inputs_.end()) {
    std::vector<std::string> names;
    for (const Input& candidate : inputs_) names.push_back(candidate.name);
    fail(Code::kNotFound, "the net has no input '", name, "'", near_names(name, names),
         " It needs: ", needed_text());
  }
  caffe2::feed(workspace_, name, values);
  input->fed = true;
}

void Predictor::run() {
  std::vector<std::string> missing;
  for (const Input& input : inputs_) {
    if (input.needed && !input.fed) missing.push_back(input.name);
  }
  if (!missing.empty()) {
    fail(Code::kFailedPrecondition, "inputs that were not fed for this run: ", joined(missing),
         "; the net needs: ", needed_text());
  }
  answered_ = false;
  for (Input& input : inputs_) input.fed = false;  // the net may overwrite them
  workspace_.get_net(net_)->run();
  answered_ = true;
}

Tensor Predictor::output(std::string_view name) const {
  if (std::find(outputs_.begin(), outputs_.end(), name) == outputs_.end()) {
    fail(Code::kNotFound, "the net has no output '", name, "'", near_names(name, outputs_),
         " It gives: ", joined(outputs_));
  }
  if (!answered_) {
    fail(Code::kFailedPrecondition, "output '", name,
         "' is not there: the net has not run, or its last run failed");
  }
  return plain_tensor(workspace_, name);
}

}  // namespace caffe2
