#include "core/database.h"

#include <utility>

#include "core/cancellation.h"
#include "core/minidb.h"

namespace caffe2 {

std::shared_ptr<Database> open_database(const HostHooks& hooks, const std::string& type,
                                        const std::string& path, DatabaseMode mode) {
  if (type == "minidb" || type == "MiniDB") return open_minidb(path, mode);
  if (hooks.open_database) {
    if (auto database = hooks.open_database(type, path, mode)) return database;
  }
  fail(Code::kUnsupported, "database '", path, "': there are no databases of type '", type,
       "' here; minidb is always there, lmdb where Python has the package lmdb");
}

// The right to move the cursor.
class DatabaseReader::Turn {
 public:
  Turn(DatabaseReader& reader, Cancellation& cancellation)
      : reader_(reader), cancellation_(cancellation) {
    std::unique_lock lock(reader.mutex_.plain());
    // One that went out in another process, before a fork, does not come back to this one.
    cancellation.wait(
        reader.returned_.get(), lock,
        [&] { return reader.cursor_ || reader.taken_in_ != fork_count(); },
        [&] { return concat("a reader waits for its turn at database '", reader.source_, "'"); });
    cursor_ = std::move(reader.cursor_);
    reader.taken_in_ = fork_count();
  }
  ~Turn() {
    if (cursor_) cursor_->wait_with(nullptr);
    std::lock_guard lock(reader_.mutex_);
    reader_.cursor_ = std::move(cursor_);
    if (!reader_.cursor_) reader_.taken_in_ = -1;
    reader_.returned_.get().notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  Cursor& cursor() {
    if (!cursor_) cursor_ = reader_.first_record();
    cursor_->wait_with(&cancellation_);
    return *cursor_;
  }
  // After an error the place is not known; the next one begins anew.
  void lose_place() { cursor_.reset(); }

 private:
  DatabaseReader& reader_;
  Cancellation& cancellation_;
  std::unique_ptr<Cursor> cursor_;
};

DatabaseReader::DatabaseReader(std::shared_ptr<Database> database, std::string source, int shards,
                               int shard)
    : database_(std::move(database)), source_(std::move(source)), shards_(shards), shard_(shard) {
  cursor_ = first_record();
}

void DatabaseReader::skip(Cursor& cursor, int records) {
  for (int i = 0; i < records && cursor.valid(); i++) cursor.next();
}

std::unique_ptr<Cursor> DatabaseReader::first_record() {
  auto cursor = database_->new_cursor();
  seek_to_shard(*cursor);
  return cursor;
}

void DatabaseReader::seek_to_shard(Cursor& cursor) {
  cursor.seek_to_first();
  skip(cursor, shard_);
  at_next_ = true;
}

DatabaseReader::Record DatabaseReader::read(Cancellation& cancellation) {
  Turn turn(*this, cancellation);
  try {
    Cursor& cursor = turn.cursor();
    if (!at_next_) skip(cursor, shards_);
    if (!cursor.valid()) seek_to_shard(cursor);
    if (!cursor.valid()) {
      fail(Code::kFailedPrecondition, "database '", source_, "' has no record",
           shard_ > 0 ? concat(" number ", shard_) : "");
    }
    at_next_ = false;
    return {std::string(cursor.key()), std::string(cursor.value())};
  } catch (...) {
    turn.lose_place();
    throw;
  }
}

void DatabaseReader::read_all(Cancellation& cancellation,
                              const std::function<bool(std::string_view, std::string_view)>& take) {
  Turn turn(*this, cancellation);
  try {
    Cursor& cursor = turn.cursor();
    for (seek_to_shard(cursor); cursor.valid(); skip(cursor, shards_)) {
      if (!take(cursor.key(), cursor.value())) break;
    }
    seek_to_shard(cursor);
  } catch (...) {
    turn.lose_place();
    throw;
  }
}

}  // namespace caffe2
