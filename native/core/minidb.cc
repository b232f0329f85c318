#include "core/minidb.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

namespace caffe2 {

namespace {

static_assert(std::endian::native == std::endian::little, "minidb is little-endian");

constexpr int64_t kHeader = 2 * sizeof(int32_t);

[[noreturn]] void fail_at(const std::string& path, const char* what) {
  const int error = errno;
  const Code code = error == ENOENT ? Code::kNotFound : Code::kFailedPrecondition;
  fail(code, "database '", path, "' cannot be ", what, ": ", std::strerror(error));
}

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // -1 for what is no regular file: a folder, a pipe, a device without end.
  int64_t size() const {
    struct stat status;
    if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) return -1;
    return static_cast<int64_t>(status.st_size);
  }
  bool read(void* to, size_t bytes, int64_t offset) const {
    auto* out = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t n = pread(fd_, out, bytes, offset);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      out += n;
      offset += n;
      bytes -= static_cast<size_t>(n);
    }
    return true;
  }
  bool write(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

class MinidbCursor : public Cursor {
 public:
  MinidbCursor(std::string path, std::shared_ptr<const File> file)
      : path_(std::move(path)), file_(std::move(file)), size_(file_->size()) {
    seek_to_first();
  }

  void seek_to_first() override {
    next_ = 0;
    number_ = -1;
    next();
  }
  // Every length is compared with what is left of the file before memory is taken for it.
  void next() override {
    valid_ = false;
    number_++;
    if (next_ == size_) return;
    int32_t lengths[2];
    require(kHeader <= size_ - next_, "is cut off within its lengths");
    require(file_->read(lengths, sizeof(lengths), next_), "cannot be read");
    for (const int32_t length : lengths) require(length >= 0, "has the length ", length);
    const int64_t bytes = int64_t{lengths[0]} + lengths[1];
    require(bytes <= size_ - next_ - kHeader, "has ", bytes, " bytes, but only ",
            size_ - next_ - kHeader, " are left");
    record_.resize(static_cast<size_t>(bytes));
    require(file_->read(record_.data(), record_.size(), next_ + kHeader), "cannot be read");
    key_ = static_cast<size_t>(lengths[0]);
    next_ += kHeader + bytes;
    valid_ = true;
  }
  bool valid() const override { return valid_; }
  std::string_view key() const override { return std::string_view(record_).substr(0, key_); }
  std::string_view value() const override { return std::string_view(record_).substr(key_); }

 private:
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (condition) return;
    fail(Code::kInvalidArgument, "'", path_, "' is no minidb, or damaged: record ", number_,
         " at byte ", next_, " ", concat(parts...));
  }

  const std::string path_;
  const std::shared_ptr<const File> file_;
  const int64_t size_;  // when it was opened
  int64_t next_ = 0, number_ = 0;
  bool valid_ = false;
  std::string record_;
  size_t key_ = 0;
};

class MinidbReader : public Database {
 public:
  explicit MinidbReader(const std::string& path)
      : path_(path), file_(std::make_shared<File>(path, O_RDONLY | O_NONBLOCK)) {
    if (!*file_) fail_at(path, "opened");
    CAFFE2_ENFORCE(file_->size() >= 0, "database '", path, "' is no file");
  }
  std::unique_ptr<Cursor> new_cursor() override {
    return std::make_unique<MinidbCursor>(path_, file_);
  }
  void put(std::string_view, std::string_view) override { refuse(); }
  void commit() override { refuse(); }

 private:
  [[noreturn]] void refuse() const {
    fail(Code::kFailedPrecondition, "database '", path_, "' is open for reading, not for writing");
  }

  const std::string path_;
  const std::shared_ptr<const File> file_;
};

// A new database is a file beside its place until the first commit, which moves it there. What is
// added to one is taken back when it cannot be written whole.
class MinidbWriter : public Database {
 public:
  MinidbWriter(const std::string& path, bool append)
      : path_(path),
        beside_(append ? "" : unused_name(path)),
        file_(append ? path : beside_, O_WRONLY | O_CREAT | (append ? O_APPEND : O_EXCL)) {
    if (!file_) fail_at(path_, "written");
  }
  ~MinidbWriter() override {
    if (!beside_.empty()) unlink(beside_.c_str());
  }

  std::unique_ptr<Cursor> new_cursor() override {
    fail(Code::kFailedPrecondition, "database '", path_, "' is open for writing, not for reading");
  }

  void put(std::string_view key, std::string_view value) override {
    constexpr size_t kMost = std::numeric_limits<int32_t>::max();
    CAFFE2_ENFORCE(key.size() <= kMost && value.size() <= kMost, "database '", path_,
                   "': a record with ", key.size(), " and ", value.size(),
                   " bytes of key and value is longer than the format allows (2 GiB)");
    const int32_t lengths[2] = {static_cast<int32_t>(key.size()),
                                static_cast<int32_t>(value.size())};
    pending_.append(reinterpret_cast<const char*>(lengths), sizeof(lengths));
    pending_.append(key);
    pending_.append(value);
    if (!beside_.empty() && pending_.size() >= kBuffer) write_pending();
  }

  void commit() override {
    const int64_t before = file_.size();
    try {
      write_pending();
      if (fsync(file_.fd()) != 0) fail_at(path_, "written");
    } catch (...) {
      if (beside_.empty() && before >= 0) (void)!ftruncate(file_.fd(), before);
      throw;
    }
    if (beside_.empty()) return;
    if (std::rename(beside_.c_str(), path_.c_str()) != 0) fail_at(path_, "replaced");
    beside_.clear();
    sync_folder();
  }

 private:
  static constexpr size_t kBuffer = size_t{1} << 20;

  static std::string unused_name(const std::string& path) {
    static std::atomic<int> number{0};
    return concat(path, ".", getpid(), ".", number++, ".part");
  }

  void write_pending() {
    const std::string pending = std::exchange(pending_, {});
    if (!file_.write(pending)) fail_at(path_, "written");
  }

  // The new name itself is safe when the folder is; where that cannot be done, nothing is lost.
  void sync_folder() const {
    const std::string folder = std::filesystem::path(path_).parent_path().string();
    const File file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
    if (file) fsync(file.fd());
  }

  const std::string path_;
  std::string beside_;  // empty once the file is in its place
  File file_;
  std::string pending_;
};

}  // namespace

std::shared_ptr<Database> open_minidb(const std::string& path, DatabaseMode mode) {
  CAFFE2_ENFORCE(path.find('\0') == std::string::npos, "a name of a database holds a zero byte");
  if (mode == DatabaseMode::kRead) return std::make_shared<MinidbReader>(path);
  return std::make_shared<MinidbWriter>(path, mode == DatabaseMode::kWrite);
}

}  // namespace caffe2
