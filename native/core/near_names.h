// Suggestions for misspelt names.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caffe2 {

// Letters added, left out, replaced, or swapped with the next one.
int edit_distance(std::string_view a, std::string_view b);

// 'name', cut where it is very long.
std::string quoted(std::string_view name);

bool is_utf8(std::string_view text);

// Up to three of `candidates` that are close to `name`, as ". Did you mean a, b?", or "".
template <class Names>
std::string near_names(std::string_view name, const Names& candidates) {
  constexpr size_t kLongest = 64;  // of names worth comparing
  std::vector<std::pair<int, std::string_view>> near;
  if (name.size() > kLongest) return "";
  const int limit = std::max<int>(2, static_cast<int>(name.size()) / 3);
  for (const auto& candidate : candidates) {
    const std::string_view text(candidate);
    if (text.size() > name.size() + limit || name.size() > text.size() + limit) continue;
    const int distance = edit_distance(name, text);
    if (distance <= limit) near.emplace_back(distance, text);
  }
  std::sort(near.begin(), near.end());
  if (near.size() > 3) near.resize(3);
  std::string out;
  for (const auto& [distance, text] : near) {
    out += (out.empty() ? ". Did you mean " : ", ") + std::string(text);
  }
  return out.empty() ? out : out + "?";
}

}  // namespace caffe2
