#include "core/engine.h"

#include <algorithm>
#include <utility>

#include "core/schema.h"

namespace caffe2 {

std::unique_ptr<Storage> ScratchPool::take(size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const bool fits = (*it)->bytes() >= bytes;
      if (fits && (best == free_.end() || (*it)->bytes() < (*best)->bytes())) best = it;
    }
    if (best != free_.end()) {
      auto buffer = std::move(*best);
      free_.erase(best);
      return buffer;
    }
    // None is large enough: the one that grows out of use is the smallest.
    const auto smallest = std::min_element(
        free_.begin(), free_.end(), [](auto& a, auto& b) { return a->bytes() < b->bytes(); });
    if (smallest != free_.end()) free_.erase(smallest);
  }
  return std::make_unique<Storage>(allocator_, bytes);
}

void ScratchPool::give(std::unique_ptr<Storage> buffer) {
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(buffer));
}

void ScratchPool::release_free() {
  std::vector<std::unique_ptr<Storage>> free;
  std::lock_guard lock(mutex_);
  free.swap(free_);
}

namespace {

kernels::Isa resolve(const std::string& name) {
  kernels::Isa isa = kernels::best_isa();
  const bool any = name == "auto" || name.empty();
  if (!any && !kernels::isa_from_name(name.c_str(), &isa)) {
    fail(Code::kInvalidArgument, "unknown instruction set '", name, "'");
  }
  if (!kernels::supported(isa)) {
    fail(Code::kUnsupported, "this CPU or build lacks the instruction set '", name, "'");
  }
  return isa;
}

// "Type:KERNEL,...". A kernel that the operator does not know means its usual one, as with
// `engine`.
std::map<std::string, std::string, std::less<>> parse_forced(const std::string& text) {
  std::map<std::string, std::string, std::less<>> forced;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    const size_t colon = item.find(':');
    begin = end + 1;
    if (colon == std::string::npos) {
      fail(Code::kInvalidArgument, "'", item, "' names no kernel; it should read Type:KERNEL");
    }
    const std::string type = item.substr(0, colon), kernel = item.substr(colon + 1);
    if (!find_schema(type)) {
      fail(Code::kInvalidArgument, "'", item, "' names an unknown operator type");
    }
    forced[type] = kernel;
  }
  return forced;
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : allocator_(std::make_shared<Allocator>()),
      scratch_(allocator_),
      pool_(options.threads),
      isa_(resolve(options.isa)),
      kernels_(kernels::table(isa_)),
      forced_(parse_forced(options.kernels)) {
  allocator_->set_limit(options.memory_limit);
  allocator_->set_reclaim([this] { scratch_.release_free(); });
}

Engine::~Engine() {
  // Tensors that outlive the engine keep its allocator.
  allocator_->set_reclaim(nullptr);
}

std::string_view Engine::forced_kernel(std::string_view op_type) const {
  const auto it = forced_.find(op_type);
  return it == forced_.end() ? std::string_view() : it->second;
}

kernels::Parallel Engine::parallel() {
  return {pool_.threads(), &pool_,
          [](void* pool, int blocks, void (*task)(void*, int), void* context) {
            static_cast<ThreadPool*>(pool)->run(blocks, task, context);
          }};
}

}  // namespace caffe2
