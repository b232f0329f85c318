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

// How long a thread looks out for work, or for the end of its own, before it goes to sleep: longer
// than what lies between two operators, and than waking takes.
constexpr std::chrono::microseconds kPatience(200);

thread_local bool inside_block = false;
thread_local bool is_worker = false;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Looks at `ready` for a while; whether it came true.
template <class Ready>
bool watch(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < 16; i++) {
      if (ready()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

// For sections of a few instructions: a mutex would put the second thread to sleep.
class SpinLock {
 public:
  void lock() {
    for (int turn = 1; held_.exchange(true, std::memory_order_acquire); turn++) {
      if (turn % 64 == 0) std::this_thread::yield();
      relax();
    }
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

// Where threads sleep until something they watched has changed.
class Bed {
 public:
  // `ready` must become true before wake_all() is called.
  template <class Ready>
  void sleep_until(const Ready& ready) {
    std::unique_lock lock(mutex_);
    sleepers_++;
    wake_.wait(lock, ready);
    sleepers_--;
  }
  void wake_all() {
    if (sleepers_ == 0) return;
    {
      std::lock_guard lock(mutex_);
    }
    wake_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};  // changed under mutex_
};

}  // namespace

class ThreadPool::Crew {
 public:
  explicit Crew(int threads)
      : threads(threads > 0 ? threads : std::max(1, int(std::thread::hardware_concurrency()))),
        born(fork_count()) {}
  ~Crew() {
    stop_ = true;
    announce();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(int blocks, Task task, void* context) {
    start();
    Job job{task, context, blocks};
    {
      std::lock_guard lock(lock_);
      job.others = jobs_;
      jobs_ = &job;
    }
    announce();
    work(job);
    {
      std::lock_guard lock(lock_);  // who has not joined by now need not
      Job** place = &jobs_;
      while (*place != &job) place = &(*place)->others;
      *place = job.others;
    }
    const auto done = [&] { return job.joined == 0; };
    if (!watch(done)) callers_.sleep_until(done);
  }

  void offer(std::function<void()> work) {
    start();
    {
      std::lock_guard lock(lock_);
      offers_.push_back(std::move(work));
    }
    announce();
  }

  const int threads;
  const int born;  // fork_count() of the process that has the threads

 private:
  struct Job {
    Task task;
    void* context;
    int blocks;
    Job* others = nullptr;  // the list goes on
    std::atomic<int> next{0};
    std::atomic<int> joined{0};  // workers inside; raised under lock_
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
    if (started_) return;
    std::lock_guard lock(starting_);
    if (started_) return;
    try {
      while (static_cast<int>(workers_.size()) < threads - 1) {
        workers_.emplace_back([this] { worker(); });
      }
    } catch (const std::exception&) {
      // The system gives no more threads: the callers and those that exist do the work.
    }
    started_ = true;
  }

  // There is something new to look at.
  void announce() {
    arrivals_++;
    idle_.wake_all();
  }

  Job* join() {
    std::lock_guard lock(lock_);
    Job* job = jobs_;
    while (job && job->next >= job->blocks) job = job->others;
    if (job) job->joined++;
    return job;
  }

  std::function<void()> take_offer() {
    std::lock_guard lock(lock_);
    if (offers_.empty()) return nullptr;
    std::function<void()> offer = std::move(offers_.front());
    offers_.pop_front();
    return offer;
  }

  void worker() {
    is_worker = true;
    while (true) {
      const uint64_t seen = arrivals_;
      if (stop_) return;
      if (Job* job = join()) {
        work(*job);
        if (--job->joined == 0) callers_.wake_all();  // the job may be gone already
      } else if (const std::function<void()> offer = take_offer()) {
        offer();
      } else {
        const auto news = [&] { return arrivals_ != seen; };
        if (!watch(news)) idle_.sleep_until(news);
      }
    }
  }

  SpinLock lock_;  // guards the next two
  Job* jobs_ = nullptr;
  std::deque<std::function<void()>> offers_;
  std::atomic<uint64_t> arrivals_{0};
  std::atomic<bool> stop_{false}, started_{false};
  Bed idle_, callers_;
  std::mutex starting_;
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
