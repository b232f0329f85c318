#include "core/operator.h"

#include <utility>

namespace caffe2 {

Operator::Operator(const OperatorContext& context)
    : def_(context.def),
      schema_(context.schema),
      args_(context.def, context.schema),
      engine_(context.engine),
      position_(context.position),
      seed_(context.seed) {}

void Operator::bind(std::vector<Blob*> inputs, std::vector<Blob*> outputs) {
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
  staged_.resize(outputs_.size());
}

void Operator::execute() {
  for (int i = 0; i < inputs(); i++) check_input(i);
  try {
    run();
  } catch (...) {
    for (Staged& staged : staged_) staged = {};
    release_scratch();
    throw;
  }
  release_scratch();
  for (int i = 0; i < outputs(); i++) {
    Staged& staged = staged_[i];
    if (!staged.used) continue;
    if (staged.object) {
      outputs_[i]->set(std::move(staged.object));
    } else {
      outputs_[i]->set(std::move(staged.tensor));
    }
    staged.used = false;
  }
}

void Operator::check_input(int i) const {
  const Blob& blob = *inputs_[i];
  if (blob.empty()) {
    fail(Code::kFailedPrecondition, describe_input(i), " is empty: nothing was fed or computed");
  }
  const uint32_t mask = schema_.type_mask(i);
  if (mask == 0) return;
  const Tensor* tensor = blob.tensor();
  if (tensor == nullptr) {
    fail(Code::kInvalidArgument, describe_input(i), " holds ", blob.kind(), ", not a tensor");
  }
  const int type = static_cast<int>(tensor->type());
  if ((mask >> type & 1) != 0) return;
  std::string allowed;
  for (int t = 0; t < 32; t++) {
    if ((mask >> t & 1) == 0) continue;
    allowed += (allowed.empty() ? "" : ", ") + std::string(type_name(static_cast<DataType>(t)));
  }
  fail(Code::kInvalidArgument, describe_input(i), " has type ", type_name(tensor->type()),
       "; allowed: ", allowed);
}

const Tensor& Operator::input(int i) const {
  const Tensor* tensor = inputs_[i]->tensor();
  if (tensor == nullptr) {
    fail(Code::kInvalidArgument, describe_input(i), " holds ", inputs_[i]->kind(),
         ", not a tensor");
  }
  return *tensor;
}

Tensor& Operator::output(int i, const Shape& shape, DataType type) {
  Staged& staged = staged_[i];
  const Tensor* now = outputs_[i]->tensor();
  if (now != nullptr && now->storage()->fits(Tensor::bytes_for(shape, type), type)) {
    staged.tensor = Tensor(now->storage(), shape, type);
  } else {
    staged.tensor = Tensor(engine_.allocator(), shape, type);
  }
  staged.object = nullptr;
  staged.used = true;
  return staged.tensor;
}

void Operator::output_object(int i, std::shared_ptr<Object> object) {
  staged_[i].object = std::move(object);
  staged_[i].used = true;
}

void* Operator::scratch(size_t bytes) {
  scratch_.push_back(engine_.scratch().take(bytes));
  return scratch_.back()->data();
}

void Operator::release_scratch() {
  for (auto& buffer : scratch_) engine_.scratch().give(std::move(buffer));
  scratch_.clear();
}

std::string Operator::describe_input(int i) const {
  return concat("input ", i, " (", schema_.input_name(i), ") '", def_.input[i], "'");
}

std::string Operator::describe_output(int i) const {
  return concat("output ", i, " '", def_.output[i], "'");
}

}  // namespace caffe2
