#include "core/executor.h"

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace caffe2 {

namespace {

// Shared with the offers made to the pool, which may come to be looked at after the run is over.
class ParallelRun : public std::enable_shared_from_this<ParallelRun> {
 public:
  ParallelRun(const Steps& steps, const DependencyGraph& graph, ThreadPool& pool,
              RunContext& context)
      : steps_(steps),
        graph_(graph),
        pool_(pool),
        outer_(context),
        cancellation_(context.cancellation),
        waits_for_(graph.parents),
        ready_(steps.count),
        skipped_(steps.count),
        left_(steps.count) {
    // What happens on other threads must not fail for want of memory.
    int may_block = 0;
    for (int i = 0; i < steps.count; i++) may_block += steps.may_block(i);
    waiting_.reserve(may_block);
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < steps_.count; i++) {
      if (waits_for_[i] == 0) ready(i);
    }
    while (left_ > 0) {
      if (!ended_) poll(lock);
      if (work(lock)) continue;
      // Nothing is ready here; others are at work, or wait.
      if (left_ > 0) changed_.wait_for(lock, Cancellation::kPeriod);
    }
    over_ = true;
    // An offer may keep this object for a while; what the host raised must not end with it.
    const std::exception_ptr error = std::move(error_);
    lock.unlock();
    for (std::thread& thread : waiting_) thread.join();
    if (error) std::rethrow_exception(error);
  }

 private:
  // Each step comes once at most, so there is room from the beginning.
  class Line {
   public:
    explicit Line(int count) { steps_.reserve(count); }
    bool empty() const { return first_ == steps_.size(); }
    size_t size() const { return steps_.size() - first_; }
    void push(int step) { steps_.push_back(step); }
    int pop() { return steps_[first_++]; }

   private:
    std::vector<int> steps_;
    size_t first_ = 0;
  };

  // All of the following are called with the lock held.

  void poll(std::unique_lock<std::mutex>& lock) {
    std::exception_ptr error;
    lock.unlock();
    try {
      outer_.cancellation.poll();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) end(error);
  }

  void ready(int step) {
    if (steps_.may_block(step)) {
      start_thread(step);
      return;
    }
    ready_.push(step);
    changed_.notify_one();
    // One is for the thread that is here.
    if (ready_.size() <= 1 || !has_helpers_) return;
    try {
      pool_.offer([self = shared_from_this()] {
        std::unique_lock lock(self->mutex_);
        while (self->work(lock)) {
        }
      });
    } catch (const std::bad_alloc&) {
      // Nobody comes to help; those who are here do the work.
    }
  }

  void start_thread(int step) {
    try {
      try {
        waiting_.emplace_back([this, step] {
          std::unique_lock lock(mutex_);
          execute(step, lock);
        });
      } catch (const std::system_error&) {
        fail(Code::kUnsupported, "the system gives no thread for an operator that may wait");
      }
    } catch (...) {
      end(std::current_exception());
      finish(step);
    }
  }

  // Takes a ready step, if there is one.
  bool work(std::unique_lock<std::mutex>& lock) {
    if (over_ || ready_.empty()) return false;
    execute(ready_.pop(), lock);
    return true;
  }

  void execute(int step, std::unique_lock<std::mutex>& lock) {
    std::exception_ptr error;
    if (!ended_) {
      lock.unlock();
      try {
        RunContext context{cancellation_, outer_.depth};
        steps_.execute(step, context);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
    }
    if (error) end(error);
    finish(step);
  }

  void finish(int step) {
    left_--;
    for (const int child : graph_.children[step]) {
      if (--waits_for_[child] > 0) continue;
      if (ended_) {
        skipped_.push(child);
      } else {
        ready(child);
      }
    }
    // After the end nothing starts any more: what became free is done with at once.
    while (ended_ && !(skipped_.empty() && ready_.empty())) {
      const int next = skipped_.empty() ? ready_.pop() : skipped_.pop();
      left_--;
      for (const int child : graph_.children[next]) {
        if (--waits_for_[child] == 0) skipped_.push(child);
      }
    }
    if (left_ == 0) changed_.notify_all();
  }

  void end(std::exception_ptr error) {
    if (ended_) return;  // the first error counts; others follow from the cancellation
    ended_ = true;
    error_ = std::move(error);
    cancellation_.cancel();
  }

  const Steps& steps_;
  const DependencyGraph& graph_;
  ThreadPool& pool_;
  const bool has_helpers_ = pool_.threads() > 1;
  RunContext& outer_;
  Cancellation cancellation_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> waits_for_;
  Line ready_, skipped_;
  std::vector<std::thread> waiting_;
  int left_;
  bool ended_ = false;  // by an error
  bool over_ = false;   // run() has returned: nothing of the net may be touched
  std::exception_ptr error_;
};

}  // namespace

void run_parallel(const Steps& steps, const DependencyGraph& graph, ThreadPool& pool,
                  RunContext& context) {
  std::make_shared<ParallelRun>(steps, graph, pool, context)->run();
}

}  // namespace caffe2
