// Operators on queues of records.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/operator.h"
#include "core/queue.h"
#include "core/registry.h"
#include "operators/queue_operator.h"
#include "operators/random.h"

namespace caffe2 {
namespace {

using Record = BlobsQueue::Record;

class CreateBlobsQueueOperator : public Operator {
 public:
  explicit CreateBlobsQueueOperator(const OperatorContext& context)
      : Operator(context),
        capacity_(args().int32("capacity")),
        num_blobs_(args().int32("num_blobs")),
        unique_(args().boolean("enforce_unique_name")) {
    if (const Argument* arg = args().given("field_names")) fields_ = arg->strings;
    CAFFE2_ENFORCE(fields_.empty() || fields_.size() == static_cast<size_t>(num_blobs_), "it has ",
                   fields_.size(), " field_names for num_blobs = ", num_blobs_);
  }

 protected:
  void run() override {
    if (unique_ && present_output(0).as<BlobsQueue>()) {
      fail(Code::kFailedPrecondition, describe_output(0),
           " holds a queue already, and enforce_unique_name is set");
    }
    output_object(0, std::make_shared<BlobsQueue>(capacity_, num_blobs_, fields_));
  }

 private:
  const int capacity_, num_blobs_;
  const bool unique_;
  std::vector<std::string> fields_;
};

// Safe operators have one output more, the status, instead of an error.
template <bool safe>
class EnqueueOperator : public QueueOperator {
 public:
  explicit EnqueueOperator(const OperatorContext& context)
      : QueueOperator(context), blobs_(static_cast<int>(context.def.input.size()) - 1) {
    const auto given = static_cast<int>(context.def.output.size());
    CAFFE2_ENFORCE(given == blobs_ + safe, "it has ", given, " output(s) for ", blobs_, " blob(s)",
                   safe ? " and the status" : "");
  }

 protected:
  void run() override {
    const auto queue = this->queue(0, blobs_);
    bool* status = safe ? status_output() : nullptr;
    Record record;
    for (int i = 0; i < blobs_; i++) record.push_back(input_value(i + 1));
    const bool taken = queue->push(record, wait_for("room in", 0, *queue));
    if (!taken && !safe) fail(Code::kFailedPrecondition, describe_input(0), " is closed");
    if (status) *status = !taken;
    // The values are the queue's now: the next write to a blob must not reach them.
    for (int i = 0; taken && i < blobs_; i++) output_value(i, BlobValue());
  }

 private:
  const int blobs_;
};

class DequeueBlobsOperator : public QueueOperator {
 public:
  explicit DequeueBlobsOperator(const OperatorContext& context)
      : QueueOperator(context), timeout_(args().real("timeout_secs")) {}

 protected:
  void run() override {
    const auto queue = this->queue(0, outputs());
    auto record = queue->pop(wait_for("a record of", 0, *queue, timeout_));
    if (!record) fail(Code::kFailedPrecondition, describe_input(0), " is closed and empty");
    for (int i = 0; i < outputs(); i++) output_value(i, std::move((*record)[i]));
  }

 private:
  const float timeout_;
};

class SafeDequeueBlobsOperator : public QueueOperator {
 public:
  explicit SafeDequeueBlobsOperator(const OperatorContext& context)
      : QueueOperator(context), num_records_(args().int32("num_records")) {}

 protected:
  void run() override {
    const int blobs = outputs() - 1;
    const auto queue = this->queue(0, blobs);
    bool* status = status_output();
    std::vector<Record> records;
    try {
      while (static_cast<int>(records.size()) < num_records_) {
        auto record = queue->pop(wait_for("a record of", 0, *queue));
        if (!record) break;
        records.push_back(std::move(*record));
      }
      if (records.size() > 1) concatenate(records, *queue);
    } catch (...) {
      queue->put_back(std::move(records));
      throw;
    }
    if (records.size() == 1) {
      for (int i = 0; i < blobs; i++) output_value(i, std::move(records[0][i]));
    }
    *status = records.empty();
  }

