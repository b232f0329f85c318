// What has to be whole in the child of a fork, where only the thread that forked goes on.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>

namespace caffe2 {

// How many forks this process is away from the one that loaded the library.
int fork_count();

// A mutex that the forking thread holds during the fork: no other thread is then in the middle of
// what it guards, and in the child it is free. No lock of the host is waited for while it is held.
class ForkMutex {
 public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  std::mutex& plain() { return mutex_; }  // for conditions

 private:
  friend class ForkMutexes;
  std::mutex mutex_;
  ForkMutex *before_ = nullptr, *after_ = nullptr;  // in the list of all
};

// A condition that knows nothing of threads that waited for it before a fork.
class ForkCondition {
 public:
  ~ForkCondition() {
    if (forked()) (void)condition_.release();  // its end would wait for them
  }
  // With its mutex held.
  std::condition_variable& get() {
    if (forked()) {
      (void)condition_.release();
      condition_ = std::make_unique<std::condition_variable>();
      born_ = fork_count();
    }
    return *condition_;
  }

 private:
  bool forked() const { return born_ != fork_count(); }

  int born_ = fork_count();
  std::unique_ptr<std::condition_variable> condition_ = std::make_unique<std::condition_variable>();
};

}  // namespace caffe2
