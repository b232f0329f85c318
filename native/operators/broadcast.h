// Broadcasting of two operands, as NumPy does it and as old nets have it (broadcast=1).
#pragma once
#include <string>
#include <vector>

#include "core/arguments.h"
#include "core/operator.h"
#include "core/tensor.h"
#include "kernels/kernels.h"

namespace caffe2 {

// Two shapes seen as one.
struct Broadcasting {
  Shape result;
  Shape a, b;  // with the rank of the result; 1 where the operand is repeated

  // What a kernel walks through: neighbouring dimensions are one where memory allows it.
  kernels::Broadcast loops() const;
};

// The arguments broadcast, axis, axis_str and order.
class BroadcastRule {
 public:
  explicit BroadcastRule(const Arguments& args) : BroadcastRule(args, args.boolean("broadcast")) {}
  BroadcastRule(const Arguments& args, bool legacy);

  // Raises an error that names b when the shapes do not go together.
  Broadcasting apply(const Shape& a, const Shape& b, const Operand& what_a,
                     const Operand& what_b) const;

 private:
  bool legacy_;
  int axis_;
};

// n values as a, n as b.
kernels::Broadcast side_by_side(int64_t n);
// A single value as a, n values as b.
kernels::Broadcast repeated_over(int64_t n);

// Bytes of scratch that sum_to needs.
int64_t sum_to_scratch(const Shape& from, const Shape& to, DataType type);

// y, of shape `to`, is x, of shape `from`, summed over the dimensions in which `to` is 1 and `from`
// is not. Both have one rank. Floats, doubles, int32 and int64 (which wrap around).
void sum_to(const kernels::Table& kernels, const kernels::Parallel& parallel, DataType type,
            const Shape& from, const void* x, const Shape& to, void* y, void* scratch);

}  // namespace caffe2
