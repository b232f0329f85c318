// Databases that are on no disk.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/database.h"

namespace caffe2::fuzz {

// All that have been written, by path; what nobody has written holds the records `first`.
class Databases {
 public:
  using Records = std::vector<std::pair<std::string, std::string>>;
  Records first;

  std::shared_ptr<Database> open(const std::string& path, DatabaseMode mode) {
    if (mode == DatabaseMode::kNew) put(path, {}, true);
    return std::make_shared<Opened>(*this, path);
  }

 private:
  class Place : public Cursor {
   public:
    explicit Place(Records records) : records_(std::move(records)) {}
    void seek_to_first() override { at_ = 0; }
    void next() override { at_++; }
    bool valid() const override { return at_ < records_.size(); }
    std::string_view key() const override { return records_[at_].first; }
    std::string_view value() const override { return records_[at_].second; }

   private:
    const Records records_;
    size_t at_ = 0;
  };

  class Opened : public Database {
   public:
    Opened(Databases& all, std::string path) : all_(all), path_(std::move(path)) {}
    std::unique_ptr<Cursor> new_cursor() override {
      return std::make_unique<Place>(all_.get(path_));
    }
    void put(std::string_view key, std::string_view value) override {
      added_.emplace_back(key, value);
    }
    void commit() override { all_.put(path_, std::exchange(added_, {}), false); }

   private:
    Databases& all_;
    const std::string path_;
    Records added_;
  };

  Records get(const std::string& path) {
    std::lock_guard lock(mutex_);
    const auto found = written_.find(path);
    return found == written_.end() ? first : found->second;
  }
  void put(const std::string& path, Records records, bool anew) {
    std::lock_guard lock(mutex_);
    Records& all = written_.try_emplace(path, first).first->second;
    if (anew) all.clear();
    for (auto& record : records) all.push_back(std::move(record));
  }

  std::mutex mutex_;
  std::map<std::string, Records> written_;
};

}  // namespace caffe2::fuzz
