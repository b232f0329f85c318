// Rows normalized or written in place, and values decoded from codes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/registry.h"
#include "operators/elements.h"
#include "operators/half.h"
#include "operators/sparse_rows.h"

namespace caffe2 {
namespace {

// T: float, or the bits of a number of 16.
template <class T>
class SparseNormalizeOperator : public SparseRowsOperator {
 public:
  explicit SparseNormalizeOperator(const OperatorContext& context)
      : SparseRowsOperator(context),
        only_longer_(args().boolean("use_max_norm")),
        norm_(args().real("norm")) {}

 protected:
  void run() override {
    const SparseRows rows = rows_at(0, 1);
    // Each row once, also where its number comes twice.
    auto* numbers = scratch<int64_t>(rows.count);
    std::copy_n(rows.index, rows.count, numbers);
    std::sort(numbers, numbers + rows.count);
    const int64_t* end = std::unique(numbers, numbers + rows.count);
    Tensor& out = output(0, input(0).shape(), input(0).type());
    out.copy_from(input(0));
    auto* values = static_cast<T*>(out.raw_mutable_data());
    for (const int64_t* row = numbers; row != end; row++) {
      normalize(rows.width, values + *row * rows.width);
    }
  }

 private:
  static double wide(float value) { return value; }
  static double wide(uint16_t value) { return half_to_float(value); }
  static void narrow(double value, float& out) { out = static_cast<float>(value); }
  static void narrow(double value, uint16_t& out) {
    out = float_to_half(static_cast<float>(value));
  }

  void normalize(int64_t n, T* row) const {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += wide(row[i]) * wide(row[i]);
    const double length = std::sqrt(squares);
    if (!(length > norm_) && (only_longer_ || !(length > 0))) return;
    for (int64_t i = 0; i < n; i++) narrow(wide(row[i]) * (norm_ / length), row[i]);
  }

  const bool only_longer_;
  const double norm_;
};

class CopyRowsOperator : public SparseRowsOperator {
 public:
  using SparseRowsOperator::SparseRowsOperator;

 protected:
  void run() override {
    const Tensor &whole = input(0), &row = input(2);
    CAFFE2_ENFORCE(whole.rank() == 2, describe_input(0), " has shape ", whole.shape().text(),
                   "; two dimensions are needed");
    CAFFE2_ENFORCE(input(1).rank() == 1, describe_input(1), " has shape ", input(1).shape().text(),
                   "; one dimension is needed");
    CAFFE2_ENFORCE(row.type() == whole.type() && row.shape() == Shape{whole.dim(1)},
                   describe_input(2), " has type ", type_name(row.type()), " and shape ",
                   row.shape().text(), "; a row of ", describe_input(0), " has ",
                   type_name(whole.type()), " and (", whole.dim(1), ",)");
    const SparseRows rows = rows_at(0, 1);
    Tensor& out = output(0, whole.shape(), whole.type());
    out.copy_from(whole);
    for (int64_t k = 0; k < rows.count; k++) {
      copy_elements(row, 0, rows.width, out, rows.index[k] * rows.width);
    }
  }
};

class CopyRowsGradientOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    Tensor& out = output(0, input(0).shape(), input(0).type());
    out.copy_from(input(0));
  }
};

class CodesOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  // The number of values in the codebook, input 0.
  int64_t codebook_size() const {
    CAFFE2_ENFORCE(input(0).rank() == 1, describe_input(0), " has shape ", input(0).shape().text(),
                   "; one dimension is needed");
    return input(0).size();
  }

  // Calls f(position, code) for all codes of input i.
  template <class F>
  void for_codes(int i, const F& f) const {
    const Tensor& codes = input(i);
    const bool bytes = codes.type() == DataType::kUInt8;
    CAFFE2_ENFORCE(bytes || codes.type() == DataType::kInt32, describe_input(i), " has type ",
                   type_name(codes.type()), "; codes are uint8 or int32");
    for (int64_t k = 0; k < codes.size(); k++) {
      f(k, bytes ? int64_t{codes.data<uint8_t>()[k]} : int64_t{codes.data<int32_t>()[k]});
    }
  }
  void check_codes(int i, int64_t count) const {
    for_codes(i, [&](int64_t k, int64_t code) {
      CAFFE2_ENFORCE(code >= 0 && code < count, describe_input(i), " holds ", code, " at position ",
                     k, "; the codebook has ", count, " values");
    });
  }
};

