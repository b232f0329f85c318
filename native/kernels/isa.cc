// Which instruction sets this program holds kernels for, and which the processor has.
#include <cstring>
#include <initializer_list>

#include "kernels/kernels.h"

namespace caffe2::kernels {

// The build defines CAFFE2_KERNELS_<ISA> for every instruction set it compiled kernels for.
#define CAFFE2_KERNELS_TABLE(isa) \
  namespace isa {                 \
  extern const Table kTable;      \
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
#ifdef CAFFE2_KERNELS_generic
CAFFE2_KERNELS_TABLE(generic)
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
#ifdef CAFFE2_KERNELS_generic
    case Isa::kGeneric:
      return &generic::kTable;
#endif
    default:
      return nullptr;
  }
}

bool supported(Isa isa) { return table(isa) != nullptr; }

Isa best_isa() {
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kSse4, Isa::kNeon}) {
    if (supported(isa)) return isa;
  }
  return Isa::kGeneric;
}

namespace {
struct Name {
  Isa isa;
  const char* name;
};
constexpr Name kNames[] = {{Isa::kGeneric, "generic"},
                           {Isa::kSse4, "sse4"},
                           {Isa::kAvx2, "avx2"},
                           {Isa::kAvx512, "avx512"},
                           {Isa::kNeon, "neon"}};
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
