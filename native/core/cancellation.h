// Stopping a run from outside: by a call, by the user's interrupt, or because a sibling failed.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.h"

namespace caffe2 {

class Database;
enum class DatabaseMode;

// What the engine asks of its host and tells it. All may be empty.
struct HostHooks {
  std::function<bool()> interrupted;                 // asked now and then by the calling thread
  std::function<void(const std::string&)> on_stall;  // told once per wait that lasts too long
  std::atomic<double> stall_seconds = 0;             // 0: never
  // Text for people, one line or more, without a last line break; standard error where empty.
  std::function<void(const std::string&)> print;
  // Of a type that the engine does not know; nullptr when the host does not, either.
  std::function<std::shared_ptr<Database>(const std::string& type, const std::string& path,
                                          DatabaseMode mode)>
      open_database;
};

// One run, or a part of one: cancelled itself or with the run it belongs to.
class Cancellation {
 public:
  // The outermost run. The host is asked by the thread that makes this one, and by no other.
  explicit Cancellation(const HostHooks& hooks) : hooks_(hooks), parent_(nullptr) {}
  explicit Cancellation(Cancellation& parent) : hooks_(parent.hooks_), parent_(&parent) {}
  Cancellation& operator=(const Cancellation&) = delete;

  void cancel() { cancelled_.store(true, std::memory_order_release); }
  bool cancelled() const {
    return cancelled_.load(std::memory_order_acquire) || (parent_ && parent_->cancelled());
  }

  // Between steps, with no lock held. Raises Error(kCancelled). Asks the host, at most every
  // kPeriod.
  void poll();
  void require() const {
    if (cancelled()) fail(Code::kCancelled, "the run was cancelled");
  }

  // Waits until ready(), which is called with the lock held. Raises Error(kCancelled) when the run
  // is cancelled meanwhile. `what` says who waits for what, in reports of stalls.
  template <class Ready, class What>
  void wait(std::condition_variable& condition, std::unique_lock<std::mutex>& lock,
            const Ready& ready, const What& what) {
    const auto begin = Clock::now();
    bool reported = false;
    while (!ready()) {
      condition.wait_for(lock, kPeriod);
      if (ready()) break;
      lock.unlock();  // the host's own lock comes before ours
      poll();
      if (!reported && stalled_since(begin)) {
        reported = true;
        hooks_.on_stall(what());
      }
      lock.lock();
    }
  }

  static constexpr std::chrono::milliseconds kPeriod{20};

 private:
  using Clock = std::chrono::steady_clock;
  bool stalled_since(Clock::time_point begin) const {
    const double limit = hooks_.stall_seconds;
    return hooks_.on_stall && limit > 0 &&
           Clock::now() - begin > std::chrono::duration<double>(limit);
  }

  void ask_host();

  const HostHooks& hooks_;
  Cancellation* const parent_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<bool> cancelled_{false};
  Clock::time_point asked_ = Clock::now();
};

// What a run hands to its operators.
struct RunContext {
  static constexpr int kMaxDepth = 64;  // nets that run inside operators of other nets

  Cancellation& cancellation;
  int depth = 0;
};

}  // namespace caffe2
