// Any bytes as any message: no crash, bounded memory, and what was written reads back the same.
//
// The first byte of the input chooses the message, the others are its wire form.
#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/messages.h"

namespace {

using namespace caffe2;

int64_t live_bytes = 0;
int64_t peak_bytes = 0;

void on_malloc(const volatile void*, size_t size) {
  live_bytes += static_cast<int64_t>(size);
  peak_bytes = std::max(peak_bytes, live_bytes);
}

void on_free(const volatile void* pointer) {
  live_bytes -= static_cast<int64_t>(__sanitizer_get_allocated_size(const_cast<void*>(pointer)));
}

void require(bool condition) {
  if (!condition) std::abort();
}

// Small, so that the fuzzer can reach them.
ParseOptions limits(bool borrow) {
  ParseOptions options;
  options.max_operators = 100;
  options.memory_base = 4 << 10;
  options.memory_factor = 8;
  options.borrow = borrow;
  return options;
}

// What is read from `input`, written again; raises Error.
template <class Message>
std::string rewrite(std::string_view input, const ParseOptions& options) {
  const uint64_t allowed = options.memory_base + options.memory_factor * input.size();
  const int64_t before = peak_bytes = live_bytes;
  // Whatever happens; the text of an error takes less than the constant.
  struct Check {
    int64_t limit;
    ~Check() { require(peak_bytes <= limit); }
  };
  Message message;
  {
    const Check check{before + static_cast<int64_t>(3 * allowed) + 4096};
    message = parse<Message>(input, options);
  }
  return serialize(message);
}

template <class Message>
void check(std::string_view input) {
  std::string written[2];
  bool taken[2] = {false, false};
  for (const bool borrow : {false, true}) {
    try {
      written[borrow] = rewrite<Message>(input, limits(borrow));
      taken[borrow] = true;
    } catch (const Error& error) {
      require(error.code() == Code::kInvalidArgument);
    }
  }
  // What is borrowed takes no memory, so only the limit on memory can tell the two apart.
  require(taken[true] || !taken[false]);
  if (!taken[true]) return;
  if (taken[false]) require(written[true] == written[false]);

  // Written messages are shorter than what they were read from; they still take as much memory.
  ParseOptions options = limits(false);
  options.memory_base = uint64_t{1} << 30;
  require(rewrite<Message>(written[true], options) == written[true]);
}

// The numbers of a tensor are decoded late, so they have to be right after reading.
void decode(std::string_view input) {
  try {
    const auto tensor = parse<TensorProto>(input, limits(true));
    require(tensor.float_data.values().size() == tensor.float_data.size());
    require(tensor.int32_data.values().size() == tensor.int32_data.size());
    require(tensor.int64_data.values().size() == tensor.int64_data.size());
    require(tensor.double_data.values().size() == tensor.double_data.size());
  } catch (const Error& error) {
    require(error.text().find(" at byte ") != std::string::npos);
    require(error.text().rfind(" at byte ", 0) != 0);  // raised by parse, which names a message
  }
}

using Checker = void (*)(std::string_view);
// Their order is that of make_seeds.py.
constexpr Checker kCheckers[] = {
    check<Argument>,     check<BlobProto>,   check<DeviceOption>, check<ExecutionStep>,
    check<ModelDef>,     check<NetDef>,      check<OperatorDef>,  check<PlanDef>,
    check<QTensorProto>, check<TensorProto>, check<TensorProtos>, decode,
};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0 ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  kCheckers[data[0] % std::size(kCheckers)](input);
  return 0;
}
