// Rows taken and put by their numbers.
#include <string>
#include <vector>

#include "core/registry.h"
#include "operators/segments.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// Adds n values.
template <class T>
void add_to(T* out, const T* in, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] += in[i];
}

// Input 1 holds numbers along an axis of DATA, of any shape. With match_outer the dimensions before
// the axis are also the first ones of the numbers, and each of their places has numbers of its own.
class GatherBase : public Operator {
 public:
  GatherBase(const OperatorContext& context, int default_axis, bool wrap)
      : Operator(context),
        axis_(args().has("axis") ? args().int32("axis") : default_axis),
        match_outer_(args().boolean("match_outer")),
        wrap_(wrap) {}

 protected:
  void find() {
    const Tensor &data = input(0), &given = input(1);
    const int axis = canonical_axis(axis_, data.rank(), describe_input(0));
    int own = 0;  // the first dimension of the numbers that does not belong to DATA, too
    if (match_outer_) {
      own = axis;
      bool fits = given.rank() >= axis;
      for (int i = 0; fits && i < axis; i++) fits = given.dim(i) == data.dim(i);
      CAFFE2_ENFORCE(fits, describe_input(1), " has shape ", given.shape().text(),
                     "; with match_outer its first ", axis, " dimensions are those of ",
                     describe_input(0), ", shape ", data.shape().text());
    }
    shape_ = Shape();
    for (int i = 0; i < axis; i++) shape_.append(data.dim(i));
    for (int i = own; i < given.rank(); i++) shape_.append(given.dim(i));
    for (int i = axis + 1; i < data.rank(); i++) shape_.append(data.dim(i));
    outer_ = data.shape().product(0, axis);
    size_ = data.dim(axis);
    inner_ = data.shape().product(axis + 1, data.rank());
    count_ = given.shape().product(own, given.rank());
    Tensor::bytes_for(shape_, data.type());
    auto* numbers = scratch<int64_t>(given.size());
    if (given.type() == DataType::kInt32) {
      std::copy_n(given.data<int32_t>(), given.size(), numbers);
    } else {
      std::copy_n(given.data<int64_t>(), given.size(), numbers);
    }
    for (int64_t j = 0; j < given.size(); j++) {
      if (wrap_ && numbers[j] < 0) numbers[j] += size_;
      CAFFE2_ENFORCE(numbers[j] >= 0 && numbers[j] < size_, describe_input(1),
                     " holds a number outside of axis ", axis, " at position ", j, "; ",
                     describe_input(0), " has shape ", data.shape().text());
    }
    numbers_ = numbers;
  }

  // Calls f(row of DATA, row of what is gathered) for rows of inner() elements.
  template <class F>
  void for_rows(int64_t begin, int64_t end, const F& f) const {
    for (int64_t i = begin; i < end; i++) {
      const int64_t o = i / count_, k = i % count_;
      f(o * size_ + numbers_[match_outer_ ? i : k], i);
    }
  }
  int64_t rows() const { return outer_ * count_; }
  int64_t inner() const { return inner_; }

  Shape shape_;  // of what is gathered

 private:
  const int axis_;
  const bool match_outer_, wrap_;
  int64_t outer_ = 0, size_ = 0, inner_ = 0, count_ = 0;
  const int64_t* numbers_ = nullptr;
};

template <int default_axis>
class GatherOperator : public GatherBase {
 public:
  explicit GatherOperator(const OperatorContext& context)
      : GatherBase(context, default_axis, default_axis == 0) {}

 protected:
  void run() override {
    find();
    const Tensor& data = input(0);
    Tensor& y = output(0, shape_, data.type());
    by_size(data.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(data);
      T* to = mutable_elements<T>(y);
      const int64_t width = inner();
      const auto move = [&](int64_t begin, int64_t end) {
        for_rows(begin, end, [&](int64_t source, int64_t target) {
          std::copy_n(from + source * width, width, to + target * width);
        });
      };
      // A copy of a string may throw, which a task of the pool must not.
      if constexpr (std::is_same_v<T, std::string>) {
        move(0, rows());
      } else {
        for_ranges(parallel(), rows(), rows_per_block(width), move);
      }
    });
  }
};

