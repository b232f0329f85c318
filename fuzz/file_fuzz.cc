// Any bytes as a file: a model that is mapped and serves, or else a net, binary or text. It is
// refused, or made and run within bounds of memory and time, and leaves nothing behind.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include "core/model.h"
#include "core/text.h"
#include "random_nets.h"

using namespace caffe2;

namespace {

// As whoever gets a file without a name does: what is no message may be text.
NetDef read(std::string_view file) {
  ParseOptions options;
  options.max_operators = 1000;
  try {
    return parse<NetDef>(file, options);
  } catch (const Error&) {
    return parse_net_text(file);
  }
}

// An input that the net asks for; its name decides what it is.
void feed(const std::string& name, Workspace& workspace) {
  const size_t hash = std::hash<std::string>()(name);
  const Shape shapes[] = {{1, 3, 8, 8}, {4}, {2, 4}, {3, 3, 3, 3}, {}, {0, 4}, {1, 3}};
  const DataType types[] = {DataType::kFloat, DataType::kFloat, DataType::kInt32, DataType::kInt64};
  Tensor tensor(workspace.engine().allocator(), shapes[hash % std::size(shapes)],
                types[hash / 16 % std::size(types)]);
  auto* bytes = static_cast<uint8_t*>(tensor.raw_mutable_data());
  std::memset(bytes, 0, tensor.bytes());
  const size_t width = type_size(tensor.type());
  for (size_t i = 0; i < tensor.bytes(); i += width) bytes[i] = static_cast<uint8_t>(i / width % 3);
  workspace.create_blob(name)->set(std::move(tensor));
}

void serve(NetDef net, Workspace& workspace, NetOptions options) {
  if (!net.name || net.name->empty()) net.name = "net";
  for (const std::string& name : net.external_input) {
    if (!workspace.find_blob(name)) feed(name, workspace);
  }
  const auto compiled = workspace.create_net(std::move(net), {}, true, options);
  compiled->run();
  compiled->run();
}

// Ends well or with an Error. Whether the file is a model, whatever came of it.
bool serve_mapped(const uint8_t* data, size_t size, Workspace& workspace) {
  static const int file = memfd_create("model", 0);
  if (file < 0 || ftruncate(file, 0) != 0 ||
      pwrite(file, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  std::unique_ptr<ModelFile> model;
  try {
    model = std::make_unique<ModelFile>("/proc/self/fd/" + std::to_string(file));
  } catch (const Error&) {
    return false;
  }
  NetDef predict = parse<NetDef>(serialize(model->predict()));
  model->run_init(workspace);
  model.reset();  // tensors keep what they need of it
  serve(std::move(predict), workspace, {.hide_intermediates = true, .own_inputs = true});
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::Sandbox sandbox(1);
  try {
    const auto workspace = sandbox.workspace();
    if (!serve_mapped(data, size, *workspace)) {
      serve(read({reinterpret_cast<const char*>(data), size}), *workspace, {});
    }
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
  sandbox.engine->scratch().release_free();
  if (sandbox.engine->allocator()->used() != 0) std::abort();
  return 0;
}
