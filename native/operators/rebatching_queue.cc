// Queues of single examples, which come in one by one or in batches, and go out in batches.
#include <memory>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "operators/queue_operator.h"
#include "operators/records.h"

namespace caffe2 {
namespace {

class RebatchingQueue : public BlobsQueue {
 public:
  RebatchingQueue(int capacity, int num_blobs) : BlobsQueue(capacity, num_blobs, {}) {}
  const char* kind() const override { return "std::unique_ptr<caffe2::RebatchingQueue>"; }
};

class CreateRebatchingQueueOperator : public Operator {
 public:
  explicit CreateRebatchingQueueOperator(const OperatorContext& context)
      : Operator(context),
        capacity_(args().int32("capacity")),
        num_blobs_(args().int32("num_blobs")) {}

 protected:
  void run() override {
    output_object(0, std::make_shared<RebatchingQueue>(capacity_, num_blobs_));
  }

 private:
  const int capacity_, num_blobs_;
};

Shape with_batch(int64_t rows, const Shape& example) {
  Shape shape{rows};
  for (int64_t dim : example) shape.append(dim);
  return shape;
}

// Inputs queue, tensors.
class EnqueueRebatchingQueueOperator : public QueueOperator {
 public:
  explicit EnqueueRebatchingQueueOperator(const OperatorContext& context)
      : QueueOperator(context), batch_(args().boolean("enqueue_batch")) {}

 protected:
  void run() override {
    const auto queue = this->queue(0, inputs() - 1);
    for (BlobsQueue::Record& example : examples()) {
      if (!queue->push(example, wait_for("room in", 0, *queue))) {
        fail(Code::kFailedPrecondition, describe_input(0), " is closed");
      }
    }
  }

 private:
  std::vector<BlobsQueue::Record> examples() const {
    const int64_t rows = batch_ && input(1).rank() > 0 ? input(1).dim(0) : 1;
    std::vector<BlobsQueue::Record> found(rows);
    for (int i = 1; i < inputs(); i++) {
      const Tensor& x = input(i);
      CAFFE2_ENFORCE(!batch_ || (x.rank() > 0 && x.dim(0) == rows), describe_input(i),
                     " has shape ", x.shape().text(), "; with enqueue_batch=1 ", rows,
                     " rows are needed");
      Shape shape;
      for (int axis = batch_ ? 1 : 0; axis < x.rank(); axis++) shape.append(x.dim(axis));
      for (int64_t r = 0; r < rows; r++) {
        Tensor example(engine().allocator(), with_batch(1, shape), x.type());
        const Tensor whole(x.storage(), batch_ ? x.shape() : with_batch(1, shape), x.type());
        copy_rows(whole, r, 1, example, 0, {});
        found[r].push_back(BlobValue{example, nullptr});
      }
    }
    return found;
  }

  const bool batch_;
};

// Output i: the examples of blob i, one behind the other.
class DequeueRebatchingQueueOperator : public QueueOperator {
 public:
  explicit DequeueRebatchingQueueOperator(const OperatorContext& context)
      : QueueOperator(context), wanted_(args().integer("num_elements")) {}

 protected:
  void run() override {
    const auto queue = this->queue(0, outputs());
    std::vector<BlobsQueue::Record> examples;
    try {
      while (static_cast<int64_t>(examples.size()) < wanted_) {
        auto example = queue->pop(wait_for("an example of", 0, *queue));
        if (!example) break;
        examples.push_back(std::move(*example));
      }
      if (examples.empty()) {
        fail(Code::kFailedPrecondition, describe_input(0), " is closed and empty");
      }
      join(examples);
    } catch (...) {
      queue->put_back(std::move(examples));
      throw;
    }
  }

 private:
  void join(const std::vector<BlobsQueue::Record>& examples) {
    std::vector<Tensor*> results;
    for (int i = 0; i < outputs(); i++) {
      const Tensor& first = examples[0][i].tensor;
      for (const BlobsQueue::Record& example : examples) {
        const Tensor& x = example[i].tensor;
        CAFFE2_ENFORCE(x.type() == first.type() && x.shape() == first.shape(), describe_input(0),
                       " holds examples of types ", type_name(first.type()), " and ",
                       type_name(x.type()), " and (with the batch) shapes ", first.shape().text(),
                       " and ", x.shape().text(), ", which make no batch");
      }
      Shape shape{static_cast<int64_t>(examples.size())};
      for (int axis = 1; axis < first.rank(); axis++) shape.append(first.dim(axis));
      results.push_back(&output(i, shape, first.type()));
    }
    for (int i = 0; i < outputs(); i++) {
      int64_t row = 0;
      for (const BlobsQueue::Record& example : examples) {
        copy_rows(example[i].tensor, 0, 1, *results[i], row++, {});
      }
    }
  }

  const int64_t wanted_;
};

class CloseRebatchingQueueOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { input_object<BlobsQueue>(0)->close(); }
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateRebatchingQueue, CreateRebatchingQueueOperator)
REGISTER_CPU_OPERATOR(EnqueueRebatchingQueue, EnqueueRebatchingQueueOperator)
REGISTER_CPU_OPERATOR(DequeueRebatchingQueue, DequeueRebatchingQueueOperator)
REGISTER_CPU_OPERATOR(CloseRebatchingQueue, CloseRebatchingQueueOperator)

}  // namespace caffe2
