// Constant, given and random fills.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/mapped_file.h"
#include "core/operator.h"
#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/random.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// The output's shape comes from `shape`, or from an input: its shape, or its values with
// input_as_shape; then extra_shape follows.
class FillBase : public Operator {
 public:
  explicit FillBase(const OperatorContext& context)
      : Operator(context),
        shape_(args().integers("shape")),
        extra_shape_(args().integers("extra_shape")),
        input_as_shape_(args().boolean("input_as_shape")) {
    const bool has_input = !context.def.input.empty();
    CAFFE2_ENFORCE(!has_input || shape_.empty(),
                   "it has an input and the argument 'shape'; only one of them can give the shape");
    CAFFE2_ENFORCE(has_input || extra_shape_.empty(), "'extra_shape' needs an input");
    CAFFE2_ENFORCE(has_input || !input_as_shape_, "'input_as_shape' needs an input");
  }

 protected:
  Shape shape() const {
    Shape shape;
    if (!has_input(0)) {
      for (const int64_t dim : shape_) shape.append(dim);
      return shape;
    }
    if (input_as_shape_) {
      const Tensor& given = input(0);
      CAFFE2_ENFORCE(given.rank() == 1 && given.type() == DataType::kInt64, describe_input(0),
                     " has shape ", given.shape().text(), " and type ", type_name(given.type()),
                     "; with input_as_shape it needs int64 values in 1 dimension");
      const int64_t* dims = given.data<int64_t>();
      for (int64_t i = 0; i < given.size(); i++) shape.append(dims[i]);
    } else {
      shape = input(0).shape();
    }
    for (const int64_t dim : extra_shape_) shape.append(dim);
    return shape;
  }

 private:
  const std::vector<int64_t> shape_, extra_shape_;
  const bool input_as_shape_;
};

// One value of an argument that may hold integers, numbers or strings, as an element of type T.
template <class T>
T element(const char* name, std::optional<int64_t> i, std::optional<float> f,
          const std::optional<std::string>& s) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (s) return *s;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (f) return *f;
    if (i) return static_cast<T>(*i);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (i) return *i != 0;
  } else if (i) {
    const bool fits = *i >= static_cast<int64_t>(std::numeric_limits<T>::min()) &&
                      *i <= static_cast<int64_t>(std::numeric_limits<T>::max());
    CAFFE2_ENFORCE(fits, "argument '", name, "' = ", *i, " does not fit into ",
                   type_name(TypeOf<T>::value));
    return static_cast<T>(*i);
  }
  fail(Code::kInvalidArgument, "argument '", name, "' holds ",
       s   ? "'" + *s + "'"
       : f ? concat(*f)
           : concat(i.value_or(0)),
       ", which is no value of type ", type_name(TypeOf<T>::value));
}

// Without dtype an integer value makes an int64 tensor, everything else a float one.
DataType constant_type(const Arguments& args) {
  if (args.has("dtype")) return static_cast<DataType>(args.integer("dtype"));
  const Argument* value = args.given("value");
  CAFFE2_ENFORCE(!value || !value->s || value->f || value->i,
                 "argument 'value' is text; that needs dtype=4 (STRING)");
  return value && value->i && !value->f ? DataType::kInt64 : DataType::kFloat;
}

class ConstantFillOperator : public FillBase {
 public:
  explicit ConstantFillOperator(const OperatorContext& context)
      : FillBase(context), value_(args().given("value")), type_(constant_type(args())) {}

 protected:
  void run() override {
    switch (type_) {
      case DataType::kFloat:
        return fill<float>();
      case DataType::kDouble:
        return fill<double>();
      case DataType::kBool:
        return fill<bool>();
      case DataType::kInt8:
        return fill<int8_t>();
      case DataType::kInt16:
        return fill<int16_t>();
      case DataType::kInt32:
        return fill<int32_t>();
      case DataType::kInt64:
        return fill<int64_t>();
      case DataType::kUInt8:
        return fill<uint8_t>();
      case DataType::kUInt16:
        return fill<uint16_t>();
      case DataType::kString:
        return fill<std::string>();
      default:
        fail(Code::kInvalidArgument, "argument 'dtype' = ", static_cast<int>(type_),
             ": there is no constant of this type");
    }
  }