class QuantDecodeOperator : public CodesOperator {
 public:
  explicit QuantDecodeOperator(const OperatorContext& context) : CodesOperator(context) {
    const size_t inputs = context.def.input.size(), outputs = context.def.output.size();
    CAFFE2_ENFORCE(inputs == outputs + 1, "it has ", outputs, " outputs for ", inputs - 1,
                   " tensors of codes");
  }

 protected:
  void run() override {
    const int64_t count = codebook_size();
    for (int i = 1; i < inputs(); i++) check_codes(i, count);
    std::vector<float*> decoded;
    for (int i = 1; i < inputs(); i++) {
      decoded.push_back(output(i - 1, input(i).shape(), DataType::kFloat).mutable_data<float>());
    }
    const auto* codebook = input(0).data<float>();
    for (int i = 1; i < inputs(); i++) {
      for_codes(i, [&](int64_t k, int64_t code) { decoded[i - 1][k] = codebook[code]; });
    }
  }
};

// Inputs: the codebook, all codes, and as many gradients.
class QuantDecodeGradientOperator : public CodesOperator {
 public:
  explicit QuantDecodeGradientOperator(const OperatorContext& context) : CodesOperator(context) {
    const size_t inputs = context.def.input.size();
    CAFFE2_ENFORCE(inputs > 1 && inputs % 2 == 1, "it has ", inputs,
                   " inputs; a codebook, codes and as many gradients are needed");
  }

 protected:
  void run() override {
    const int64_t count = codebook_size();
    const int pairs = (inputs() - 1) / 2;
    for (int i = 1; i <= pairs; i++) {
      const Tensor& gradient = input(i + pairs);
      CAFFE2_ENFORCE(gradient.type() == DataType::kFloat, describe_input(i + pairs), " has type ",
                     type_name(gradient.type()), "; a gradient is float");
      require_same_shape(describe_input(i + pairs), gradient, describe_input(i), input(i));
      check_codes(i, count);
    }
    auto* sums = scratch<double>(count);
    float* out = output(0, input(0).shape(), DataType::kFloat).mutable_data<float>();
    std::fill_n(sums, count, 0);
    for (int i = 1; i <= pairs; i++) {
      const auto* gradient = input(i + pairs).data<float>();
      for_codes(i, [&](int64_t k, int64_t code) { sums[code] += gradient[k]; });
    }
    for (int64_t k = 0; k < count; k++) out[k] = static_cast<float>(sums[k]);
  }
};

class ByteWeightDequantOperator : public Operator {
 public:
  explicit ByteWeightDequantOperator(const OperatorContext& context)
      : Operator(context),
        low_(args().real("min")),
        range_(double{args().real("max")} - low_),
        shape_(args().integers("shape")) {}

 protected:
  void run() override {
    Shape shape;
    for (const int64_t dim : shape_) shape.append(dim);
    CAFFE2_ENFORCE(shape.size() == input(0).size(), "argument 'shape' is ", shape.text(), "; ",
                   describe_input(0), " has shape ", input(0).shape().text());
    float* out = output(0, shape, DataType::kFloat).mutable_data<float>();
    const auto* codes = input(0).data<uint8_t>();
    for (int64_t i = 0; i < input(0).size(); i++) {
      out[i] = static_cast<float>(codes[i] / 255.0 * range_ + low_);
    }
  }

 private:
  const double low_, range_;
  const std::vector<int64_t> shape_;
};

}  // namespace

REGISTER_CPU_OPERATOR(SparseNormalize, SparseNormalizeOperator<float>)
REGISTER_CPU_OPERATOR(Float16SparseNormalize, SparseNormalizeOperator<uint16_t>)
REGISTER_CPU_OPERATOR(CopyRowsToTensor, CopyRowsOperator)
REGISTER_CPU_OPERATOR(CopyRowsToTensorGradient, CopyRowsGradientOperator)
REGISTER_CPU_OPERATOR(QuantDecode, QuantDecodeOperator)
REGISTER_CPU_OPERATOR(QuantDecodeGradient, QuantDecodeGradientOperator)
REGISTER_CPU_OPERATOR(ByteWeightDequant, ByteWeightDequantOperator)

}  // namespace caffe2
