// Base of all operators: reads input blobs, writes output blobs whole or not at all.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/arguments.h"
#include "core/blob.h"
#include "core/cancellation.h"
#include "core/engine.h"
#include "core/fusion.h"
#include "core/messages.h"
#include "core/schema.h"

namespace caffe2 {

class Workspace;

struct OperatorContext {
  const OperatorDef& def;  // outlives the operator
  const OperatorSchema& schema;
  Engine& engine;
  Workspace& workspace;  // for operators that run nets
  int position = 0;      // in its net
  uint64_t seed = 0;     // of random operators
};

// Names one stream of a counter-based generator: same values in any order, on any thread.
struct RandomStream {
  uint64_t seed;
  uint32_t op;   // position of the operator in its net
  uint32_t run;  // how often it has run
};

// What execute() does to output 0 on the way, in place of the operators after it.
struct Epilogue {
  std::shared_ptr<Blob> residual;  // added; may be null
  kernels::Bounds bounds;
  std::shared_ptr<Blob> output;  // written instead of output 0
};

class Operator;

// Says in errors which input or output is meant. Put into words only then: checks that pass cost
// nothing.
struct Operand {
  const Operator& op;
  int index;
  bool is_output;
};
std::ostream& operator<<(std::ostream& out, const Operand& operand);

class Operator {
 public:
  friend std::ostream& operator<<(std::ostream& out, const Operand& operand);

  explicit Operator(const OperatorContext& context);
  virtual ~Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  void bind(std::vector<std::shared_ptr<Blob>> inputs, std::vector<std::shared_ptr<Blob>> outputs);

  // Checks the inputs, runs, then hands the outputs over. On an error the outputs are as before.
  void execute(RunContext& context);
  // The same with an epilogue that fuses() covers. False, with nothing written, when these values
  // need the operators one by one.
  bool execute_fused(RunContext& context, const Epilogue& epilogue);
  virtual unsigned fuses() const { return kFusesNothing; }  // a set of Fuses

  // Whether it may wait for another operator; then it runs on no thread of the pool.
  virtual bool may_block() const { return schema_.blocks; }

  const OperatorDef& def() const { return def_; }

  // Where its random numbers go on: as if it had run so often with this seed.
  void set_random(uint64_t seed, uint32_t runs) {
    seed_ = seed;
    runs_ = runs;
  }

  // Whether it takes inputs in the order in which they are stored (Tensor::stored). Other operators
  // get them plain.
  virtual bool takes_stored() const { return false; }
  // Whether input i may hold nothing: what a first run has of a state.
  virtual bool takes_empty(int i) const {
    (void)i;
    return false;
  }
  // Whether nobody can see what input i holds through what this leaves behind: it is neither shared
  // nor kept.
  virtual bool only_reads(int i) const {
    (void)i;
    return false;
  }
  // Whether its last output was its inputs as they lie, one after the other. Where a net puts them
  // so, there is nothing left to copy.
  virtual bool joined() const { return false; }
  // Whether the layout of its output is its own choice, and not that of its input.
  virtual bool chooses_layout() const { return false; }
  void set_prefers_blocked(bool prefers) { prefers_blocked_ = prefers; }

  // Nobody else reads or writes what input i holds: it need not stay there.
  void set_sole_user(int i) { sole_user_ |= uint32_t{1} << i; }

 protected:
  // Contract: read and check everything, ask for all outputs and scratch, and only then write:
  // what may fail comes before the first write.
  virtual void run() = 0;

  // The run that this execution is part of; inside run() only.
  RunContext& context() const { return *context_; }

  int inputs() const { return static_cast<int>(inputs_.size()); }
  int outputs() const { return static_cast<int>(outputs_.size()); }
  bool has_input(int i) const { return i < inputs(); }

  // Whether output 0 is better blocked: all that read it in this net take it so.
  bool prefers_blocked() const { return prefers_blocked_; }
  // Whether what input i holds may be released once it is no longer needed.
  bool may_release(int i) const {
    const std::shared_ptr<Storage>& storage = values_[i].tensor.storage();
    constexpr long kHolders = 2;  // the blob and values_
    return (sole_user_ >> i & 1) != 0 && storage->views() == 0 && storage.use_count() <= kHolders;
  }
  // Input i in plain order, for operators that take some as stored and some not.
  const Tensor& plain_input(int i);
  // The layout that all inputs have; where they differ they are made plain.
  Layout common_layout();