 private:
  template <class T>
  void fill() {
    T value{};
    if (has_input(1)) {
      const Tensor& given = input(1);
      CAFFE2_ENFORCE(given.size() == 1 && given.type() == type_, describe_input(1), " has shape ",
                     given.shape().text(), " and type ", type_name(given.type()),
                     "; one value of type ", type_name(type_), " is needed");
      value = given.data<T>()[0];
    } else if (value_) {
      value = element<T>("value", value_->i, value_->f, value_->s);
    }
    Tensor& y = output(0, shape(), type_);
    std::fill_n(y.mutable_data<T>(), y.size(), value);
  }

  const Argument* const value_;
  const DataType type_;
};

class GivenTensorFillOperator : public FillBase {
 public:
  GivenTensorFillOperator(const OperatorContext& context, DataType type)
      : FillBase(context), values_(*args().given("values")), type_(type) {}
  explicit GivenTensorFillOperator(const OperatorContext& context)
      : GivenTensorFillOperator(context, DataType::kUndefined) {
    type_ = static_cast<DataType>(args().integer("dtype"));
  }

 protected:
  void run() override {
    switch (type_) {
      case DataType::kFloat:
        return fill<float>();
      case DataType::kDouble:
        return fill<double>();
      case DataType::kInt16:
        return fill<int16_t>();
      case DataType::kInt32:
        return fill<int32_t>();
      case DataType::kInt64:
        return fill<int64_t>();
      case DataType::kBool:
        return fill<bool>();
      case DataType::kString:
        return fill<std::string>();
      default:
        fail(Code::kInvalidArgument, "argument 'dtype' = ", static_cast<int>(type_),
             ": there is no fill with given values of this type");
    }
  }

 private:
  template <class T>
  void fill() {
    const Shape wanted = shape();
    const auto count = static_cast<int64_t>(
        std::max({values_.ints.size(), values_.floats.size(), values_.strings.size()}));
    CAFFE2_ENFORCE(count == wanted.size(), describe_output(0), " has shape ", wanted.text(), ", ",
                   wanted.size(), " values, but argument 'values' holds ", count);
    if constexpr (std::is_same_v<T, float>) {
      if (values_.ints.empty() && values_.strings.empty()) return fill_floats(wanted);
    }
    std::vector<T> elements;
    elements.reserve(count);
    for (const int64_t i : values_.ints) elements.push_back(element<T>("values", i, {}, {}));
    for (const float f : values_.floats.values()) {
      elements.push_back(element<T>("values", {}, f, {}));
    }
    for (const auto& s : values_.strings) elements.push_back(element<T>("values", {}, {}, s));
    Tensor& y = output(0, wanted, TypeOf<T>::value);
    std::copy(elements.begin(), elements.end(), y.mutable_data<T>());
  }

  // Straight from the message, or, the first time, memory of the file that the message is in.
  void fill_floats(const Shape& wanted) {
    const wire::Floats& values = values_.floats;
    const auto address = reinterpret_cast<uintptr_t>(values.lent());
    const size_t bytes = values.size() * sizeof(float);
    if (address != 0 && address % Allocator::kAlignment == 0 && bytes >= kLeastLent &&
        !std::exchange(lent_, true)) {
      auto storage = std::make_shared<Storage>(engine().allocator(), values.lender(),
                                               const_cast<char*>(values.lent()), bytes);
      output_value(0, {Tensor(std::move(storage), wanted, DataType::kFloat), nullptr});
      return;
    }
    values.copy_to(output(0, wanted, DataType::kFloat).mutable_data<float>());
  }

  // Small values are cheap to copy, and would keep much of the file around them in memory.
  static constexpr size_t kLeastLent = size_t{16} << 10;

  const Argument& values_;
  DataType type_;
  bool lent_ = false;
};

template <DataType type>
class TypedGivenTensorFill : public GivenTensorFillOperator {
 public:
  explicit TypedGivenTensorFill(const OperatorContext& context)
      : GivenTensorFillOperator(context, type) {}
};

class RandomFill : public FillBase {
 public:
  using FillBase::FillBase;

