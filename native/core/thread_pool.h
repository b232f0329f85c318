// The engine's one pool of threads. Work comes as numbered blocks whose division never depends on
// the number of threads, so results do not either.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace caffe2 {

class ThreadPool {
 public:
  using Task = void (*)(void* context, int block);  // must not throw

  // threads: the caller included; 0 takes what the machine has.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  // Waits for the work in hand, then changes the number.
  void resize(int threads);

  // Calls task(context, i) once for each i in [0, blocks) and returns when all are done. The caller
  // works too. Nested calls, and calls while another thread uses the pool, run on the caller alone.
  void run(int blocks, Task task, void* context);

 private:
  struct Job {
    Task task;
    void* context;
    int blocks;
    std::atomic<int> next{0};
    std::atomic<int> joined{0};  // workers inside; changed under mutex_
  };

  static void work(Job& job);
  void start();
  void stop();
  void worker();

  std::atomic<int> threads_;
  std::mutex busy_;  // held by the thread whose job runs
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;
  std::atomic<uint64_t> generation_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace caffe2
