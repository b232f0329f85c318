// The C API, used from C++, while the n-th allocation fails: for each n a clean error comes out.
#include <cstdio>
#include <cstdlib>
#include <new>

#include "api_testing.h"

namespace {

long allocations = 0;  // so far in this round
long failing = 0;      // which one fails

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

bool run_all() {
  caffe2_engine_options options = CAFFE2_ENGINE_OPTIONS_INIT;
  options.threads = 1;
  caffe2_engine* engine = nullptr;
  caffe2_workspace* workspace = nullptr;
  caffe2_predictor* predictor = nullptr;
  const bool well = done(caffe2_engine_create(&options, &engine, &error)) &&
                    done(caffe2_workspace_create(engine, &workspace, &error)) &&
                    run_workspace(workspace) &&
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
  bool well = false;
  for (failing = 1; !well && failing < kFar; failing++) {
    allocations = 0;
    well = run_all();
    CHECK(well == (allocations < failing));  // who met the failure said so
  }
  CHECK(well && failing > 100);
  std::printf("%ld failing allocations\n", failing - 2);
  return failed_checks > 0;
}
