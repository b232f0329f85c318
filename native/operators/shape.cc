// Operators that change the shape and keep the values.
#include <cstring>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// Writes the values of `x` to output `i`, which may be x's own blob.
class Reshaping : public Operator {
 public:
  using Operator::Operator;

 protected:
  void copy_as(const Tensor& x, Tensor& y) {
    if (x.bytes() > 0 && y.raw_data() != x.raw_data()) {
      std::memcpy(y.raw_mutable_data(), x.raw_data(), x.bytes());
    }
  }
};

class FlattenOperator : public Reshaping {
 public:
  explicit FlattenOperator(const OperatorContext& context)
      : Reshaping(context), axis_(args().int32("axis")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const int axis = canonical_axis(axis_, x.rank(), describe_input(0));
    const Shape shape{x.shape().product(0, axis), x.shape().product(axis, x.rank())};
    copy_as(x, output(0, shape, x.type()));
  }

 private:
  const int axis_;
};

// The new shape comes from the argument or from input 1; 0 keeps a dimension, -1 takes what is left.
class ReshapeOperator : public Reshaping {
 public:
  explicit ReshapeOperator(const OperatorContext& context)
      : Reshaping(context), shape_(args().integers("shape")) {
    const bool has_argument = args().has("shape"), has_input = context.def.input.size() == 2;
    CAFFE2_ENFORCE(has_argument || has_input,
                   "the new shape is missing: neither 'shape' nor a second input is given");
    CAFFE2_ENFORCE(!(has_argument && has_input),
                   "the new shape is given twice: by 'shape' and by the second input");
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Shape old = x.shape();
    const Shape shape = resolve(old, has_input(1) ? shape_input() : shape_);
    Tensor& y = output(0, shape, x.type());
    if (outputs() == 2) {
      Tensor& old_shape = output(1, {old.rank()}, DataType::kInt64);
      std::copy(old.begin(), old.end(), old_shape.mutable_data<int64_t>());
    }
    copy_as(x, y);
  }

 private:
  std::vector<int64_t> shape_input() const {
    const Tensor& given = input(1);
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(1), " has shape ", given.shape().text(),
                   "; a list of dimensions (1 dimension) is needed");
    if (given.type() == DataType::kInt32) {
      return {given.data<int32_t>(), given.data<int32_t>() + given.size()};
    }
    return {given.data<int64_t>(), given.data<int64_t>() + given.size()};
  }

  Shape resolve(const Shape& old, std::vector<int64_t> wanted) const {
    int64_t known = 1;
    int unknown = -1;
    std::string text;
    for (size_t i = 0; i < wanted.size(); i++) {
      text += (i ? ", " : "") + std::to_string(wanted[i]);
      if (wanted[i] == -1) {
        CAFFE2_ENFORCE(unknown < 0, "the new shape has more than one -1");
        unknown = static_cast<int>(i);
        continue;
      }
      if (wanted[i] == 0) {
        CAFFE2_ENFORCE(static_cast<int>(i) < old.rank(), "dimension ", i,
                       " of the new shape is 0, which keeps that of ", describe_input(0),
                       ", but its shape is ", old.text());
        wanted[i] = old[static_cast<int>(i)];
      }
      CAFFE2_ENFORCE(wanted[i] >= 0, "dimension ", i, " of the new shape is ", wanted[i]);
      known = checked_multiply(known, wanted[i]);
    }
    const int64_t size = old.size();
    if (unknown >= 0 && known > 0 && size % known == 0) wanted[unknown] = size / known;
    if (unknown >= 0 && known == 0 && size == 0) wanted[unknown] = 0;
    const bool fits = unknown < 0 ? known == size : wanted[unknown] >= 0;
    CAFFE2_ENFORCE(fits, describe_input(0), " has shape ", old.text(), ", ", size,
                   " values, which do not fit into (", text, ")");
    Shape shape;
    for (const int64_t dim : wanted) shape.append(dim);
    return shape;
  }

  const std::vector<int64_t> shape_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Flatten, FlattenOperator)
REGISTER_CPU_OPERATOR(Reshape, ReshapeOperator)

}  // namespace caffe2