  const Tensor& input(int i) const;
  // What input i held when this run began.
  const BlobValue& input_value(int i) const { return values_[i]; }
  template <class T>
  std::shared_ptr<T> input_object(int i) const {
    auto object = values_[i].as<T>();
    if (!object) {
      fail(Code::kInvalidArgument, describe_input(i), " holds ", values_[i].kind(),
           ", which this operator does not take");
    }
    return object;
  }

  // The tensor to write for output i. Its memory is that of the blob's present tensor where that
  // is large enough, so an in-place operator reads and writes the same bytes.
  Tensor& output(int i, const Shape& shape, DataType type, Layout layout = {});
  // What input i holds now, where another net may have written it since the run began.
  BlobValue present_input(int i) const { return inputs_[i]->get(); }
  // What output i holds before the run.
  BlobValue present_output(int i) const { return outputs_[i]->get(); }
  void output_object(int i, std::shared_ptr<Object> object);
  // Output i becomes this very value, without a copy; an empty one empties the blob.
  void output_value(int i, BlobValue value);

  const Arguments& args() const { return args_; }
  Engine& engine() const { return engine_; }
  const kernels::Table& kernels() const { return engine_.kernels(); }
  kernels::Parallel parallel() const { return engine_.parallel(); }

  // What is to be done to output 0, by operators that fuse: y = cut(y + residual).
  kernels::Bounds fused_bounds() const {
    return epilogue_ != nullptr ? epilogue_->bounds : kernels::Bounds();
  }
  // As stored, or nullptr.
  const Tensor* fused_residual() const {
    return residual_.is_tensor() ? &residual_.tensor : nullptr;
  }
  // Ends the run when the epilogue does not fit.
  [[noreturn]] void decline_fusion() const { throw Declined(); }

  // Memory until the end of this run, from the engine's scratch pool.
  void* scratch(int64_t bytes);
  template <class T>
  T* scratch(int64_t count) {
    return static_cast<T*>(scratch(checked_multiply(count, sizeof(T))));
  }

  RandomStream next_random_stream() { return {seed_, static_cast<uint32_t>(position_), runs_++}; }

  // The blobs themselves, for nets that see them under other names.
  const std::vector<std::shared_ptr<Blob>>& input_blobs() const { return inputs_; }
  const std::vector<std::shared_ptr<Blob>>& output_blobs() const { return outputs_; }

  std::string describe() const;                                      // "Operator 3 (FC)"
  Operand describe_input(int i) const { return {*this, i, false}; }  // "input 1 (W) 'conv1_w'"
  Operand describe_output(int i) const { return {*this, i, true}; }

 private:
  struct Staged {
    BlobValue value;
    bool used = false;
    bool claimed = false;  // the value's memory is that of the blob
    bool shared = false;   // the blob's memory is also that of other blobs
  };
  struct Declined {};

  Blob& output_blob(int i) const {
    return i == 0 && epilogue_ != nullptr ? *epilogue_->output : *outputs_[i];
  }
  void make_plain(int i);
  void check_input(int i) const;
  bool is_ours(const std::shared_ptr<Storage>& storage) const;
  void drop(int i);
  void finish_run();

  const OperatorDef& def_;
  const OperatorSchema& schema_;
  const Arguments args_;
  Engine& engine_;
  const int position_;
  uint64_t seed_;
  uint32_t runs_ = 0;
  std::vector<std::shared_ptr<Blob>> inputs_, outputs_;
  std::vector<BlobValue> values_;  // of the inputs, during a run
  bool prefers_blocked_ = false;
  uint32_t sole_user_ = 0;  // bit i: of input i
  BlobValue residual_;
  const Epilogue* epilogue_ = nullptr;
  RunContext* context_ = nullptr;
  std::vector<Staged> staged_;
  std::vector<std::unique_ptr<Storage>> scratch_;
};

}  // namespace caffe2
