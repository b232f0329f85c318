#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace caffe2 {

namespace {

// Turns of a short wait before a thread goes to sleep: some tens of microseconds.
constexpr int kSpins = 2000;

thread_local bool inside_block = false;
thread_local bool is_worker = false;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

class ThreadPool::Crew {
 public:
  explicit Crew(int threads)
      : threads(threads > 0 ? threads : std::max(1, int(std::thread::hardware_concurrency()))),
        born(fork_count()) {}
  ~Crew() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
      arrivals_++;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(int blocks, Task task, void* context) {
    Job job{task, context, blocks};
    try {
      std::lock_guard lock(mutex_);
      start();
      jobs_.push_back(&job);
      arrivals_++;
    } catch (const std::bad_alloc&) {
      // Nobody else hears of it; the caller does it all.
    }
    wake_.notify_all();
    work(job);
    {
      std::lock_guard lock(mutex_);
      std::erase(jobs_, &job);  // who has not joined by now need not
    }
    for (int spin = 0; spin < kSpins && job.joined != 0; spin++) relax();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return job.joined == 0; });
  }

  void offer(std::function<void()> work) {
    {
      std::lock_guard lock(mutex_);
      start();
      offers_.push_back(std::move(work));
      arrivals_++;
    }
    wake_.notify_one();
  }

  const int threads;
  const int born;  // fork_count() of the process that has the threads

 private:
  struct Job {
    Task task;
    void* context;
    int blocks;
    std::atomic<int> next{0};
    std::atomic<int> joined{0};  // workers inside; changed under mutex_
  };

  static void work(Job& job) {
    const bool outer = inside_block;
    inside_block = true;
    for (int i; (i = job.next.fetch_add(1, std::memory_order_relaxed)) < job.blocks;) {
      job.task(job.context, i);
    }
    inside_block = outer;
  }

  void start() {
    try {
      while (static_cast<int>(workers_.size()) < threads - 1) {
        workers_.emplace_back([this] { worker(); });
      }
    } catch (const std::exception&) {
      // The system gives no more threads: the callers and those that exist do the work.
    }
  }

  void worker() {
    is_worker = true;
    std::unique_lock lock(mutex_);
    while (true) {
      const uint64_t seen = arrivals_;
      if (stop_) return;
      const auto open = std::find_if(jobs_.begin(), jobs_.end(),
                                     [](Job* job) { return job->next < job->blocks; });
      if (open != jobs_.end()) {
        Job& job = **open;
        job.joined++;
        lock.unlock();
        work(job);
        lock.lock();
        if (--job.joined == 0) done_.notify_all();
      } else if (!offers_.empty()) {
        const std::function<void()> offered = std::move(offers_.front());
        offers_.pop_front();
        lock.unlock();
        offered();
        lock.lock();
      } else {
        lock.unlock();
        for (int spin = 0; spin < kSpins && arrivals_ == seen; spin++) relax();
        lock.lock();
        wake_.wait(lock, [&] { return arrivals_ != seen; });
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<Job*> jobs_;
  std::deque<std::function<void()>> offers_;
  std::atomic<uint64_t> arrivals_{0};  // raised under mutex_ for whatever a worker should look at
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

ThreadPool::ThreadPool(int threads) : crew_(std::make_shared<Crew>(threads)) {}

ThreadPool::~ThreadPool() { crew(); }

int ThreadPool::threads() const { return crew()->threads; }

std::shared_ptr<ThreadPool::Crew> ThreadPool::crew() const {
  std::lock_guard lock(mutex_);
  if (crew_->born != fork_count()) {
    // Its threads do not exist here, and its mutex may be locked for ever: it is left as it is.
    new std::shared_ptr<Crew>(crew_);
    crew_ = std::make_shared<Crew>(crew_->threads);
  }
  return crew_;
}

void ThreadPool::resize(int threads) {
  if (is_worker) {
    fail(Code::kFailedPrecondition, "the number of threads cannot be changed by one of them");
  }
  std::shared_ptr<Crew> old = crew();
  {
    auto fresh = std::make_shared<Crew>(threads);
    std::lock_guard lock(mutex_);
    crew_ = std::move(fresh);
  }
  // Who is at work holds the old crew; nobody new can get it. Its end has to come here: a thread
  // that ended it while it holds a lock would wait for workers that wait for this lock.
  while (old.use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void ThreadPool::run(int blocks, Task task, void* context) {
  if (blocks > 1 && !inside_block) {
    const std::shared_ptr<Crew> now = crew();
    if (now->threads > 1) return now->run(blocks, task, context);
  }
  for (int i = 0; i < blocks; i++) task(context, i);
}

void ThreadPool::offer(std::function<void()> work) {
  const std::shared_ptr<Crew> now = crew();
  if (now->threads > 1) now->offer(std::move(work));
}

}  // namespace caffe2
