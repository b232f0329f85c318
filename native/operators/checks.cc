// Questions about the elements of a tensor, and operators that stop a net by the answer.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "core/registry.h"
#include "operators/unary.h"

namespace caffe2 {
namespace {

class IsEmptyOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const bool empty = input(0).size() == 0;
    output(0, {}, DataType::kBool).mutable_data<bool>()[0] = empty;
  }
};

class HasElementsOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    bool any = false;
    for (int i = 0; i < inputs(); i++) any = any || input(i).size() > 0;
    output(0, {}, DataType::kBool).mutable_data<bool>()[0] = any;
  }
};

class IsNanOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    dispatch<float, double>(x.type(), [&](auto zero) {
      Tensor& y = output(0, x.shape(), DataType::kUInt8);
      map(
          parallel(), x.size(), [](auto v) { return v != v; }, y.mutable_data<uint8_t>(),
          x.data<decltype(zero)>());
    });
  }
};

class ReplaceNanOperator : public Operator {
 public:
  explicit ReplaceNanOperator(const OperatorContext& context)
      : Operator(context), value_(args().real("value")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    dispatch<float, double>(x.type(), [&](auto zero) {
      using T = decltype(zero);
      Tensor& y = output(0, x.shape(), x.type());
      map(
          parallel(), x.size(), [value = T(value_)](T v) { return v != v ? value : v; },
          y.template mutable_data<T>(), x.template data<T>());
    });
  }

 private:
  const float value_;
};

// Stops at the first element that does not pass.
class CheckOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  template <class T, class F>
  void require_all(const F& passes, const std::string& message) const {
    const Tensor& x = input(0);
    const T *begin = x.data<T>(), *end = begin + x.size();
    const T* found = std::find_if_not(begin, end, passes);
    CAFFE2_ENFORCE(found == end, describe_input(0), " is ", *found, " at element ", found - begin,
                   message);
  }

  void require_finite() const {
    dispatch<float, double>(input(0).type(), [&](auto zero) {
      require_all<decltype(zero)>([](auto v) { return std::isfinite(v); }, "");
    });
  }
};

class EnforceFiniteOperator : public CheckOperator {
 public:
  using CheckOperator::CheckOperator;

 protected:
  void run() override { require_finite(); }
};

class NanCheckOperator : public CheckOperator {
 public:
  using CheckOperator::CheckOperator;

 protected:
  void run() override {
    require_finite();
    output(0, input(0).shape(), input(0).type()).copy_from(input(0));
  }
};

class AssertOperator : public CheckOperator {
 public:
  explicit AssertOperator(const OperatorContext& context)
      : CheckOperator(context), message_(args().text("error_msg")) {
    if (!message_.empty()) message_ = "; " + message_;
  }

 protected:
  void run() override {
    dispatch<bool, int32_t, int64_t>(input(0).type(), [&](auto zero) {
      require_all<decltype(zero)>([](auto v) { return v != 0; }, message_);
    });
  }

 private:
  std::string message_;
};

class IsMemberOfOperator : public Operator {
 public:
  explicit IsMemberOfOperator(const OperatorContext& context) : Operator(context) {
    const Argument* value = args().given("value");
    if (value != nullptr) {
      integers_.assign(value->ints.begin(), value->ints.end());
      texts_.assign(value->strings.begin(), value->strings.end());
      floats_ = !value->floats.empty();
    }
    std::sort(texts_.begin(), texts_.end());
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    const bool strings = x.type() == DataType::kString;
    CAFFE2_ENFORCE(!args().has("dtype") || args().integer("dtype") == int64_t(x.type()),
                   "argument 'dtype' is ", args().integer("dtype"), "; ", describe_input(0),
                   " has type ", type_name(x.type()));
    CAFFE2_ENFORCE(!floats_ && (strings ? integers_ : std::vector<int64_t>()).empty() &&
                       (strings || texts_.empty()),
                   "argument 'value' needs ", strings ? "texts" : "integers", " for ",
                   describe_input(0), " of type ", type_name(x.type()));
    dispatch<bool, int32_t, int64_t, std::string>(x.type(), [&](auto zero) {
      using T = decltype(zero);
      Tensor& y = output(0, x.shape(), DataType::kBool);
      const T* values = x.template data<T>();
      bool* found = y.template mutable_data<bool>();
      if constexpr (std::is_same_v<T, std::string>) {
        for (int64_t i = 0; i < x.size(); i++) {
          found[i] = std::binary_search(texts_.begin(), texts_.end(), values[i]);
        }
      } else {
        std::vector<int64_t> known = integers_;
        if (std::is_same_v<T, bool>) {
          for (int64_t& value : known) value = value != 0;
        }
        std::sort(known.begin(), known.end());
        for (int64_t i = 0; i < x.size(); i++) {
          found[i] = std::binary_search(known.begin(), known.end(), int64_t{values[i]});
        }
      }
    });
  }

 private:
  std::vector<int64_t> integers_;
  std::vector<std::string> texts_;
  bool floats_ = false;
};

}  // namespace

REGISTER_CPU_OPERATOR(IsEmpty, IsEmptyOperator)
REGISTER_CPU_OPERATOR(HasElements, HasElementsOperator)
REGISTER_CPU_OPERATOR(IsNaN, IsNanOperator)
REGISTER_CPU_OPERATOR(ReplaceNaN, ReplaceNanOperator)
REGISTER_CPU_OPERATOR(EnforceFinite, EnforceFiniteOperator)
REGISTER_CPU_OPERATOR(NanCheck, NanCheckOperator)
REGISTER_CPU_OPERATOR(Assert, AssertOperator)
REGISTER_CPU_OPERATOR(IsMemberOf, IsMemberOfOperator)

}  // namespace caffe2
