// Queues that are read as databases.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/database.h"
#include "core/queue.h"
#include "core/registry.h"

namespace caffe2 {
namespace {

// Which blobs of a record are key and value (-1: the key is empty), and how many seconds a record
// is waited for (0: without end).
struct QueueSource {
  std::shared_ptr<BlobsQueue> queue;
  std::shared_ptr<Blob> blob;  // by which others find the queue
  std::string name;
  int key, value;
  float timeout;
};

// Takes records out of the queue. There is none behind the last one of a closed queue.
class QueueCursor : public Cursor {
 public:
  explicit QueueCursor(const QueueSource& source) : source_(source) {}

  void seek_to_first() override {}  // what was taken does not come back
  void next() override { record_.reset(); }
  bool valid() const override {
    if (!record_) record_ = source_.queue->pop(wait());
    return record_.has_value();
  }
  void wait_with(Cancellation* cancellation) override { cancellation_ = cancellation; }
  std::string_view key() const override {
    return source_.key < 0 ? std::string_view() : text(source_.key);
  }
  std::string_view value() const override { return text(source_.value); }

 private:
  BlobsQueue::Wait wait() const {
    return [this](auto& changed, auto& lock, const auto& ready) {
      const auto begin = std::chrono::steady_clock::now();
      const auto gone = [&] { return !source_.blob->holds(source_.queue.get()); };
      const auto done = [&] {
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        return ready() || gone() || (source_.timeout > 0 && waited.count() >= source_.timeout);
      };
      if (cancellation_ != nullptr) {
        cancellation_->wait(changed, lock, done, [this] {
          return concat("a reader waits for a record of queue '", source_.name, "' (",
                        source_.queue->state_text(), ")");
        });
      } else {
        while (!done()) changed.wait_for(lock, Cancellation::kPeriod);
      }
      if (!ready()) {
        CAFFE2_ENFORCE(!gone(), "queue '", source_.name,
                       "' was removed or replaced, and has no record left");
        fail(Code::kFailedPrecondition, "no record came from the queue within ", source_.timeout,
             " seconds");
      }
    };
  }

  std::string_view text(int i) const {
    const BlobValue& blob = (*record_)[i];
    if (const auto text = blob.as<Text>()) return text->value;
    CAFFE2_ENFORCE(
        blob.is_tensor() && blob.tensor.type() == DataType::kString && blob.tensor.size() == 1,
        source_.queue->blob_text(i), " of a record holds ", blob.kind(),
        "; a text, or a tensor with one string, is needed");
    return blob.tensor.data<std::string>()[0];
  }

  const QueueSource source_;
  Cancellation* cancellation_ = nullptr;
  mutable std::optional<BlobsQueue::Record> record_;
};

class QueueDatabase : public Database {
 public:
  explicit QueueDatabase(QueueSource source) : source_(std::move(source)) {}
  std::unique_ptr<Cursor> new_cursor() override { return std::make_unique<QueueCursor>(source_); }
  bool allows_reading_ahead() const override { return false; }
  void put(std::string_view, std::string_view) override { refuse(); }
  void commit() override { refuse(); }

 private:
  [[noreturn]] static void refuse() { fail(Code::kUnsupported, "a queue is read, not written"); }

  const QueueSource source_;
};

class CreateBlobsQueueDBOperator : public Operator {
 public:
  explicit CreateBlobsQueueDBOperator(const OperatorContext& context)
      : Operator(context),
        key_(args().int32("key_blob_index")),
        value_(args().int32("value_blob_index")),
        timeout_(args().real("timeout_secs")) {}

 protected:
  void run() override {
    auto queue = input_object<BlobsQueue>(0);
    CAFFE2_ENFORCE(key_ < queue->num_blobs() && value_ < queue->num_blobs(),
                   "key_blob_index = ", key_, " and value_blob_index = ", value_, "; ",
                   describe_input(0), " has records of ", queue->num_blobs(), " blob(s)");
    const std::string& name = def().input[0];
    auto database = std::make_shared<QueueDatabase>(
        QueueSource{std::move(queue), input_blobs()[0], name, key_, value_, timeout_});
    output_object(0, std::make_shared<DatabaseReader>(std::move(database), name, 1, 0));
  }

 private:
  const int key_, value_;
  const float timeout_;
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateBlobsQueueDB, CreateBlobsQueueDBOperator)

}  // namespace caffe2