 protected:
  kernels::RandomState next_state() { return random_state(next_random_stream()); }
  void uniform(float low, float high, const Shape& shape) {
    Tensor& y = output(0, shape, DataType::kFloat);
    kernels().uniform(next_state(), low, high, y.size(), y.mutable_data<float>(), parallel());
  }
  void normal(float mean, float std, const Shape& shape) {
    Tensor& y = output(0, shape, DataType::kFloat);
    kernels().normal(next_state(), mean, std, y.size(), y.mutable_data<float>(), parallel());
  }
};

// Bounds come as arguments or as inputs 1 and 2 with one value each.
template <class T>
class UniformBase : public RandomFill {
 public:
  explicit UniformBase(const OperatorContext& context) : RandomFill(context) {
    CAFFE2_ENFORCE(context.def.input.size() != 2,
                   "it has an input min without an input max; give both or none");
    if constexpr (std::is_same_v<T, float>) {
      low_ = args().real("min"), high_ = args().real("max");
    } else {
      low_ = args().int32("min"), high_ = args().int32("max");
    }
  }

 protected:
  void read_bounds() {
    if (has_input(2)) {
      low_ = single(1);
      high_ = single(2);
    }
    CAFFE2_ENFORCE(low_ < high_, "min = ", low_, " is not less than max = ", high_,
                   "; values are drawn from the range between them");
    if constexpr (std::is_same_v<T, float>) {
      CAFFE2_ENFORCE(std::isfinite(high_ - low_), "max - min = ", high_, " - ", low_,
                     " is not finite");
    }
  }
  T low_, high_;

 private:
  T single(int i) const {
    CAFFE2_ENFORCE(input(i).size() == 1, describe_input(i), " has shape ", input(i).shape().text(),
                   "; one value is needed");
    return input(i).template data<T>()[0];
  }
};

class UniformFillOperator : public UniformBase<float> {
 public:
  using UniformBase::UniformBase;

 protected:
  void run() override {
    read_bounds();
    uniform(low_, high_, shape());
  }
};

class UniformIntFillOperator : public UniformBase<int32_t> {
 public:
  using UniformBase::UniformBase;

 protected:
  void run() override {
    read_bounds();
    Tensor& y = output(0, shape(), DataType::kInt32);
    kernels().uniform_int(next_state(), low_, high_, y.size(), y.mutable_data<int32_t>(),
                          parallel());
  }
};

class GaussianFillOperator : public RandomFill {
 public:
  explicit GaussianFillOperator(const OperatorContext& context)
      : RandomFill(context), mean_(args().real("mean")), std_(args().real("std")) {}

 protected:
  void run() override { normal(mean_, std_, shape()); }

 private:
  const float mean_, std_;
};

// Uniform in [-s, s], s = sqrt(3 / fan_in), fan_in = values per output (Glorot, Bengio 2010).
class XavierFillOperator : public RandomFill {
 public:
  using RandomFill::RandomFill;

 protected:
  void run() override {
    const Shape wanted = shape();
    CAFFE2_ENFORCE(wanted.rank() >= 1, describe_output(0), " has no dimension of outputs");
    const int64_t fan_in = wanted.product(1, wanted.rank());
    const float s = std::sqrt(3.0f / static_cast<float>(std::max<int64_t>(1, fan_in)));
    uniform(-s, s, wanted);
  }
};

// Normal with standard deviation sqrt(2 / fan_out), fan_out = size / dimension 1 (He et al. 2015).
class MSRAFillOperator : public RandomFill {
 public:
  using RandomFill::RandomFill;

 protected:
  void run() override {
    const Shape wanted = shape();
    CAFFE2_ENFORCE(wanted.rank() >= 2, describe_output(0), " has shape ", wanted.text(),
                   "; at least 2 dimensions are needed");
    const int64_t fan_out = wanted[1] > 0 ? wanted.size() / wanted[1] : 0;
    normal(0, std::sqrt(2.0f / static_cast<float>(std::max<int64_t>(1, fan_out))), wanted);
  }
};

class ByteStringFillOperator : public FillBase {
 public:
  explicit ByteStringFillOperator(const OperatorContext& context)
      : FillBase(context), values_(args().texts("values")) {
    CAFFE2_ENFORCE(values_.size() == 1, "argument 'values' holds ", values_.size(),
                   " strings; one is needed");
  }