class BatchGatherGradientOperator : public GatherBase {
 public:
  explicit BatchGatherGradientOperator(const OperatorContext& context)
      : GatherBase(context, 1, false) {}

 protected:
  void run() override {
    find();
    const Tensor &data = input(0), &dy = input(2);
    CAFFE2_ENFORCE(dy.shape() == shape_ && dy.type() == data.type(), describe_input(2), " is ",
                   type_name(dy.type()), " of shape ", dy.shape().text(), "; needed is ",
                   type_name(data.type()), " of shape ", shape_.text());
    Tensor& dx = output(0, data.shape(), data.type());
    clear(dx);
    by_summed_type(data.type(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = elements<T>(dy);
      T* to = mutable_elements<T>(dx);
      for_rows(0, rows(), [&](int64_t target, int64_t source) {
        add_to(to + target * inner(), from + source * inner(), inner());
      });
    });
  }
};

// Writes rows of a tensor in place. Input 0 is the tensor, and is output 0.
class ScatterBase : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  // Row numbers of any shape in input i.
  const int64_t* find_rows(int i) {
    const Tensor &data = input(0), &given = input(i);
    CAFFE2_ENFORCE(data.rank() >= 1, describe_input(0), " is a scalar; rows are needed");
    width_ = data.shape().product(1, data.rank());
    count_ = given.size();
    auto* rows = scratch<int64_t>(count_);
    if (given.type() == DataType::kInt32) {
      std::copy_n(given.data<int32_t>(), count_, rows);
    } else {
      std::copy_n(given.data<int64_t>(), count_, rows);
    }
    for (int64_t j = 0; j < count_; j++) {
      CAFFE2_ENFORCE(rows[j] >= 0 && rows[j] < data.dim(0), describe_input(i), " holds ", rows[j],
                     " at position ", j, "; ", describe_input(0), " has ", data.dim(0), " rows");
    }
    return rows;
  }
  void check_slices(int i) const {
    const Tensor &data = input(0), &slices = input(i);
    CAFFE2_ENFORCE(slices.type() == data.type() && slices.size() == count_ * width_,
                   describe_input(i), " is ", type_name(slices.type()), " of shape ",
                   slices.shape().text(), "; needed are ", count_, " rows of ", width_, ", ",
                   type_name(data.type()));
  }
  // Output 0 with what input 0 holds.
  Tensor& target() {
    Tensor& out = output(0, input(0).shape(), input(0).type());
    out.copy_from(input(0));
    return out;
  }
  int64_t width_ = 0, count_ = 0;
};

class ScatterAssignOperator : public ScatterBase {
 public:
  using ScatterBase::ScatterBase;

 protected:
  void run() override {
    const int64_t* rows = find_rows(1);
    check_slices(2);
    Tensor& out = target();
    by_size(out.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(input(2));
      T* to = mutable_elements<T>(out);
      for (int64_t j = 0; j < count_; j++) {
        std::copy_n(from + j * width_, width_, to + rows[j] * width_);
      }
    });
  }
};

// Elements put at numbers along an axis. Inputs: DATA, INDICES, UPDATES.
class ScatterOperator : public Operator {
 public:
  explicit ScatterOperator(const OperatorContext& context)
      : Operator(context), axis_(args().int32("axis")) {}

