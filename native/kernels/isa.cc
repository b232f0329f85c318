// Which instruction sets this program holds kernels for, and which the processor has.
#include <cstring>
#include <initializer_list>

#include "kernels/int8.h"

#if defined(CAFFE2_KERNELS_neondot) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(CAFFE2_KERNELS_neondot) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace caffe2::kernels {

// The build defines CAFFE2_KERNELS_<ISA> for every instruction set it compiled kernels for.
#define CAFFE2_KERNELS_TABLE(isa)    \
  namespace isa {                    \
  extern const Table kTable;         \
  extern const Int8Table kInt8Table; \
  }
#ifdef CAFFE2_KERNELS_sse4
CAFFE2_KERNELS_TABLE(sse4)
#endif
#ifdef CAFFE2_KERNELS_avx2
CAFFE2_KERNELS_TABLE(avx2)
#endif
#ifdef CAFFE2_KERNELS_avx512
CAFFE2_KERNELS_TABLE(avx512)
#endif
#ifdef CAFFE2_KERNELS_neon
CAFFE2_KERNELS_TABLE(neon)
#endif
#ifdef CAFFE2_KERNELS_wasm
CAFFE2_KERNELS_TABLE(wasm)
#endif
#ifdef CAFFE2_KERNELS_generic
CAFFE2_KERNELS_TABLE(generic)
#endif
#ifdef CAFFE2_KERNELS_avx512vnni
CAFFE2_KERNELS_TABLE(avx512vnni)
#endif
#ifdef CAFFE2_KERNELS_neondot
CAFFE2_KERNELS_TABLE(neondot)
#endif
#undef CAFFE2_KERNELS_TABLE

const Table* table(Isa isa) {
  switch (isa) {
#ifdef CAFFE2_KERNELS_sse4
    case Isa::kSse4:
      return __builtin_cpu_supports("sse4.2") ? &sse4::kTable : nullptr;
#endif
#ifdef CAFFE2_KERNELS_avx2
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &avx2::kTable
                                                                             : nullptr;
#endif
#ifdef CAFFE2_KERNELS_avx512
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("fma")
                 ? &avx512::kTable
                 : nullptr;
#endif
#ifdef CAFFE2_KERNELS_neon
    case Isa::kNeon:
      return &neon::kTable;
#endif
#ifdef CAFFE2_KERNELS_wasm
    case Isa::kWasm:
      return &wasm::kTable;
#endif
#ifdef CAFFE2_KERNELS_generic
    case Isa::kGeneric:
      return &generic::kTable;
#endif
    default:
      return nullptr;
  }
}

namespace {
// The Int8 kernels with dot products of bytes, or null.
const Int8Table* dot_table(Isa isa) {
#ifdef CAFFE2_KERNELS_avx512vnni
  if (isa == Isa::kAvx512 && __builtin_cpu_supports("avx512vnni")) return &avx512vnni::kInt8Table;
#endif
#if defined(CAFFE2_KERNELS_neondot) && defined(__linux__)
  if (isa == Isa::kNeon && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) return &neondot::kInt8Table;
#elif defined(CAFFE2_KERNELS_neondot) && defined(__APPLE__)
  int there = 0;
  size_t size = sizeof there;
  if (isa == Isa::kNeon &&
      sysctlbyname("hw.optional.arm.FEAT_DotProd", &there, &size, nullptr, 0) == 0 && there != 0) {
    return &neondot::kInt8Table;
  }
#endif
  (void)isa;
  return nullptr;
}
}  // namespace

const Int8Table* int8_table(Isa isa, bool dot) {
  if (!supported(isa)) return nullptr;
  if (const Int8Table* found = dot ? dot_table(isa) : nullptr) return found;
  switch (isa) {
#ifdef CAFFE2_KERNELS_sse4
    case Isa::kSse4:
      return &sse4::kInt8Table;
#endif
#ifdef CAFFE2_KERNELS_avx2
    case Isa::kAvx2:
      return &avx2::kInt8Table;
#endif
#ifdef CAFFE2_KERNELS_avx512
    case Isa::kAvx512:
      return &avx512::kInt8Table;
#endif
#ifdef CAFFE2_KERNELS_neon
    case Isa::kNeon:
      return &neon::kInt8Table;
#endif
#ifdef CAFFE2_KERNELS_wasm
    case Isa::kWasm:
      return &wasm::kInt8Table;
#endif
#ifdef CAFFE2_KERNELS_generic
    case Isa::kGeneric:
      return &generic::kInt8Table;
#endif
    default:
      return nullptr;
  }
}

bool supported(Isa isa) { return table(isa) != nullptr; }

Isa best_isa() {
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kSse4, Isa::kNeon, Isa::kWasm}) {
    if (supported(isa)) return isa;
  }
  return Isa::kGeneric;
}

namespace {
struct Name {
  Isa isa;
  const char* name;
};
constexpr Name kNames[] = {{Isa::kGeneric, "generic"}, {Isa::kSse4, "sse4"}, {Isa::kAvx2, "avx2"},
                           {Isa::kAvx512, "avx512"},   {Isa::kNeon, "neon"}, {Isa::kWasm, "wasm"}};
}  // namespace

const char* isa_name(Isa isa) {
  for (const Name& n : kNames) {
    if (n.isa == isa) return n.name;
  }
  return "unknown";
}

bool isa_from_name(const char* name, Isa* isa) {
  for (const Name& n : kNames) {
    if (std::strcmp(n.name, name) == 0) {
      *isa = n.isa;
      return true;
    }
  }
  return false;
}

}  // namespace caffe2::kernels
