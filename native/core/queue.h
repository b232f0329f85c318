// A queue of records between producers and consumers.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/blob.h"
#include "core/fork.h"

namespace caffe2 {

// Records of a fixed number of blob values, first in, first out, for any number of threads. A
// record is taken and given whole.
class BlobsQueue : public Object {
 public:
  using Record = std::vector<BlobValue>;
  // Returns when ready(), which is called with the lock held; or raises.
  using Wait =
      std::function<void(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                         const std::function<bool()>& ready)>;

  // fields: names of the blobs of a record, for error texts; may be empty.
  BlobsQueue(int capacity, int num_blobs, std::vector<std::string> fields)
      : capacity_(capacity), num_blobs_(num_blobs), fields_(std::move(fields)) {}

  const char* kind() const override { return "std::shared_ptr<caffe2::BlobsQueue>"; }
  int num_blobs() const { return num_blobs_; }
  std::string blob_text(int i) const;  // "blob 1 (label)"
  std::string state_text() const;      // "3 of 4 records"

  // Waits for room. False when the queue is closed; the record is the caller's then, as when `wait`
  // raises.
  bool push(Record& record, const Wait& wait);

  // Waits for a record and takes it. None when the queue is closed and empty.
  std::optional<Record> pop(const Wait& wait);

  // Returns records that were popped and could not be used: they are the oldest again.
  void put_back(std::vector<Record> records);

  // No record is taken any more; those that are here can be popped. All waiting threads go on.
  void close();

 private:
  const int capacity_, num_blobs_;
  const std::vector<std::string> fields_;

  mutable ForkMutex mutex_;
  ForkCondition has_room_, has_record_;
  std::deque<Record> records_;
  bool closed_ = false;
};

}  // namespace caffe2
