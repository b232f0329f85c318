#include "core/queue.h"

#include <iterator>
#include <utility>

namespace caffe2 {

std::string BlobsQueue::blob_text(int i) const {
  return fields_.empty() ? concat("blob ", i) : concat("blob ", i, " (", fields_[i], ")");
}

std::string BlobsQueue::state_text() const {
  std::lock_guard lock(mutex_);
  return concat(records_.size(), " of ", capacity_, " records", closed_ ? ", closed" : "");
}

bool BlobsQueue::push(Record& record, const Wait& wait) {
  std::unique_lock lock(mutex_.plain());
  wait(has_room_.get(), lock,
       [this] { return closed_ || records_.size() < static_cast<size_t>(capacity_); });
  if (closed_) return false;
  records_.push_back(std::move(record));
  has_record_.get().notify_one();
  return true;
}

std::optional<BlobsQueue::Record> BlobsQueue::pop(const Wait& wait) {
  std::unique_lock lock(mutex_.plain());
  wait(has_record_.get(), lock, [this] { return closed_ || !records_.empty(); });
  if (records_.empty()) return std::nullopt;
  std::optional<Record> record(std::move(records_.front()));
  records_.pop_front();
  has_room_.get().notify_one();
  return record;
}

void BlobsQueue::put_back(std::vector<Record> records) {
  std::lock_guard lock(mutex_);
  records_.insert(records_.begin(), std::make_move_iterator(records.begin()),
                  std::make_move_iterator(records.end()));
  has_record_.get().notify_all();
}

void BlobsQueue::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  has_room_.get().notify_all();
  has_record_.get().notify_all();
}

}  // namespace caffe2
