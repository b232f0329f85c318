#include "core/fork.h"

#include <pthread.h>

#include <atomic>
#include <thread>

namespace caffe2 {

class ForkMutexes {
 public:
  static ForkMutexes& all() {
    static auto* mutexes = new ForkMutexes;  // never destroyed: the handlers stay
    return *mutexes;
  }

  void add(ForkMutex& mutex) {
    std::lock_guard lock(mutex_);
    mutex.after_ = first_;
    if (first_ != nullptr) first_->before_ = &mutex;
    first_ = &mutex;
  }

  void remove(ForkMutex& mutex) {
    std::lock_guard lock(mutex_);
    (mutex.before_ != nullptr ? mutex.before_->after_ : first_) = mutex.after_;
    if (mutex.after_ != nullptr) mutex.after_->before_ = mutex.before_;
  }

  int forks() const { return forks_; }

 private:
  ForkMutexes() {
    pthread_atfork([] { all().hold(); }, [] { all().release(nullptr); },
                   [] {
                     all().forks_++;
                     all().release(nullptr);
                   });
  }

  // All of them, or none for a moment: those who hold one may wait for another.
  void hold() {
    while (true) {
      mutex_.lock();
      ForkMutex* mutex = first_;
      while (mutex != nullptr && mutex->mutex_.try_lock()) mutex = mutex->after_;
      if (mutex == nullptr) return;
      release(mutex);
      std::this_thread::yield();
    }
  }
  // Those before `end`.
  void release(const ForkMutex* end) {
    for (ForkMutex* mutex = first_; mutex != end; mutex = mutex->after_) mutex->unlock();
    mutex_.unlock();
  }

  std::mutex mutex_;  // of the list
  ForkMutex* first_ = nullptr;
  std::atomic<int> forks_{0};
};

int fork_count() { return ForkMutexes::all().forks(); }

ForkMutex::ForkMutex() { ForkMutexes::all().add(*this); }

ForkMutex::~ForkMutex() { ForkMutexes::all().remove(*this); }

}  // namespace caffe2
