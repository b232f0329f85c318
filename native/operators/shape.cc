// Operators that change the shape and keep the values.
#include <set>
#include <string>
#include <vector>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/int8.h"
#include "operators/moving.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

class FlattenOperator : public Operator {
 public:
  explicit FlattenOperator(const OperatorContext& context)
      : Operator(context), axis_(args().int32("axis")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(axis_ <= x.rank(), "argument 'axis' is ", axis_, ", but ", describe_input(0),
                   " has ", x.rank(), " dimensions");
    const Shape shape{x.shape().product(0, axis_), x.shape().product(axis_, x.rank())};
    output(0, shape, x.type()).copy_from(x);
  }

 private:
  const int axis_;
};

class ResizeLikeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &x = input(0), &like = input(1);
    require_same_size(describe_input(0), x, describe_input(1), like);
    output(0, like.shape(), x.type()).copy_from(x);
  }
};

// The new shape comes from the argument or from input 1; 0 keeps a dimension (of a tensor that is
// not empty), -1 takes what is left.
class ReshapeOperator : public MovingOperator {
 public:
  explicit ReshapeOperator(const OperatorContext& context)
      : MovingOperator(context), shape_(args().integers("shape")) {
    const bool has_argument = args().has("shape"), has_input = context.def.input.size() == 2;
    CAFFE2_ENFORCE(has_argument || has_input,
                   "the new shape is missing: neither 'shape' nor a second input is given");
    CAFFE2_ENFORCE(!(has_argument && has_input),
                   "the new shape is given twice: by 'shape' and by the second input");
  }

 protected:
  void run() override {
    const Tensor& x = source();
    const Shape old = x.shape();
    const Shape shape = resolve(old, has_input(1) ? shape_input() : shape_);
    Tensor& y = target(shape, x.type());
    if (has_input(1) && input(1).type() == DataType::kInt32) {
      write_dims<int32_t>(old);
    } else {
      write_dims<int64_t>(old);
    }
    y.copy_from(x);
  }

 private:
  template <class T>
  void write_dims(const Shape& old) {
    T* out = output(1, {old.rank()}, TypeOf<T>::value).template mutable_data<T>();
    for (const int64_t dim : old) *out++ = static_cast<T>(dim);
  }

  std::vector<int64_t> shape_input() const {
    const Tensor& given = input(1);
    CAFFE2_ENFORCE(given.rank() == 1 && given.size() > 0, describe_input(1), " has shape ",
                   given.shape().text(), "; a list of dimensions, not empty, is needed");
    if (given.type() == DataType::kInt32) {
      return {given.data<int32_t>(), given.data<int32_t>() + given.size()};
    }
    return {given.data<int64_t>(), given.data<int64_t>() + given.size()};
  }

  Shape resolve(const Shape& old, std::vector<int64_t> wanted) const {
    const int64_t size = old.size();
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
      const int place = static_cast<int>(i);
      if (wanted[i] == 0 && size > 0 && place < old.rank()) wanted[i] = old[place];
      CAFFE2_ENFORCE(wanted[i] >= 0, "dimension ", i, " of the new shape is ", wanted[i]);
      known = checked_multiply(known, wanted[i]);
    }
    // Of an empty tensor the unknown dimension is 0, whatever the others are.
    if (unknown >= 0) wanted[unknown] = known > 0 && size > 0 ? size / known : 0;
    const int64_t product = unknown >= 0 ? checked_multiply(known, wanted[unknown]) : known;
    CAFFE2_ENFORCE(product == size, describe_input(0), " has shape ", old.text(), ", ", size,
                   " values, which do not fit into (", text, ")");
    Shape shape;
    for (const int64_t dim : wanted) shape.append(dim);
    return shape;
  }

  const std::vector<int64_t> shape_;
};

// Operators whose output has the values of the input in another shape.
class NewShapeOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  virtual Shape new_shape(const Shape& old) const = 0;

  void run() override {
    const Tensor& x = input(0);
    output(0, new_shape(x.shape()), x.type()).copy_from(x);
  }

  void require_dimensions(const Shape& old, int least) const {
    CAFFE2_ENFORCE(old.rank() >= least, describe_input(0), " has shape ", old.text(), "; ", least,
                   " dimensions at least are needed");
  }
};

