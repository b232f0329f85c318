// Operators on single steps of a recurrent net.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "core/workspace.h"
#include "operators/recurrent.h"

namespace caffe2 {
namespace {

// Copies the blobs of each step to blobs of the workspace: prefix_name and the number of the step.
class BlobFetcherOperator : public Operator {
 public:
  explicit BlobFetcherOperator(const OperatorContext& context)
      : Operator(context), workspace_(context.workspace) {}

 protected:
  void run() override {
    const auto kept = input_object<StepWorkspaces>(0);
    const std::string prefix = args().text("prefix");
    std::vector<std::string> names;
    for (size_t t = 0; t < kept->steps.size(); t++) {
      for (size_t i = 0; i < kept->names.size(); i++) {
        const Tensor& tensor = kept->steps[t][i].tensor;
        if (!tensor.storage()) continue;
        Tensor copy(engine().allocator(), tensor.shape(), tensor.type());
        copy.copy_from(tensor);
        names.push_back(concat(prefix, "_", kept->names[i], t));
        workspace_.create_blob(names.back())->set(std::move(copy));
      }
    }
    Tensor& list = output(0, {static_cast<int64_t>(names.size())}, DataType::kString);
    std::move(names.begin(), names.end(), list.mutable_data<std::string>());
  }

 private:
  Workspace& workspace_;
};

class StepOperator : public Operator {
 public:
  explicit StepOperator(const OperatorContext& context)
      : Operator(context), offset_(args().integer("offset")) {}

 protected:
  int64_t begin() const {
    const Tensor& time = input(0);
    CAFFE2_ENFORCE(time.size() == 1, describe_input(0), " has shape ", time.shape().text(),
                   "; one value is needed");
    return time.data<int32_t>()[0] + offset_;
  }

 private:
  const int64_t offset_;
};

class ApplyLinkOperator : public StepOperator {
 public:
  explicit ApplyLinkOperator(const OperatorContext& context)
      : StepOperator(context), window_(args().integer("window")) {}

 protected:
  void run() override {
    output_value(0, BlobValue{rows(input(1), begin(), window_, def().input[1]), nullptr});
    output_value(1, input_value(1));
  }

 private:
  const int64_t window_;
};

class AccumulateGradientOperator : public StepOperator {
 public:
  using StepOperator::StepOperator;

 protected:
  void run() override {
    const Tensor &step = input(1), &sequence = input(2);
    const Tensor target = rows(sequence, begin(), 1, def().input[2]);
    CAFFE2_ENFORCE(step.size() == target.size(), describe_input(1), " has shape ",
                   step.shape().text(), "; one step of ", describe_input(2), " has ",
                   target.shape().text());
    Tensor& sum = output(0, sequence.shape(), DataType::kFloat);
    const float* added = step.data<float>();
    sum.copy_from(sequence);
    float* out = sum.mutable_data<float>() + begin() * target.size();
    kernels().axpby(target.size(), 1, added, 1, out, parallel());
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(RecurrentNetworkBlobFetcher, BlobFetcherOperator)
REGISTER_CPU_OPERATOR(rnn_internal_apply_link, ApplyLinkOperator)
REGISTER_CPU_OPERATOR(rnn_internal_accumulate_gradient_input, AccumulateGradientOperator)

}  // namespace caffe2
