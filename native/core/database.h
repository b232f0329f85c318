// Databases: files of (key, value) records, as CreateDB, Load and Save name them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/blob.h"
#include "core/fork.h"

namespace caffe2 {

class Cancellation;

// kWrite: adds to what is there; kNew: replaces it.
enum class DatabaseMode { kRead, kWrite, kNew };

// A place in a database that was opened for reading. Every error names the database.
class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual void seek_to_first() = 0;
  virtual void next() = 0;
  virtual bool valid() const = 0;  // false behind the last record
  // What ends it while it waits for a record, for those that do; none: nothing.
  virtual void wait_with(Cancellation* /*cancellation*/) {}
  // Of the record at this place, until it changes.
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
};

class Database {
 public:
  virtual ~Database() = default;
  virtual std::unique_ptr<Cursor> new_cursor() = 0;
  // Whether records may be read before they are asked for. Those of a queue would be missing there.
  virtual bool allows_reading_ahead() const { return true; }
  virtual void put(std::string_view key, std::string_view value) = 0;
  // Makes what was put since the last commit a part of the database, all of it or nothing. What is
  // never committed goes away with this object.
  virtual void commit() = 0;
};

struct HostHooks;

// Raises Error(kNotFound) for a file that is not there, kUnsupported for an unknown type.
std::shared_ptr<Database> open_database(const HostHooks& hooks, const std::string& type,
                                        const std::string& path, DatabaseMode mode);

// A cursor that many may read from, each record by one of them: round and round, every
// `shards`-th record from number `shard` on.
class DatabaseReader : public Object {
 public:
  static constexpr const char* kKind = "caffe2::db::DBReader";
  DatabaseReader(std::shared_ptr<Database> database, std::string source, int shards, int shard);
  const char* kind() const override { return kKind; }
  const std::string& source() const { return source_; }
  bool allows_reading_ahead() const { return database_->allows_reading_ahead(); }

  struct Record {
    std::string key, value;
  };
  Record read(Cancellation& cancellation);

  // Calls `take(key, value)` for all records from the first on, until it returns false.
  void read_all(Cancellation& cancellation,
                const std::function<bool(std::string_view, std::string_view)>& take);

 private:
  class Turn;
  std::unique_ptr<Cursor> first_record();
  void seek_to_shard(Cursor& cursor);
  static void skip(Cursor& cursor, int records);

  const std::shared_ptr<Database> database_;
  const std::string source_;
  const int shards_, shard_;
  ForkMutex mutex_;
  ForkCondition returned_;
  // With whoever reads, as long as that takes: a cursor of the host waits for the host's lock.
  std::unique_ptr<Cursor> cursor_;
  bool at_next_ = true;  // whether it stands on the record to be read next, or on the one before
  int taken_in_ = -1;    // fork_count() of that process; at first nobody has one
};

}  // namespace caffe2
