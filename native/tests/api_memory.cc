// The C API, used from C++, while the n-th allocation fails: for each n a clean error comes out.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <new>

#include "api_testing.h"

namespace {

std::atomic<long> allocations = 0;  // so far in this round
std::atomic<long> failing = 0;      // which one fails

void* allocate(std::size_t size) {
  if (++allocations == failing) return nullptr;
  return std::malloc(size > 0 ? size : 1);
}

// Whether to go on: the call did well, or there was no memory.
bool done(caffe2_code code) {
  if (code != CAFFE2_OK) CHECK_GIVES(CAFFE2_OUT_OF_MEMORY, "no memory left", code);
  return code == CAFFE2_OK;
}

bool run_workspace(caffe2_workspace* w) {
  Message net = make_net("net", "", "");
  add_operator(&net, "Relu", "x", "y");
  add_operator(&net, "Sum", "x y", "z");
  float values[4] = {1, -2, 3, -4};
  const caffe2_tensor x = {sizeof x, CAFFE2_FLOAT, 1, {4}, values, sizeof values};
  std::size_t bytes = 0;
  return done(caffe2_workspace_set_random_seed(w, 1, &error)) &&
         done(caffe2_workspace_create_blob(w, "a name too long to be kept inside", &error)) &&
         done(caffe2_workspace_feed(w, "x", &x, &error)) &&
         done(caffe2_workspace_create_net(w, net.data, net.size, 0, &error)) &&
         done(caffe2_workspace_run_net(w, "net", &error)) &&
         done(caffe2_workspace_run_net_once(w, net.data, net.size, &error)) &&
         done(caffe2_workspace_fetch(w, "z", values, sizeof values, nullptr, &error)) &&
         done(caffe2_workspace_blob_names(w, nullptr, 0, &bytes, &error)) &&
         done(caffe2_workspace_net_names(w, nullptr, 0, &bytes, &error)) &&
         done(caffe2_workspace_remove_blob(w, "y", &error)) &&
         done(caffe2_workspace_delete_net(w, "net", &error)) &&
         done(caffe2_workspace_reset(w, &error));
}

bool run_predictor(caffe2_predictor* p) {
  const float values[] = {1, -1};
  const caffe2_tensor x = {sizeof x, CAFFE2_FLOAT, 2, {1, 2}, values, sizeof values};
  caffe2_tensor y = CAFFE2_TENSOR_INIT;
  return done(caffe2_predictor_feed(p, "x", &x, &error)) && done(caffe2_predictor_run(p, &error)) &&
         done(caffe2_predictor_view(p, "y", &y, &error)) &&
         static_cast<const float*>(y.data)[0] == -0.5F;
}

// Operators side by side, two of which wait for each other on threads of their own.
bool run_dag(caffe2_workspace* w) {
  Message queue = make_net("", "", "");
  add_operator(&queue, "CreateBlobsQueue", "", "queue");
  Message net = make_net("dag", "", "");
  put_text(&net, 3, "dag");
  add_operator(&net, "DequeueBlobs", "queue", "taken");
  add_operator(&net, "Relu", "x", "a");
  add_operator(&net, "Relu", "x", "b");
  add_operator(&net, "Relu", "x", "c");
  add_operator(&net, "Sum", "a b", "d");
  add_operator(&net, "Sum", "c d", "given");
  add_operator(&net, "EnqueueBlobs", "queue given", "given");
  const float values[4] = {1, -2, 3, -4};
  const caffe2_tensor x = {sizeof x, CAFFE2_FLOAT, 1, {4}, values, sizeof values};
  float taken[4] = {};
  return done(caffe2_workspace_feed(w, "x", &x, &error)) &&
         done(caffe2_workspace_run_net_once(w, queue.data, queue.size, &error)) &&
         done(caffe2_workspace_run_net_once(w, net.data, net.size, &error)) &&
         done(caffe2_workspace_fetch(w, "taken", taken, sizeof taken, nullptr, &error)) &&
         taken[0] == 3 && taken[1] == 0;
}

bool run_all(int threads) {
  caffe2_engine_options options = CAFFE2_ENGINE_OPTIONS_INIT;
  options.threads = threads;
  caffe2_engine* engine = nullptr;
  caffe2_workspace* workspace = nullptr;
  caffe2_predictor* predictor = nullptr;
  const bool well = done(caffe2_engine_create(&options, &engine, &error)) &&
                    done(caffe2_workspace_create(engine, &workspace, &error)) &&
                    run_workspace(workspace) && run_dag(workspace) &&
                    done(caffe2_predictor_create(engine, kInitNet, sizeof kInitNet, kPredictNet,
                                                 sizeof kPredictNet, &predictor, &error)) &&
                    run_predictor(predictor);
  caffe2_predictor_free(predictor);
  caffe2_workspace_free(workspace);
  caffe2_engine_free(engine);
  return well;
}

}  // namespace

void* operator new(std::size_t size) {
  void* const pointer = allocate(size);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

int main() {
  constexpr long kFar = 100000;
  for (const int threads : {1, 3}) {
    bool met = true;
    for (failing = 1; met && failing < kFar; failing++) {
      allocations = 0;
      const bool well = run_all(threads);
      met = allocations >= failing;
      // Who met the failure said so; only that no other thread helps is no error.
      CHECK(well == !met || (well && threads > 1));
    }
    CHECK(!met && failing > 100);
    std::printf("%d threads: %ld failing allocations\n", threads, failing - 2);
  }
  return failed_checks > 0;
}
