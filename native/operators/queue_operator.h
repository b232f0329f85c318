// What operators on queues share: the queue, and how to wait for it.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "core/operator.h"
#include "core/queue.h"

namespace caffe2 {

class QueueOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  // The queue in input i, whose records must have so many blobs.
  std::shared_ptr<BlobsQueue> queue(int i, int blobs) const {
    auto queue = input_object<BlobsQueue>(i);
    CAFFE2_ENFORCE(queue->num_blobs() == blobs, describe_input(i), " has records of ",
                   queue->num_blobs(), " blob(s), but the operator names ", blobs);
    return queue;
  }

  // How to wait for the queue in input i: until the run is cancelled, the queue is gone from its
  // blob, or, with a timeout above 0, so many seconds are over.
  BlobsQueue::Wait wait_for(const char* purpose, int i, const BlobsQueue& queue,
                            float timeout = 0) const {
    return [=, this, &queue](auto& changed, auto& lock, const auto& ready) {
      const auto begin = std::chrono::steady_clock::now();
      const auto late = [&] {
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        return timeout > 0 && waited.count() >= timeout;
      };
      const auto gone = [&] { return !input_blobs()[i]->holds(&queue); };
      context().cancellation.wait(
          changed, lock, [&] { return ready() || late() || gone(); },
          [&] {
            return concat(describe(), " waits for ", purpose, " queue '", def().input[i], "' (",
                          queue.state_text(), ")");
          });
      if (ready()) return;
      if (gone()) {
        fail(Code::kFailedPrecondition, describe_input(i),
             " was removed or replaced while the operator waited for it");
      }
      fail(Code::kFailedPrecondition, "no record came from ", describe_input(i), " within ",
           timeout, " seconds");
    };
  }

  // Of operators whose last output says whether the queue is closed.
  bool* status_output() { return output(outputs() - 1, {}, DataType::kBool).mutable_data<bool>(); }
};

}  // namespace caffe2