 protected:
  void run() override {
    const Shape wanted = shape();
    const std::string& bytes = values_[0];
    CAFFE2_ENFORCE(wanted.size() == static_cast<int64_t>(bytes.size()), describe_output(0),
                   " has shape ", wanted.text(), ", but argument 'values' holds ", bytes.size(),
                   " bytes");
    Tensor& y = output(0, wanted, DataType::kUInt8);
    std::copy(bytes.begin(), bytes.end(), y.mutable_data<uint8_t>());
  }

 private:
  const std::vector<std::string> values_;
};

class DiagonalFillOperator : public FillBase {
 public:
  explicit DiagonalFillOperator(const OperatorContext& context)
      : FillBase(context), value_(args().given("value")), type_(constant_type(args())) {}

 protected:
  void run() override {
    dispatch<float, double, bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>(
        type_, [&](auto zero) { fill(zero); });
  }

 private:
  template <class T>
  void fill(T value) {
    if (value_) value = element<T>("value", value_->i, value_->f, value_->s);
    const Shape wanted = shape();
    bool fits = wanted.rank() >= 2;
    int64_t step = 0, least = INT64_MAX;
    for (int i = 0; fits && i < wanted.rank(); i++) {
      fits = wanted.rank() == 2 || wanted[i] == wanted[0];
      step += wanted.product(i + 1, wanted.rank());
      least = std::min(least, wanted[i]);
    }
    CAFFE2_ENFORCE(fits, describe_output(0), " has shape ", wanted.text(),
                   "; needed are two dimensions, or more that are all equal");
    Tensor& y = output(0, wanted, type_);
    T* out = y.mutable_data<T>();
    std::fill_n(out, y.size(), T());
    for (int64_t i = 0; i < least; i++) out[i * step] = value;
  }

  const Argument* const value_;
  const DataType type_;
};

// Integers of a range, each at most once: a shuffle of those that are free, of which only the
// places that it touches are kept.
class UniqueUniformFillOperator : public RandomFill {
 public:
  explicit UniqueUniformFillOperator(const OperatorContext& context)
      : RandomFill(context),
        low_(args().integer("min")),
        high_(args().integer("max")),
        type_(static_cast<DataType>(args().integer("dtype"))) {
    CAFFE2_ENFORCE(type_ == DataType::kInt32 || type_ == DataType::kInt64,
                   "argument 'dtype' = ", static_cast<int>(type_), "; allowed are INT32 and INT64");
    CAFFE2_ENFORCE(low_ < high_, "min = ", low_, " is not less than max = ", high_,
                   "; values are drawn from the range between them");
    CAFFE2_ENFORCE(type_ == DataType::kInt64 || (low_ >= INT32_MIN && high_ <= INT32_MAX),
                   "min = ", low_, " or max = ", high_, " is no int32");
  }

 protected:
  void run() override {
    if (type_ == DataType::kInt32) {
      draw<int32_t>();
    } else {
      draw<int64_t>();
    }
  }

 private:
  template <class T>
  void draw() {
    const Shape wanted = shape();
    std::span<int64_t> taken;
    if (has_input(1)) {
      const Tensor& avoid = input(1);
      CAFFE2_ENFORCE(avoid.type() == type_ && avoid.rank() == 1, describe_input(1), " is ",
                     type_name(avoid.type()), " of shape ", avoid.shape().text(), "; ",
                     type_name(type_), ", 1-d, is needed");
      const T* values = avoid.data<T>();
      auto* first = scratch<int64_t>(avoid.size());
      auto* last = std::copy_if(values, values + avoid.size(), first,
                                [this](int64_t x) { return x >= low_ && x <= high_; });
      std::sort(first, last);
      taken = {first, std::unique(first, last)};
    }
    // Differences are unsigned: the range may be wider than int64. Its size less 1 always fits.
    const uint64_t last = static_cast<uint64_t>(high_) - static_cast<uint64_t>(low_);
    const auto count = static_cast<uint64_t>(wanted.size());
    CAFFE2_ENFORCE(count == 0 || (taken.size() <= last && count - 1 <= last - taken.size()),
                   describe_output(0), " has shape ", wanted.text(), ", more elements than there",
                   " are integers from ", low_, " to ", high_, ", of which ", taken.size(),
                   " are avoided");
    auto* bits = scratch<int32_t>(checked_multiply(2, wanted.size()));
    Tensor& y = output(0, wanted, type_);
    Places moved(*this, count);
    T* out = y.mutable_data<T>();
    kernels().uniform_int(next_state(), INT32_MIN, INT32_MAX, 2 * wanted.size(), bits, parallel());
    for (uint64_t place = 0; place < count; place++) {
      const uint64_t word = uint64_t{static_cast<uint32_t>(bits[2 * place])} << 32 |
                            static_cast<uint32_t>(bits[2 * place + 1]);
      const uint64_t other = place + scaled(word, last - taken.size() - place);
      const uint64_t rank = moved[other], here = moved[place];
      if (other != place) moved.put(other, here);  // no place before the next is asked for again
      out[place] = static_cast<T>(static_cast<uint64_t>(low_) + rank + before(taken, rank));
    }
  }

