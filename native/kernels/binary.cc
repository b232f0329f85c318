// Functions of two elements, with broadcasting.
#include "kernels/blocks.h"
#include "kernels/functions.h"

namespace caffe2::kernels::CAFFE2_KERNELS_ISA {

namespace {

struct Add {
  template <class T>
  static FORCE_INLINE T of(T a, T b) {
    return (T)(a + b);
  }
};
struct Sub {
  template <class T>
  static FORCE_INLINE T of(T a, T b) {
    return (T)(a - b);
  }
};
struct Mul {
  template <class T>
  static FORCE_INLINE T of(T a, T b) {
    return (T)(a * b);
  }
};
struct Div {
  static FORCE_INLINE float of(float a, float b) { return a / b; }
  static FORCE_INLINE double of(double a, double b) { return a / b; }
  // The smallest number by -1 would trap; it wraps around, as sums do.
  static FORCE_INLINE int32_t of(int32_t a, int32_t b) {
    return b == -1 ? (int32_t)(0 - (uint32_t)a) : a / b;
  }
  static FORCE_INLINE int64_t of(int64_t a, int64_t b) {
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
  }
};
// A NaN where one of the two is.
struct Max {
  template <class T>
  static FORCE_INLINE T of(T a, T b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Min {
  template <class T>
  static FORCE_INLINE T of(T a, T b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};
struct And {
  template <class T>
  static FORCE_INLINE T of(T a, T b) {
    return (T)(a & b);
  }
};
struct Or {
  template <class T>
  static FORCE_INLINE T of(T a, T b) {
    return (T)(a | b);
  }
};
struct Xor {
  template <class T>
  static FORCE_INLINE T of(T a, T b) {
    return (T)(a ^ b);
  }
};
struct Equal {
  template <class T>
  static FORCE_INLINE uint8_t of(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static FORCE_INLINE uint8_t of(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static FORCE_INLINE uint8_t of(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static FORCE_INLINE uint8_t of(T a, T b) {
    return a <= b;
  }
};

template <class F, class T, class R>
FORCE_INLINE void row(int64_t n, const T* a, bool a_steps, const T* b, bool b_steps, R* y) {
  if (a_steps && b_steps) {
    ELEMENTS_APART
    for (int64_t i = 0; i < n; i++) y[i] = F::of(a[i], b[i]);
  } else if (a_steps) {
    const T v = *b;
    ELEMENTS_APART
    for (int64_t i = 0; i < n; i++) y[i] = F::of(a[i], v);
  } else {
    const T u = *a;
    ELEMENTS_APART
    for (int64_t i = 0; i < n; i++) y[i] = F::of(u, b[i]);
  }
}

// All of it: blocks of whole rows, or pieces of a row where rows are long.
template <class F, class T, class R>
void broadcast(const Broadcast& s, const void* first, const void* second, void* result,
               const Parallel& parallel) {
  const T *a = (const T*)first, *b = (const T*)second;
  R* y = (R*)result;
  const int last = s.rank - 1;
  const int64_t n = s.dims[last];
  int64_t rows = 1;
  for (int d = 0; d < last; d++) rows *= s.dims[d];
  if (rows == 0 || n == 0) return;
  const int64_t pieces = ceil_div(n, ELEMENTS), length = ceil_div(n, pieces);
  const int64_t together = max_of<int64_t>(1, ELEMENTS / n);
  for_blocks(parallel, ceil_div(rows, together) * pieces, [&](int64_t block, int) {
    const int64_t begin = block / pieces * together, end = min_of(rows, begin + together);
    const int64_t from = block % pieces * length, count = min_of(length, n - from);
    int64_t place[Broadcast::kMaxDims], at_a = from * s.a[last], at_b = from * s.b[last];
    int64_t rest = begin;
    for (int d = last - 1; d >= 0; d--) {
      place[d] = rest % s.dims[d];
      rest /= s.dims[d];
      at_a += place[d] * s.a[d];
      at_b += place[d] * s.b[d];
    }
    for (int64_t r = begin; r < end; r++) {
      row<F>(count, a + at_a, s.a[last] != 0, b + at_b, s.b[last] != 0, y + r * n + from);
      for (int d = last - 1; d >= 0; d--) {
        at_a += s.a[d];
        at_b += s.b[d];
        if (++place[d] < s.dims[d]) break;
        place[d] = 0;
        at_a -= s.dims[d] * s.a[d];
        at_b -= s.dims[d] * s.b[d];
      }
    }
  });
}

using Function = void (*)(const Broadcast&, const void*, const void*, void*, const Parallel&);

// Sums, differences and products of integers wrap around: they are those of unsigned ones.
template <class F>
Function arithmetic(Type type) {
  switch (type) {
    case Type::kFloat:
      return broadcast<F, float, float>;
    case Type::kDouble:
      return broadcast<F, double, double>;
    case Type::kInt32:
      return broadcast<F, uint32_t, uint32_t>;
    case Type::kInt64:
      return broadcast<F, uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}

Function quotient(Type type) {
  switch (type) {
    case Type::kInt32:
      return broadcast<Div, int32_t, int32_t>;
    case Type::kInt64:
      return broadcast<Div, int64_t, int64_t>;
    case Type::kFloat:
      return broadcast<Div, float, float>;
    case Type::kDouble:
      return broadcast<Div, double, double>;
    default:
      return nullptr;
  }
}

template <class F>
Function bits(Type type) {
  switch (type) {
    case Type::kInt32:
      return broadcast<F, uint32_t, uint32_t>;
    case Type::kInt64:
      return broadcast<F, uint64_t, uint64_t>;
    case Type::kBool:
      return broadcast<F, uint8_t, uint8_t>;
    default:
      return nullptr;
  }
}

template <class F>
Function comparison(Type type) {
  switch (type) {
    case Type::kFloat:
      return broadcast<F, float, uint8_t>;
    case Type::kDouble:
      return broadcast<F, double, uint8_t>;
    case Type::kInt32:
      return broadcast<F, int32_t, uint8_t>;
    case Type::kInt64:
      return broadcast<F, int64_t, uint8_t>;
    case Type::kBool:
      return broadcast<F, uint8_t, uint8_t>;
    default:
      return nullptr;
  }
}

Function function(Binary f, Type type) {
  switch (f) {
    case Binary::kAdd:
      return arithmetic<Add>(type);
    case Binary::kSub:
      return arithmetic<Sub>(type);
    case Binary::kMul:
      return arithmetic<Mul>(type);
    case Binary::kDiv:
      return quotient(type);
    case Binary::kMax:
      return type == Type::kFloat ? broadcast<Max, float, float> : nullptr;
    case Binary::kMin:
      return type == Type::kFloat ? broadcast<Min, float, float> : nullptr;
    case Binary::kAnd:
      return bits<And>(type);
    case Binary::kOr:
      return bits<Or>(type);
    case Binary::kXor:
      return bits<Xor>(type);
    case Binary::kEqual:
      return comparison<Equal>(type);
    case Binary::kNotEqual:
      return comparison<NotEqual>(type);
    case Binary::kLess:
      return comparison<Less>(type);
    case Binary::kLessEqual:
      return comparison<LessEqual>(type);
  }
  return nullptr;
}

}  // namespace

bool binary_supports(Binary f, Type type) { return function(f, type) != nullptr; }

void binary(Binary f, Type type, const Broadcast& shape, const void* a, const void* b, void* y,
            const Parallel& parallel) {
  function(f, type)(shape, a, b, y, parallel);
}

}  // namespace caffe2::kernels::CAFFE2_KERNELS_ISA
