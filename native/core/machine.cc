#include "core/machine.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace caffe2 {

namespace {

// The content of a small file; "" when there is none. Not by streams, which hide lack of memory.
std::string read_file(const std::string& path) {
  std::string content;
#if defined(__unix__) || defined(__APPLE__)
  char buffer[4096];
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return content;
  struct Close {
    int file;
    ~Close() { ::close(file); }
  } close{file};
  for (ssize_t n; (n = ::read(file, buffer, sizeof buffer)) > 0;) {
    content.append(buffer, static_cast<size_t>(n));
  }
#endif
  return content;
}

}  // namespace

uint64_t control_group_memory(std::string_view groups, const std::string& folder) {
  uint64_t least = UINT64_MAX;
  while (!groups.empty()) {
    // "ID:CONTROLLERS:PATH"; the second version names no controllers.
    const std::string_view line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(line.size() + 1, groups.size()));
    const size_t controllers = line.find(':') + 1;
    const size_t path = line.find(':', controllers) + 1;
    if (controllers == 0 || path == 0) continue;
    const std::string list =
        "," + std::string(line.substr(controllers, path - 1 - controllers)) + ",";
    const bool second = list == ",,";
    if (!second && list.find(",memory,") == std::string::npos) continue;
    const std::string root = folder + (second ? "" : "/memory");
    const char* file = second ? "/memory.max" : "/memory.limit_in_bytes";
    // Every group around it counts; inside a container only some can be seen.
    for (std::string group(line.substr(path));;) {
      while (!group.empty() && group.back() == '/') group.pop_back();
      const std::string limit = read_file(root + group + file);
      uint64_t bytes = 0;  // or the word "max"
      const auto parsed = std::from_chars(limit.data(), limit.data() + limit.size(), bytes);
      if (parsed.ec == std::errc()) least = std::min(least, bytes);
      if (group.empty()) break;
      group.resize(std::min(group.rfind('/'), group.size() - 1));
    }
  }
  return least;
}

uint64_t machine_memory() {
  uint64_t bytes = UINT64_MAX;
#if defined(__unix__) || defined(__APPLE__)
  const auto pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
#endif
#if defined(__linux__)
  bytes = std::min(bytes, control_group_memory(read_file("/proc/self/cgroup"), "/sys/fs/cgroup"));
#endif
  return bytes;
}

}  // namespace caffe2