 private:
  // Output i = the blobs i of all records, one after the other along the first dimension.
  void concatenate(const std::vector<Record>& records, const BlobsQueue& queue) {
    std::vector<Tensor*> results;
    for (int i = 0; i < outputs() - 1; i++) {
      const auto blob = [&] { return concat(describe_input(0), ": ", queue.blob_text(i)); };
      const Tensor& first = records[0][i].tensor;
      int64_t rows = 0;
      for (const Record& record : records) {
        const Tensor& tensor = record[i].tensor;
        CAFFE2_ENFORCE(record[i].is_tensor() && tensor.rank() > 0, blob(), " holds ",
                       record[i].kind(), record[i].is_tensor() ? " of shape ()" : "",
                       "; records are concatenated along the first dimension of tensors");
        CAFFE2_ENFORCE(tensor.type() == first.type() && same_rows(tensor, first), blob(),
                       " has type ", type_name(tensor.type()), " and shape ", tensor.shape().text(),
                       " in one record and ", type_name(first.type()), ", ", first.shape().text(),
                       " in another: they cannot be concatenated");
        CAFFE2_ENFORCE(!__builtin_add_overflow(rows, tensor.dim(0), &rows), blob(),
                       " has too many rows");
      }
      Shape shape{rows};
      for (int axis = 1; axis < first.rank(); axis++) shape.append(first.dim(axis));
      results.push_back(&output(i, shape, first.type()));
    }
    for (int i = 0; i < outputs() - 1; i++) {
      int64_t done = 0;
      for (const Record& record : records) done += copy(record[i].tensor, *results[i], done);
    }
  }

  static bool same_rows(const Tensor& a, const Tensor& b) {
    return a.rank() == b.rank() &&
           std::equal(a.shape().begin() + 1, a.shape().end(), b.shape().begin() + 1);
  }

  // Copies all elements of `from` to those of `to` from number `start` on; how many there are.
  static int64_t copy(const Tensor& from, Tensor& to, int64_t start) {
    if (from.type() == DataType::kString) {
      std::copy_n(from.data<std::string>(), from.size(), to.mutable_data<std::string>() + start);
    } else if (from.size() > 0) {
      const size_t offset = static_cast<size_t>(start) * type_size(from.type());
      std::memcpy(static_cast<char*>(to.raw_mutable_data()) + offset, from.raw_data(),
                  from.bytes());
    }
    return from.size();
  }

  const int num_records_;
};

class WeightedSampleDequeueBlobsOperator : public QueueOperator {
 public:
  explicit WeightedSampleDequeueBlobsOperator(const OperatorContext& context)
      : QueueOperator(context), table_index_(args().int32("table_idx_blob")) {
    const size_t queues = context.def.input.size();
    const auto blobs = static_cast<int>(context.def.output.size()) - 1;
    std::vector<float> weights = args().reals("weights");
    if (weights.empty()) weights.assign(queues, 1.0f);
    CAFFE2_ENFORCE(weights.size() == queues, "it has ", weights.size(), " weights for ", queues,
                   " queue(s)");
    CAFFE2_ENFORCE(table_index_ < blobs, "table_idx_blob = ", table_index_, " is not below ", blobs,
                   ", the number of blobs");
    double sum = 0;
    for (const float weight : weights) bounds_.push_back(sum += weight);
    CAFFE2_ENFORCE(sum > 0 && std::isfinite(sum), "the weights have the sum ", sum);
  }

 protected:
  void run() override {
    const int blobs = outputs() - 1;
    std::vector<std::shared_ptr<BlobsQueue>> queues;
    for (int i = 0; i < inputs(); i++) queues.push_back(queue(i, blobs));
    bool* status = status_output();
    const int chosen = draw();
    BlobValue index;
    if (table_index_ >= 0) {
      index.tensor = Tensor(engine().allocator(), {1}, DataType::kInt32);
      index.tensor.mutable_data<int32_t>()[0] = chosen;
    }
    auto record = queues[chosen]->pop(wait_for("a record of", chosen, *queues[chosen]));
    *status = !record;
    if (!record) return;
    if (table_index_ >= 0) (*record)[table_index_] = std::move(index);
    for (int i = 0; i < blobs; i++) output_value(i, std::move((*record)[i]));
  }

 private:
  int draw() {
    float share;  // 0 <= share < 1
    kernels().uniform(random_state(next_random_stream()), 0, 1, 1, &share, parallel());
    // The first bound above it: never that of a queue with weight 0.
    const auto bound = std::upper_bound(bounds_.begin(), bounds_.end(), share * bounds_.back());
    return static_cast<int>(bound - bounds_.begin());
  }

  const int table_index_;
  std::vector<double> bounds_;  // sums of the weights so far
};

class CloseBlobsQueueOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { input_object<BlobsQueue>(0)->close(); }
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateBlobsQueue, CreateBlobsQueueOperator)
REGISTER_CPU_OPERATOR(EnqueueBlobs, EnqueueOperator<false>)
REGISTER_CPU_OPERATOR(SafeEnqueueBlobs, EnqueueOperator<true>)
REGISTER_CPU_OPERATOR(DequeueBlobs, DequeueBlobsOperator)
REGISTER_CPU_OPERATOR(SafeDequeueBlobs, SafeDequeueBlobsOperator)
REGISTER_CPU_OPERATOR(WeightedSampleDequeueBlobs, WeightedSampleDequeueBlobsOperator)
REGISTER_CPU_OPERATOR(CloseBlobsQueue, CloseBlobsQueueOperator)

}  // namespace caffe2