  // What is at places that were written, each above 0; at others is their number.
  class Places {
   public:
    // Twice as many slots as places at least: the way to a free one stays short.
    Places(UniqueUniformFillOperator& op, uint64_t most) : slots_(2) {
      while (slots_ / 2 < most) slots_ *= 2;
      table_ = op.scratch<Slot>(static_cast<int64_t>(slots_));
      std::fill_n(table_, slots_, Slot{0, 0});
    }
    uint64_t operator[](uint64_t place) const {
      const Slot& slot = find(place);
      return slot.place == 0 ? place : slot.value;
    }
    void put(uint64_t place, uint64_t value) { find(place) = {place, value}; }

   private:
    struct Slot {
      uint64_t place, value;  // place 0: free
    };
    Slot& find(uint64_t place) const {
      uint64_t i = place * 0x9e3779b97f4a7c15u >> 32;
      while (table_[i & (slots_ - 1)].place != 0 && table_[i & (slots_ - 1)].place != place) i++;
      return table_[i & (slots_ - 1)];
    }

    uint64_t slots_;
    Slot* table_;
  };

  // A word as one of the integers 0 ... last.
  static uint64_t scaled(uint64_t word, uint64_t last) {
    if (last == UINT64_MAX) return word;
    return static_cast<uint64_t>(static_cast<unsigned __int128>(word) * (last + 1) >> 64);
  }

  // How many of the taken integers come before the free one that `rank` free ones precede.
  uint64_t before(std::span<const int64_t> taken, uint64_t rank) const {
    size_t first = 0, last = taken.size();
    while (first < last) {
      const size_t middle = (first + last) / 2;
      const uint64_t free = static_cast<uint64_t>(taken[middle]) - static_cast<uint64_t>(low_);
      if (free - middle <= rank) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    return first;
  }

  const int64_t low_, high_;
  const DataType type_;
};

}  // namespace

REGISTER_CPU_OPERATOR(ConstantFill, ConstantFillOperator)
REGISTER_CPU_OPERATOR(GivenTensorFill, GivenTensorFillOperator)
REGISTER_CPU_OPERATOR(GivenTensorDoubleFill, TypedGivenTensorFill<DataType::kDouble>)
REGISTER_CPU_OPERATOR(GivenTensorIntFill, TypedGivenTensorFill<DataType::kInt32>)
REGISTER_CPU_OPERATOR(GivenTensorInt64Fill, TypedGivenTensorFill<DataType::kInt64>)
REGISTER_CPU_OPERATOR(GivenTensorBoolFill, TypedGivenTensorFill<DataType::kBool>)
REGISTER_CPU_OPERATOR(GivenTensorStringFill, TypedGivenTensorFill<DataType::kString>)
REGISTER_CPU_OPERATOR(GivenTensorInt16Fill, TypedGivenTensorFill<DataType::kInt16>)
REGISTER_CPU_OPERATOR(GivenTensorByteStringToUInt8Fill, ByteStringFillOperator)
REGISTER_CPU_OPERATOR(DiagonalFill, DiagonalFillOperator)
REGISTER_CPU_OPERATOR(UniqueUniformFill, UniqueUniformFillOperator)
REGISTER_CPU_OPERATOR(UniformFill, UniformFillOperator)
REGISTER_CPU_OPERATOR(UniformIntFill, UniformIntFillOperator)
REGISTER_CPU_OPERATOR(GaussianFill, GaussianFillOperator)
REGISTER_CPU_OPERATOR(XavierFill, XavierFillOperator)
REGISTER_CPU_OPERATOR(MSRAFill, MSRAFillOperator)

}  // namespace caffe2
