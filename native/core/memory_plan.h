// One piece of memory for values that do not live at the same time.
#pragma once
#include <cstddef>
#include <vector>

namespace caffe2 {

// A value that is first written in step `first` and last used in step `last`.
struct Lifetime {
  size_t bytes;
  int first, last;
  size_t offset = 0;  // set by place()
};

// Gives each value an offset such that those that live in a common step do not overlap; returns the
// bytes in all. Largest first (Pisarchyk and Lee 2020, arXiv 2001.03288, "greedy by size").
size_t place(std::vector<Lifetime>& values);

}  // namespace caffe2
