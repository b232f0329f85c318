// Where and Conditional: each element, or each row, of one tensor or the other.
#include <algorithm>
#include <string>

#include "core/registry.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

class ChoiceOperator : public Operator {
 public:
  ChoiceOperator(const OperatorContext& context, bool by_rows)
      : Operator(context), by_rows_(by_rows) {}

 protected:
  void run() override {
    const Tensor &condition = input(0), &x = input(1), &y = input(2);
    require_same_shape(describe_input(1), x, describe_input(2), y);
    require_same_type(describe_input(1), x, describe_input(2), y);
    if (by_rows_) {
      CAFFE2_ENFORCE(condition.rank() == 1 && x.rank() > 0 && condition.size() == x.dim(0),
                     describe_input(0), " has shape ", condition.shape().text(),
                     "; one value for each row of ", describe_input(1), ", which has ",
                     x.shape().text(), ", is needed");
    } else {
      require_same_shape(describe_input(0), condition, describe_input(1), x);
    }
    Tensor& z = output(0, x.shape(), x.type());
    switch (type_size(x.type())) {
      case 1:
        return choose<uint8_t>(z);
      case 2:
        return choose<uint16_t>(z);
      case 4:
        return choose<uint32_t>(z);
      case 8:
        return choose<uint64_t>(z);
      default:
        return choose<std::string>(z);
    }
  }

 private:
  template <class T>
  void choose(Tensor& z) const {
    const bool* condition = input(0).data<bool>();
    const T *x = static_cast<const T*>(input(1).raw_data()),
            *y = static_cast<const T*>(input(2).raw_data());
    T* to = static_cast<T*>(z.raw_mutable_data());
    if (!by_rows_) {
      return map(
          parallel(), z.size(), [](bool c, const T& a, const T& b) { return c ? a : b; }, to,
          condition, x, y);
    }
    const int64_t rows = z.dim(0), length = z.shape().product(1, z.rank());
    for_ranges(parallel(), rows, length, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        std::copy_n((condition[r] ? x : y) + r * length, length, to + r * length);
      }
    });
  }

  const bool by_rows_;
};

class WhereOperator : public ChoiceOperator {
 public:
  explicit WhereOperator(const OperatorContext& context)
      : ChoiceOperator(context,
                       Arguments(context.def, context.schema).boolean("broadcast_on_rows")) {}
};

class ConditionalOperator : public ChoiceOperator {
 public:
  explicit ConditionalOperator(const OperatorContext& context) : ChoiceOperator(context, true) {}
};

}  // namespace

REGISTER_CPU_OPERATOR(Where, WhereOperator)
REGISTER_CPU_OPERATOR(Conditional, ConditionalOperator)

}  // namespace caffe2
