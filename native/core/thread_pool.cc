#include "core/thread_pool.h"

#include <algorithm>
#include <system_error>

namespace caffe2 {

namespace {

// Turns of a short wait before a thread goes to sleep: some tens of microseconds.
constexpr int kSpins = 2000;

thread_local bool inside_job = false;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int resolve(int threads) {
  if (threads > 0) return threads;
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(resolve(threads)) {}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::resize(int threads) {
  std::lock_guard busy(busy_);
  stop();
  threads_ = resolve(threads);
}

void ThreadPool::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  stop_ = false;
}

void ThreadPool::work(Job& job) {
  const bool outer = inside_job;
  inside_job = true;
  for (int i; (i = job.next.fetch_add(1, std::memory_order_relaxed)) < job.blocks;) {
    job.task(job.context, i);
  }
  inside_job = outer;
}

void ThreadPool::start() {
  try {
    while (static_cast<int>(workers_.size()) < threads_ - 1) {
      workers_.emplace_back([this] { worker(); });
    }
  } catch (const std::system_error&) {
    // The system gives no more threads: the caller and those that exist do the work.
  }
}

void ThreadPool::run(int blocks, Task task, void* context) {
  std::unique_lock<std::mutex> busy(busy_, std::defer_lock);
  if (threads_ == 1 || blocks <= 1 || inside_job || !busy.try_lock()) {
    for (int i = 0; i < blocks; i++) task(context, i);
    return;
  }
  start();
  Job job{task, context, blocks};
  {
    std::lock_guard lock(mutex_);
    job_ = &job;
    generation_++;
  }
  wake_.notify_all();
  work(job);
  {
    std::lock_guard lock(mutex_);
    job_ = nullptr;  // who has not joined by now need not
  }
  for (int spin = 0; spin < kSpins && job.joined != 0; spin++) relax();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return job.joined == 0; });
}

void ThreadPool::worker() {
  uint64_t seen = 0;
  while (true) {
    for (int spin = 0; spin < kSpins && generation_ == seen && !stop_; spin++) relax();
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stop_ || generation_ != seen; });
    if (stop_) return;
    seen = generation_;
    Job* job = job_;
    if (job == nullptr) continue;
    job->joined++;
    lock.unlock();
    work(*job);
    lock.lock();
    if (--job->joined == 0) done_.notify_one();
  }
}

}  // namespace caffe2
