#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace caffe2 {

MappedFile::MappedFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto refuse = [&](const std::string& reason) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kFailedPrecondition;
    if (file >= 0) ::close(file);
    fail(code, "file '", path, "' cannot be read: ", reason);
  };
  if (file < 0) refuse(std::strerror(errno));
  struct stat status;
  if (fstat(file, &status) != 0) refuse(std::strerror(errno));
  errno = 0;
  if (!S_ISREG(status.st_mode)) refuse("it is no regular file");
  if (!std::in_range<size_t>(status.st_size)) refuse("it is larger than memory can be");
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    // Nobody writes to it; were it otherwise, others and the file would not see it.
    data_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (data_ == MAP_FAILED) refuse(std::strerror(errno));
  }
  ::close(file);
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(data_, size_);
}

void MappedFile::drop(const void* data, size_t bytes) const {
  // The system maps up to so much around a page that is touched.
  constexpr size_t kAround = size_t{2} << 20;
  const size_t offset =
      static_cast<size_t>(static_cast<const char*>(data) - static_cast<char*>(data_));
  const size_t first = offset / kAround * kAround;
  const size_t last = std::min(size_, (offset + bytes + kAround - 1) / kAround * kAround);
  if (first < last) madvise(static_cast<char*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace caffe2
