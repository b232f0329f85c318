// What the workspaces of one engine share: memory, threads, and the kernels of this CPU.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancellation.h"
#include "core/tensor.h"
#include "core/thread_pool.h"
#include "kernels/kernels.h"

namespace caffe2 {

struct EngineOptions {
  int threads = 0;           // 0: as many as the machine has cores
  std::string isa = "auto";  // or a name that kernels::isa_name gives
  size_t memory_limit = 0;   // bytes, as Allocator::set_limit takes them
  std::string kernels = "";  // "Conv:IM2COL,FC:REFERENCE": the kernel of all operators of a type
};

// Buffers that operators borrow for one run. Few and large: the next taker gets a used one.
class ScratchPool {
 public:
  explicit ScratchPool(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) {}
  std::unique_ptr<Storage> take(size_t bytes);
  void give(std::unique_ptr<Storage> buffer);
  void release_free();  // what nobody borrows at the moment

 private:
  std::shared_ptr<Allocator> allocator_;
  ForkMutex mutex_;
  std::vector<std::unique_ptr<Storage>> free_;
};

class Engine {
 public:
  explicit Engine(const EngineOptions& options = {});
  ~Engine();

  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  ScratchPool& scratch() { return scratch_; }
  ThreadPool& pool() { return pool_; }
  const kernels::Table& kernels() const { return *kernels_; }
  kernels::Isa isa() const { return isa_; }

  // The kernel that all operators of a type are to use, whatever they ask for; "" when none is.
  std::string_view forced_kernel(std::string_view op_type) const;

  HostHooks& hooks() { return hooks_; }

  // The pool in the form that kernels take.
  kernels::Parallel parallel();

 private:
  std::shared_ptr<Allocator> allocator_;
  ScratchPool scratch_;
  ThreadPool pool_;
  HostHooks hooks_;
  kernels::Isa isa_;
  const kernels::Table* kernels_;
  const std::map<std::string, std::string, std::less<>> forced_;
};

}  // namespace caffe2
