// Any bytes as the file of a net, binary or text: it is refused, or made and run within bounds of
// memory and time, and leaves nothing behind.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <string_view>

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::Sandbox sandbox(1);
  try {
    const auto workspace = sandbox.workspace();
    NetDef net = read({reinterpret_cast<const char*>(data), size});
    if (!net.name || net.name->empty()) net.name = "net";
    for (const std::string& name : net.external_input) feed(name, *workspace);
    const auto compiled = workspace->create_net(net, {}, true);
    compiled->run();
    compiled->run();
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
  sandbox.engine->scratch().release_free();
  if (sandbox.engine->allocator()->used() != 0) std::abort();
  return 0;
}
