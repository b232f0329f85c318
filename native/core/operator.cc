#include "core/operator.h"

#include <algorithm>
#include <utility>

namespace caffe2 {

Operator::Operator(const OperatorContext& context)
    : def_(context.def),
      schema_(context.schema),
      args_(context.def, context.schema),
      engine_(context.engine),
      position_(context.position),
      seed_(context.seed) {}

void Operator::bind(std::vector<std::shared_ptr<Blob>> inputs,
                    std::vector<std::shared_ptr<Blob>> outputs) {
  inputs_ = std::move(inputs);
  outputs_ = std::move(outputs);
  values_.resize(inputs_.size());
  staged_.resize(outputs_.size());
}

void Operator::execute(RunContext& context) {
  context_ = &context;
  try {
    for (int i = 0; i < inputs(); i++) {
      values_[i] = inputs_[i]->get_stored();
      check_input(i);
      if (!takes_stored()) make_plain(i);
    }
    run();
    for (Staged& staged : staged_) {
      if (staged.shared) staged.value.tensor = staged.value.tensor.to_plain();
    }
  } catch (...) {
    for (int i = 0; i < outputs(); i++) drop(i);
    finish_run();
    throw;
  }
  for (int i = 0; i < outputs(); i++) {
    Staged& staged = staged_[i];
    if (!staged.used) continue;
    if (staged.shared && !staged.claimed) {
      output_blob(i).feed(std::move(staged.value.tensor));
    } else {
      output_blob(i).set(std::move(staged.value));
    }
    staged = {};
  }
  finish_run();
}

bool Operator::execute_fused(RunContext& context, const Epilogue& epilogue) {
  epilogue_ = &epilogue;
  if (epilogue.residual) residual_ = epilogue.residual->get_stored();
  struct Done {
    Operator& op;
    ~Done() {
      op.epilogue_ = nullptr;
      op.residual_ = {};
    }
  } done{*this};
  try {
    if (!epilogue.residual || residual_.is_tensor()) {
      execute(context);
      return true;
    }
  } catch (const Declined&) {
  }
  return false;
}

void Operator::make_plain(int i) {
  Tensor& tensor = values_[i].tensor;
  const Layout layout = tensor.layout();
  if (layout.plain()) return;
  if (layout.channels_last || layout.block != kernels().vector_width) {
    Tensor plain = tensor.to_plain();
    inputs_[i]->reorder(tensor.storage().get(), plain);
    tensor = std::move(plain);
    return;
  }
  const Tensor::Planes p = Tensor::planes(tensor.shape(), layout);
  Tensor plain(engine_.allocator(), tensor.shape(), tensor.type());
  kernels().from_blocked(p.n, p.c, p.places, tensor.stored(), plain.mutable_data<float>(),
                         parallel());
  inputs_[i]->reorder(tensor.storage().get(), plain);
  tensor = std::move(plain);
}

const Tensor& Operator::plain_input(int i) {
  make_plain(i);
  return input(i);
}

Layout Operator::common_layout() {
  const Layout layout = values_[0].tensor.layout();
  const bool same = std::all_of(values_.begin(), values_.end(), [&](const BlobValue& value) {
    return value.tensor.layout() == layout;
  });
  if (same) return layout;
  for (int i = 0; i < inputs(); i++) make_plain(i);
  return {};
}

void Operator::finish_run() {
  for (BlobValue& value : values_) value = {};
  for (auto& buffer : scratch_) engine_.scratch().give(std::move(buffer));
  scratch_.clear();
  context_ = nullptr;
}

void Operator::check_input(int i) const {
  const BlobValue& value = values_[i];
  if (value.empty()) {
    // What a nested net needs, and what it writes first, it knows itself.
    if (schema_.kind == Kind::kControl || takes_empty(i)) return;
    fail(Code::kFailedPrecondition, describe_input(i), " is empty: nothing was fed or computed");
  }
  const uint32_t mask = schema_.type_mask(i);
  if (mask == 0) return;
  if (!value.is_tensor()) {
    fail(Code::kInvalidArgument, describe_input(i), " holds ", value.kind(), ", not a tensor");
  }
  const int type = static_cast<int>(value.tensor.type());
  if ((mask >> type & 1) != 0) return;
  std::string allowed;
  for (int t = 0; t < 32; t++) {
    if ((mask >> t & 1) == 0) continue;
    allowed += (allowed.empty() ? "" : ", ") + std::string(type_name(static_cast<DataType>(t)));
  }
  const bool convert = value.tensor.type() == DataType::kDouble &&
                       (mask >> static_cast<int>(DataType::kFloat) & 1) != 0;
  fail(Code::kInvalidArgument, describe_input(i), " has type ", type_name(value.tensor.type()),
       "; allowed: ", allowed,
       convert ? ". A NumPy array of float64 becomes one of float by .astype(np.float32)" : "");
}

const Tensor& Operator::input(int i) const {
  const BlobValue& value = values_[i];
  if (!value.is_tensor()) {
    fail(Code::kInvalidArgument, describe_input(i), " holds ", value.kind(), ", not a tensor");
  }
  return value.tensor;
}

Tensor& Operator::output(int i, const Shape& shape, DataType type, Layout layout) {
  drop(i);
  Staged& staged = staged_[i];
  const size_t bytes = Tensor::bytes_for(shape, type, layout);
  bool shared = false;
  auto storage = output_blob(i).claim([&](const std::shared_ptr<Storage>& now) {
    shared = now->shared();
    return now->fits(bytes, type) && is_ours(now) &&
           (layout.plain() || (now->views() == 0 && !now->shared()));
  });
  if (storage) {
    staged.claimed = true;
    staged.value.tensor = Tensor(std::move(storage), shape, type, layout);
  } else {
    staged.value.tensor = Tensor(engine_.allocator(), shape, type, layout);
  }
  staged.used = true;
  staged.shared = shared;
  return staged.value.tensor;
}

// Whether nobody else holds what a blob holds: our own inputs do, and views, which are meant to see
// writes. Another thread that holds it may have checked its content and rely on it.
bool Operator::is_ours(const std::shared_ptr<Storage>& storage) const {
  int known = 1;
  known += residual_.tensor.storage() == storage;  // read where it is written, value by value
  for (int i = 0; i < inputs(); i++) {
    // The verifier has not seen that a fused output may be an input.
    if (epilogue_ != nullptr && !schema_.allows_inplace(i, 0)) continue;
    known += values_[i].tensor.storage() == storage;
  }
  return storage.use_count() <= known + storage->views();
}

void Operator::drop(int i) {
  Staged& staged = staged_[i];
  if (!staged.used) return;
  if (staged.claimed) output_blob(i).release(staged.value.tensor.storage().get());
  staged = {};
}

void Operator::output_object(int i, std::shared_ptr<Object> object) {
  output_value(i, BlobValue{Tensor(), std::move(object)});
}

void Operator::output_value(int i, BlobValue value) {
  drop(i);
  staged_[i].value = std::move(value);
  staged_[i].used = true;
}

void* Operator::scratch(int64_t bytes) {
  scratch_.push_back(engine_.scratch().take(checked_size(bytes)));
  return scratch_.back()->data();
}

std::string Operator::describe() const {
  return concat("Operator ", position_, " (", schema_.name, ")");
}

std::ostream& operator<<(std::ostream& out, const Operand& operand) {
  const auto& [op, i, is_output] = operand;
  if (is_output) return out << "output " << i << " '" << op.def_.output[i] << "'";
  return out << "input " << i << " (" << op.schema_.input_name(i) << ") '" << op.def_.input[i]
             << "'";
}

}  // namespace caffe2
