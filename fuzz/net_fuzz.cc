// Random nets of all operators on random blobs: they run or fail with an error, within bounds of
// memory and time, and leave nothing behind.
#include <cstdint>
#include <cstdlib>
#include <new>

#include "random_nets.h"

using namespace caffe2;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Sandbox sandbox(2);
  fuzz::Bytes in(data, size);
  {
    const auto workspace = sandbox.workspace();
    fuzz::feed(in, *workspace, sandbox);
    const NetDef net = fuzz::random_net(in, 0);
    try {
      const auto compiled = workspace->create_net(net, {}, true);
      compiled->run();
      compiled->run();
    } catch (const Error&) {
    } catch (const std::bad_alloc&) {
    }
  }
  sandbox.engine->scratch().release_free();
  if (sandbox.engine->allocator()->used() != 0) std::abort();
  return 0;
}