class FlattenToVecOperator : public NewShapeOperator {
 public:
  using NewShapeOperator::NewShapeOperator;

 protected:
  Shape new_shape(const Shape& old) const override {
    require_dimensions(old, 1);
    return {old.size()};
  }
};

// ExpandDims and Squeeze, with the places of the dimensions of size 1.
class OnesOperator : public NewShapeOperator {
 public:
  explicit OnesOperator(const OperatorContext& context) : NewShapeOperator(context) {
    for (const int64_t dim : args().integers("dims")) dims_.insert(dim);
    CAFFE2_ENFORCE(!dims_.empty(), "argument 'dims' is empty");
  }

 protected:
  void require_places(const Shape& old, int rank) const {
    CAFFE2_ENFORCE(*dims_.rbegin() < rank, "argument 'dims' names dimension ", *dims_.rbegin(),
                   ", but ", describe_input(0), " has shape ", old.text());
  }
  int count() const { return static_cast<int>(dims_.size()); }
  bool named(int place) const { return dims_.count(place) > 0; }

 private:
  std::set<int64_t> dims_;
};

class ExpandDimsOperator : public OnesOperator {
 public:
  using OnesOperator::OnesOperator;

 protected:
  Shape new_shape(const Shape& old) const override {
    const int rank = old.rank() + count();
    require_places(old, rank);
    Shape shape;
    for (int place = 0, next = 0; place < rank; place++) {
      shape.append(named(place) ? 1 : old[next++]);
    }
    return shape;
  }
};

class SqueezeOperator : public OnesOperator {
 public:
  using OnesOperator::OnesOperator;

 protected:
  Shape new_shape(const Shape& old) const override {
    require_places(old, old.rank());
    Shape shape;
    for (int place = 0; place < old.rank(); place++) {
      CAFFE2_ENFORCE(!named(place) || old[place] == 1, describe_input(0), " has shape ", old.text(),
                     "; dimension ", place, " must be 1");
      if (!named(place)) shape.append(old[place]);
    }
    return shape;
  }
};

class PrependDimOperator : public NewShapeOperator {
 public:
  explicit PrependDimOperator(const OperatorContext& context)
      : NewShapeOperator(context), size_(args().integer("dim_size")) {}

 protected:
  Shape new_shape(const Shape& old) const override {
    require_dimensions(old, 1);
    CAFFE2_ENFORCE(old[0] % size_ == 0, describe_input(0), " has shape ", old.text(),
                   "; argument 'dim_size' = ", size_, " does not divide its first dimension");
    Shape shape{size_, old[0] / size_};
    for (int i = 1; i < old.rank(); i++) shape.append(old[i]);
    return shape;
  }

 private:
  const int64_t size_;
};

class MergeDimOperator : public NewShapeOperator {
 public:
  using NewShapeOperator::NewShapeOperator;

 protected:
  Shape new_shape(const Shape& old) const override {
    require_dimensions(old, 2);
    Shape shape{checked_multiply(old[0], old[1])};
    for (int i = 2; i < old.rank(); i++) shape.append(old[i]);
    return shape;
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Flatten, FlattenOperator)
REGISTER_CPU_OPERATOR(ResizeLike, ResizeLikeOperator)
REGISTER_CPU_OPERATOR(Reshape, ReshapeOperator)
REGISTER_CPU_OPERATOR(Int8Reshape, Int8Moving<ReshapeOperator>)
REGISTER_CPU_OPERATOR(FlattenToVec, FlattenToVecOperator)
REGISTER_CPU_OPERATOR(ExpandDims, ExpandDimsOperator)
REGISTER_CPU_OPERATOR(Squeeze, SqueezeOperator)
REGISTER_CPU_OPERATOR(PrependDim, PrependDimOperator)
REGISTER_CPU_OPERATOR(MergeDim, MergeDimOperator)

}  // namespace caffe2