 protected:
  void run() override {
    const Tensor &data = input(0), &given = input(1), &updates = input(2);
    const int axis = canonical_axis(axis_, data.rank(), describe_input(0));
    bool fits = given.rank() == data.rank();
    for (int i = 0; fits && i < data.rank(); i++) fits = i == axis || given.dim(i) <= data.dim(i);
    CAFFE2_ENFORCE(fits, describe_input(1), " has shape ", given.shape().text(), "; ",
                   describe_input(0), " has ", data.shape().text());
    CAFFE2_ENFORCE(updates.shape() == given.shape() && updates.type() == data.type(),
                   describe_input(2), " is ", type_name(updates.type()), " of shape ",
                   updates.shape().text(), "; needed is ", type_name(data.type()), " of shape ",
                   given.shape().text());
    auto* places = scratch<int64_t>(given.size());
    for (int64_t j = 0; j < given.size(); j++) {
      const int64_t number =
          given.type() == DataType::kInt32 ? given.data<int32_t>()[j] : given.data<int64_t>()[j];
      CAFFE2_ENFORCE(number >= 0 && number < data.dim(axis), describe_input(1), " holds ", number,
                     " at position ", j, "; allowed is [0, ", data.dim(axis), ")");
      int64_t rest = j, step = 1;
      places[j] = 0;
      for (int i = data.rank() - 1; i >= 0; i--) {
        places[j] += (i == axis ? number : rest % given.dim(i)) * step;
        rest /= given.dim(i);
        step *= data.dim(i);
      }
    }
    Tensor& y = output(0, data.shape(), data.type());
    y.copy_from(data);
    by_size(data.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(updates);
      T* to = mutable_elements<T>(y);
      for (int64_t j = 0; j < given.size(); j++) to[places[j]] = from[j];
    });
  }

 private:
  const int axis_;
};

// Inputs: X, weight of X, row numbers, then slices and their weights in turn.
class ScatterWeightedSumOperator : public ScatterBase {
 public:
  using ScatterBase::ScatterBase;

 protected:
  void run() override {
    CAFFE2_ENFORCE(inputs() >= 5 && inputs() % 2 == 1, "it has ", inputs(),
                   " inputs; needed are 3, and 2 for each of the slices");
    const int64_t* rows = find_rows(2);
    const float own = scalar_value(input(1), describe_input(1));
    std::vector<float> weights;
    for (int i = 3; i < inputs(); i += 2) {
      check_slices(i);
      weights.push_back(scalar_value(input(i + 1), describe_input(i + 1)));
    }
    Tensor& out = target();
    if (out.type() == DataType::kFloat) {
      add<float>(out, rows, own, weights);
    } else {
      add<double>(out, rows, own, weights);
    }
  }

 private:
  template <class T>
  void add(Tensor& out, const int64_t* rows, float own, const std::vector<float>& weights) {
    T* to = out.mutable_data<T>();
    for (int64_t j = 0; own != 1 && j < count_; j++) {
      for (int64_t i = 0; i < width_; i++) to[rows[j] * width_ + i] *= own;
    }
    for (size_t k = 0; k < weights.size(); k++) {
      const T* from = input(3 + 2 * static_cast<int>(k)).data<T>();
      for (int64_t j = 0; j < count_; j++) {
        for (int64_t i = 0; i < width_; i++) {
          to[rows[j] * width_ + i] += weights[k] * from[j * width_ + i];
        }
      }
    }
  }
};

// As many rows as a third input has, or as the largest number says.
class SparseToDenseOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor& values = input(1);
    const int64_t* rows = find_indices(0, INT64_MAX);
    const int64_t count = input(0).size();
    CAFFE2_ENFORCE(values.rank() >= 1 && values.dim(0) == count, describe_input(1), " has shape ",
                   values.shape().text(), "; ", count, " rows are needed");
    int64_t size = 0;
    for (int64_t j = 0; j < count; j++) size = std::max(size, rows[j] + 1);
    if (has_input(2)) {
      CAFFE2_ENFORCE(input(2).rank() >= 1 && size <= input(2).dim(0), describe_input(2),
                     " has shape ", input(2).shape().text(), ", but ", describe_input(0), " holds ",
                     size - 1);
      size = input(2).dim(0);
    }
    Tensor& y = output(0, with_rows(values.shape(), size), values.type());
    clear(y);
    const int64_t width = values.shape().product(1, values.rank());
    by_summed_type(values.type(), [&](auto zero) {
      using T = decltype(zero);
      const T* from = elements<T>(values);
      T* to = mutable_elements<T>(y);
      for (int64_t j = 0; j < count; j++) add_to(to + rows[j] * width, from + j * width, width);
    });
  }
};

class BooleanMaskOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &data = input(0), &mask = input(1);
    CAFFE2_ENFORCE(data.rank() >= 1 && mask.shape() == Shape{data.dim(0)}, describe_input(1),
                   " has shape ", mask.shape().text(), "; one value is needed for each row of ",
                   describe_input(0), ", shape ", data.shape().text());
    const bool* keep = mask.data<bool>();
    const int64_t rows = data.dim(0), width = data.shape().product(1, data.rank());
    const int64_t kept = std::count(keep, keep + rows, true);
    Tensor& y = output(0, with_rows(data.shape(), kept), data.type());
    int64_t* numbers = nullptr;
    if (outputs() == 2) numbers = output(1, {kept}, DataType::kInt64).mutable_data<int64_t>();
    by_size(data.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(data);
      T* to = mutable_elements<T>(y);
      for (int64_t j = 0; j < rows; j++) {
        if (!keep[j]) continue;
        std::copy_n(from + j * width, width, to);
        to += width;
        if (numbers != nullptr) *numbers++ = j;
      }
    });
  }
};

// Inputs: the mask and dY.
class BooleanMaskGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &mask = input(0), &dy = input(1);
    CAFFE2_ENFORCE(mask.rank() == 1, describe_input(0), " has shape ", mask.shape().text(),
                   "; one dimension is needed");
    const bool* keep = mask.data<bool>();
    const int64_t rows = mask.size(), kept = std::count(keep, keep + rows, true);
    CAFFE2_ENFORCE(dy.rank() >= 1 && dy.dim(0) == kept, describe_input(1), " has shape ",
                   dy.shape().text(), "; the mask keeps ", kept, " rows");
    Tensor& dx = output(0, with_rows(dy.shape(), rows), dy.type());
    clear(dx);
    const int64_t width = dy.shape().product(1, dy.rank());
    by_size(dy.type(), [&](const auto& element) {
      using T = std::decay_t<decltype(element)>;
      const T* from = elements<T>(dy);
      T* to = mutable_elements<T>(dx);
      for (int64_t j = 0; j < rows; j++) {
        if (!keep[j]) continue;
        std::copy_n(from, width, to + j * width);
        from += width;
      }
    });
  }
};

class OneHotOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor &given = input(0), &size = input(1);
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(0), " has shape ", given.shape().text(),
                   "; one dimension is needed");
    CAFFE2_ENFORCE(size.size() == 1, describe_input(1), " has shape ", size.shape().text(),
                   "; one value is needed");
    const int64_t* indices = given.data<int64_t>();
    const int64_t width = size.data<int64_t>()[0];
    for (int64_t j = 0; j < given.size(); j++) {
      CAFFE2_ENFORCE(indices[j] >= 0 && indices[j] < width, describe_input(0), " holds ",
                     indices[j], " at position ", j, "; allowed is [0, ", width, ")");
    }
    Tensor& y = output(0, {given.size(), width}, DataType::kFloat);
    clear(y);
    float* out = y.mutable_data<float>();
    for (int64_t j = 0; j < given.size(); j++) out[j * width + indices[j]] = 1;
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Gather, GatherOperator<0>)
REGISTER_CPU_OPERATOR(BatchGather, GatherOperator<1>)
REGISTER_CPU_OPERATOR(BatchGatherGradient, BatchGatherGradientOperator)
REGISTER_CPU_OPERATOR(Scatter, ScatterOperator)
REGISTER_CPU_OPERATOR(ScatterAssign, ScatterAssignOperator)
REGISTER_CPU_OPERATOR(ScatterWeightedSum, ScatterWeightedSumOperator)
REGISTER_CPU_OPERATOR(SparseToDense, SparseToDenseOperator)
REGISTER_CPU_OPERATOR(BooleanMask, BooleanMaskOperator)
REGISTER_CPU_OPERATOR(BooleanMaskGradient, BooleanMaskGradientOperator)
REGISTER_CPU_OPERATOR(OneHot, OneHotOperator)

}  // namespace caffe2
