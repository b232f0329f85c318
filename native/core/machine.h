// The machine that the process runs on.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace caffe2 {

// Bytes of memory that there are for this process: those of the machine, or of the control group
// (container) that it runs in, where that has less. UINT64_MAX where nobody says.
uint64_t machine_memory();

// The least limit of the control groups around a process, in bytes; UINT64_MAX: none. groups: what
// /proc/self/cgroup lists; folder: where the groups of both versions are mounted.
uint64_t control_group_memory(std::string_view groups, const std::string& folder);

}  // namespace caffe2
