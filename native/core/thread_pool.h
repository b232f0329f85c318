// The engine's one pool of threads, for work inside operators and between them. Work inside comes
// as numbered blocks whose division never depends on the number of threads, so results do not
// either.
#pragma once
#include <functional>
#include <memory>

#include "core/fork.h"

namespace caffe2 {

class ThreadPool {
 public:
  using Task = void (*)(void* context, int block);  // must not throw

  // threads: the caller included; 0 takes what the machine has. None is started before it is
  // needed.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;
  // Waits for the work in hand, then changes the number. Refused on a thread of the pool.
  void resize(int threads);

  // Calls task(context, i) once for each i in [0, blocks) and returns when all are done. The caller
  // works too, so this never waits for a free thread. Calls from inside a block run serially.
  void run(int blocks, Task task, void* context);

  // Runs `work` on a pool thread as soon as one is free; maybe never, when there are none. It must
  // neither throw nor wait.
  void offer(std::function<void()> work);

 private:
  class Crew;
  // The present crew; a new one in the child of a fork, where the threads of the old are gone.
  std::shared_ptr<Crew> crew() const;

  mutable ForkMutex mutex_;
  mutable std::shared_ptr<Crew> crew_;
};

}  // namespace caffe2
