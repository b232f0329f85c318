// Tensors of strings: parts, comparisons and joins.
#include <cstdio>
#include <string>
#include <string_view>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/dispatch.h"

namespace caffe2 {
namespace {

// Each string becomes another one.
class StringPartOperator : public Operator {
 public:
  explicit StringPartOperator(const OperatorContext& context)
      : Operator(context), length_(static_cast<size_t>(args().integer("length"))) {}

 protected:
  size_t length() const { return length_; }
  virtual std::string part(const std::string& text) const = 0;

  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kString);
    const auto* in = x.data<std::string>();
    auto* out = y.mutable_data<std::string>();
    for (int64_t i = 0; i < x.size(); i++) out[i] = part(in[i]);
  }

 private:
  const size_t length_;
};

class StringPrefixOperator : public StringPartOperator {
 public:
  using StringPartOperator::StringPartOperator;

 protected:
  std::string part(const std::string& text) const override { return text.substr(0, length()); }
};

class StringSuffixOperator : public StringPartOperator {
 public:
  using StringPartOperator::StringPartOperator;

 protected:
  std::string part(const std::string& text) const override {
    return text.size() > length() ? text.substr(text.size() - length()) : text;
  }
};

// Each string gives true or false.
class StringTestOperator : public Operator {
 public:
  StringTestOperator(const OperatorContext& context, const char* argument)
      : Operator(context), text_(args().text(argument)) {}

 protected:
  virtual bool test(std::string_view each, std::string_view text) const = 0;

  void run() override {
    const Tensor& x = input(0);
    Tensor& y = output(0, x.shape(), DataType::kBool);
    const auto* in = x.data<std::string>();
    bool* out = y.mutable_data<bool>();
    for (int64_t i = 0; i < x.size(); i++) out[i] = test(in[i], text_);
  }

 private:
  const std::string text_;
};

class StringStartsWithOperator : public StringTestOperator {
 public:
  explicit StringStartsWithOperator(const OperatorContext& context)
      : StringTestOperator(context, "prefix") {}

 protected:
  bool test(std::string_view each, std::string_view text) const override {
    return each.starts_with(text);
  }
};

class StringEndsWithOperator : public StringTestOperator {
 public:
  explicit StringEndsWithOperator(const OperatorContext& context)
      : StringTestOperator(context, "suffix") {}

 protected:
  bool test(std::string_view each, std::string_view text) const override {
    return each.ends_with(text);
  }
};

class StringEqualsOperator : public StringTestOperator {
 public:
  explicit StringEqualsOperator(const OperatorContext& context)
      : StringTestOperator(context, "text") {}

 protected:
  bool test(std::string_view each, std::string_view text) const override { return each == text; }
};

class StringJoinOperator : public Operator {
 public:
  explicit StringJoinOperator(const OperatorContext& context)
      : Operator(context),
        delimiter_(args().text("delimiter")),
        by_column_(args().integer("axis") == 1) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() == 1 || x.rank() == 2, describe_input(0), " has shape ",
                   x.shape().text(), "; 1 or 2 dimensions are needed");
    const int64_t rows = x.dim(0), columns = x.rank() == 2 ? x.dim(1) : 1;
    Tensor& y = output(0, {by_column_ ? columns : rows}, DataType::kString);
    auto* out = y.mutable_data<std::string>();
    dispatch<float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, bool,
             std::string>(x.type(), [&](auto kind) {
      using T = decltype(kind);
      const T* in = x.data<T>();
      for (int64_t i = 0; i < y.size(); i++) {
        std::string joined;
        for (int64_t j = 0; j < (by_column_ ? rows : columns); j++) {
          joined += text(by_column_ ? in[j * columns + i] : in[i * columns + j]) + delimiter_;
        }
        out[i] = joined;
      }
    });
  }

 private:
  static std::string text(const std::string& value) { return value; }
  // As C++ streams write numbers: six digits.
  static std::string text(double value) {
    char digits[32];
    std::snprintf(digits, sizeof(digits), "%g", value);
    return digits;
  }
  static std::string text(float value) { return text(static_cast<double>(value)); }
  template <class T>
  static std::string text(T value) {
    return std::to_string(static_cast<int64_t>(value));
  }

  const std::string delimiter_;
  const bool by_column_;
};

}  // namespace

REGISTER_CPU_OPERATOR(StringPrefix, StringPrefixOperator)
REGISTER_CPU_OPERATOR(StringSuffix, StringSuffixOperator)
REGISTER_CPU_OPERATOR(StringStartsWith, StringStartsWithOperator)
REGISTER_CPU_OPERATOR(StringEndsWith, StringEndsWithOperator)
REGISTER_CPU_OPERATOR(StringEquals, StringEqualsOperator)
REGISTER_CPU_OPERATOR(StringJoin, StringJoinOperator)

}  // namespace caffe2
