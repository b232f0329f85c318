// Any bytes as a minidb: its records as blobs, as parts of blobs and as data sets. No crash, and no
// more memory than the file can justify.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/database.h"
#include "core/engine.h"
#include "core/serialize.h"

namespace {

using namespace caffe2;

void require(bool condition) {
  if (!condition) std::abort();
}

// Runs `step`; whether it raised Error.
template <class Step>
bool refused(const Step& step) {
  try {
    step();
    return false;
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Element types take at most 16 times what they take in a file (texts), plus some for each blob.
  static Engine engine({.threads = 1, .memory_limit = 64 << 20});
  static const int file = memfd_create("minidb", 0);
  require(file >= 0 && ftruncate(file, 0) == 0);
  require(pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  refused([&] {
    DatabaseReader reader(open_database({}, "minidb", path, DatabaseMode::kRead), path, 1, 0);
    BlobAssembler assembler(engine);
    bool joining = true;
    Cancellation cancellation(engine.hooks());
    reader.read_all(cancellation, [&](std::string_view key, std::string_view value) {
      require(key.size() + value.size() <= size && name_of_key(key).size() <= key.size());
      refused([&] { deserialize_blob(value, engine); });
      if (joining) joining = !refused([&] { assembler.add(value); }) && !assembler.complete();
      refused([&] {
        const auto items = parse<TensorProtos>(value);
        for (const TensorProto& proto : items.protos) {
          const TensorItem item(proto);
          if (item.type() == DataType::kString) continue;
          Tensor tensor(engine.allocator(), item.shape(), item.type());
          item.copy_to(tensor.raw_mutable_data());
        }
      });
      return true;
    });
    assembler.missing_text();
    reader.read(cancellation);
  });
  return 0;
}
