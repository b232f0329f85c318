// LayerNorm and RMSNorm, with gradients: each row is normalized by itself.
#include <algorithm>
#include <cmath>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

using kernels::ChannelShape;

// Data as [rows][columns]: statistics belong to rows, gamma and beta to columns.
class RowNormBase : public Operator {
 public:
  RowNormBase(const OperatorContext& context, float epsilon)
      : Operator(context), axis_(args().int32("axis")), epsilon_(epsilon) {}

 protected:
  struct Rows {
    int axis;
    int64_t rows, columns;
    ChannelShape by_row() const { return {1, rows, columns}; }
    ChannelShape by_column() const { return {rows, columns, 1}; }
    float count() const { return static_cast<float>(std::max<int64_t>(columns, 1)); }
  };

  Rows rows(int i) const {
    const Shape& x = input(i).shape();
    const int axis = canonical_axis(axis_, x.rank(), describe_input(i));
    return {axis, x.product(0, axis), x.product(axis, x.rank())};
  }

  void require_size(int i, int64_t size, int like) const {
    CAFFE2_ENFORCE(input(i).size() == size, describe_input(i), " has shape ",
                   input(i).shape().text(), "; ", size, " elements are needed, ",
                   describe_input(like), " has shape ", input(like).shape().text());
  }

  float* buffer(int64_t values) { return scratch<float>(values); }

  // inverse = 1 / sqrt(mean of (x - mean)^2 + epsilon) of each row; mean may be null: 0.
  void inverse_deviation(const Rows& r, const float* x, const float* mean, float* inverse) {
    kernels().channel_products(r.by_row(), x, mean, x, mean, inverse, parallel());
    for (int64_t i = 0; i < r.rows; i++) {
      inverse[i] = 1 / std::sqrt(inverse[i] / r.count() + epsilon_);
    }
  }

  // The gradient of x; mean is null where rows are not centered, gamma where there is none.
  // work: gradient_floats() floats.
  void gradient(const Rows& r, const float* dy, const float* x, const float* mean,
                const float* inverse, const float* gamma, float* work, float* dx) {
    float *along = work, *offset = along + r.rows, *slope = offset + r.rows;
    if (gamma) {
      kernels().channel_affine(r.by_column(), dy, nullptr, gamma, nullptr, slope, parallel());
    }
    const float* g = gamma ? slope : dy;
    kernels().channel_products(r.by_row(), g, nullptr, x, mean, along, parallel());
    if (mean) kernels().channel_sums(r.by_row(), g, offset, parallel());
    for (int64_t i = 0; i < r.rows; i++) {
      along[i] *= -inverse[i] * inverse[i] * inverse[i] / r.count();
      offset[i] = mean ? offset[i] * -inverse[i] / r.count() : 0;
    }
    kernels().channel_combine(r.by_row(), g, inverse, x, mean, along, offset, dx, parallel());
  }
  static int64_t gradient_floats(const Rows& r, bool has_gamma) {
    return 2 * r.rows + (has_gamma ? r.rows * r.columns : 0);
  }

  // normal: as many floats as x has.
  void affine_gradient(const Rows& r, const float* dy, const float* x, const float* mean,
                       const float* inverse, float* normal, float* dgamma, float* dbeta) {
    kernels().channel_affine(r.by_row(), x, mean, inverse, nullptr, normal, parallel());
    kernels().channel_products(r.by_column(), dy, nullptr, normal, nullptr, dgamma, parallel());
    kernels().channel_sums(r.by_column(), dy, dbeta, parallel());
  }

 private:
  const int axis_;
  const float epsilon_;
};

class LayerNormOperator : public RowNormBase {
 public:
  explicit LayerNormOperator(const OperatorContext& context)
      : RowNormBase(context, Arguments(context.def, context.schema).real("epsilon")),
        affine_(args().boolean("elementwise_affine")) {
    CAFFE2_ENFORCE(!affine_ || context.def.input.size() == 3, "it has ", context.def.input.size(),
                   " inputs; with elementwise_affine=1 it has 3");
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Rows r = rows(0);
    if (affine_) {
      require_size(1, r.columns, 0);
      require_size(2, r.columns, 0);
    }
    Shape moments;
    for (int i = 0; i < r.axis; i++) moments.append(x.dim(i));
    moments.append(1);
    float* inverse = buffer(r.rows);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    Tensor& mean_output = output(1, moments, DataType::kFloat);
    Tensor& std_output = output(2, moments, DataType::kFloat);
    const float* in = x.data<float>();
    float *out = y.mutable_data<float>(), *mean = mean_output.mutable_data<float>();
    float* std = std_output.mutable_data<float>();
    kernels().channel_sums(r.by_row(), in, mean, parallel());
    for (int64_t i = 0; i < r.rows; i++) mean[i] /= r.count();
    inverse_deviation(r, in, mean, inverse);
    for (int64_t i = 0; i < r.rows; i++) std[i] = 1 / inverse[i];
    kernels().channel_affine(r.by_row(), in, mean, inverse, nullptr, out, parallel());
    if (affine_) {
      kernels().channel_affine(r.by_column(), out, nullptr, input(1).data<float>(),
                               input(2).data<float>(), out, parallel());
    }
  }

 private:
  const bool affine_;
};

// Inputs dY, Y, mean, std, X, gamma.
class LayerNormGradientOperator : public RowNormBase {
 public:
  explicit LayerNormGradientOperator(const OperatorContext& context)
      : RowNormBase(context, 0), affine_(args().boolean("elementwise_affine")) {
    const size_t inputs = context.def.input.size(), outputs = context.def.output.size();
    CAFFE2_ENFORCE(affine_ ? inputs == 6 && outputs == 3 : outputs == 1, "it has ", inputs,
                   " inputs and ", outputs, " outputs; with elementwise_affine=", affine_,
                   affine_ ? " it has 6 and 3" : " it has 1 output");
  }

 protected:
  void run() override {
    const Tensor &dy = input(0), &x = input(4);
    const Rows r = rows(4);
    require_same_shape(describe_input(0), dy, describe_input(4), x);
    require_size(2, r.rows, 4);
    require_size(3, r.rows, 4);
    if (affine_) require_size(5, r.columns, 4);
    float *inverse = buffer(r.rows), *work = buffer(gradient_floats(r, affine_));
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    const float *in = x.data<float>(), *grad = dy.data<float>(), *mean = input(2).data<float>();
    const float* std = input(3).data<float>();
    const float* gamma = affine_ ? input(5).data<float>() : nullptr;
    float *dgamma = nullptr, *dbeta = nullptr;
    if (affine_) {
      dgamma = output(1, input(5).shape(), DataType::kFloat).mutable_data<float>();
      dbeta = output(2, input(5).shape(), DataType::kFloat).mutable_data<float>();
    }
    for (int64_t i = 0; i < r.rows; i++) inverse[i] = 1 / std[i];
    if (affine_) affine_gradient(r, grad, in, mean, inverse, work, dgamma, dbeta);
    gradient(r, grad, in, mean, inverse, gamma, work, dx.mutable_data<float>());
  }

 private:
  const bool affine_;
};

class RMSNormBase : public RowNormBase {
 public:
  using RowNormBase::RowNormBase;

 protected:
  // Whether the inputs are double; they are of one type.
  bool is_double() const {
    for (int i = 1; i < inputs(); i++) {
      require_same_type(describe_input(i), input(i), describe_input(0), input(0));
    }
    return input(0).type() == DataType::kDouble;
  }
};

class RMSNormOperator : public RMSNormBase {
 public:
  explicit RMSNormOperator(const OperatorContext& context)
      : RMSNormBase(context, Arguments(context.def, context.schema).real("eps")),
        epsilon_(args().real("eps")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const Rows r = rows(0);
    require_size(1, r.columns, 0);
    require_size(2, r.columns, 0);
    Shape outer;
    for (int i = 0; i < r.axis; i++) outer.append(x.dim(i));
    if (is_double()) return run_double(r, outer);
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    float* inverse = output(1, outer, DataType::kFloat).mutable_data<float>();
    float* out = y.mutable_data<float>();
    inverse_deviation(r, x.data<float>(), nullptr, inverse);
    kernels().channel_affine(r.by_row(), x.data<float>(), nullptr, inverse, nullptr, out,
                             parallel());
    kernels().channel_affine(r.by_column(), out, nullptr, input(1).data<float>(),
                             input(2).data<float>(), out, parallel());
  }

 private:
  void run_double(const Rows& r, const Shape& outer) {
    const auto *x = input(0).data<double>(), *gamma = input(1).data<double>();
    const auto* beta = input(2).data<double>();
    auto* y = output(0, input(0).shape(), DataType::kDouble).mutable_data<double>();
    auto* rrms = output(1, outer, DataType::kDouble).mutable_data<double>();
    for (int64_t i = 0; i < r.rows; i++, x += r.columns, y += r.columns) {
      double squares = 0;
      for (int64_t k = 0; k < r.columns; k++) squares += x[k] * x[k];
      rrms[i] = 1 / std::sqrt(squares / r.count() + epsilon_);
      for (int64_t k = 0; k < r.columns; k++) y[k] = x[k] * rrms[i] * gamma[k] + beta[k];
    }
  }

  const double epsilon_;
};

// Inputs dY, X, gamma, rrms.
class RMSNormGradientOperator : public RMSNormBase {
 public:
  explicit RMSNormGradientOperator(const OperatorContext& context) : RMSNormBase(context, 0) {}

 protected:
  void run() override {
    const Tensor &dy = input(0), &x = input(1);
    const Rows r = rows(1);
    require_same_shape(describe_input(0), dy, describe_input(1), x);
    require_size(2, r.columns, 1);
    require_size(3, r.rows, 1);
    if (is_double()) return run_double(r);
    float* work = buffer(gradient_floats(r, true));
    Tensor& dx = output(0, x.shape(), DataType::kFloat);
    float* dgamma = output(1, input(2).shape(), DataType::kFloat).mutable_data<float>();
    float* dbeta = output(2, input(2).shape(), DataType::kFloat).mutable_data<float>();
    const float *in = x.data<float>(), *grad = dy.data<float>(), *inverse = input(3).data<float>();
    affine_gradient(r, grad, in, nullptr, inverse, work, dgamma, dbeta);
    gradient(r, grad, in, nullptr, inverse, input(2).data<float>(), work, dx.mutable_data<float>());
  }

 private:
  void run_double(const Rows& r) {
    const auto *dy = input(0).data<double>(), *x = input(1).data<double>();
    const auto *gamma = input(2).data<double>(), *rrms = input(3).data<double>();
    auto* dx = output(0, input(1).shape(), DataType::kDouble).mutable_data<double>();
    auto* dgamma = output(1, input(2).shape(), DataType::kDouble).mutable_data<double>();
    auto* dbeta = output(2, input(2).shape(), DataType::kDouble).mutable_data<double>();
    std::fill_n(dgamma, r.columns, 0);
    std::fill_n(dbeta, r.columns, 0);
    for (int64_t i = 0; i < r.rows; i++, dy += r.columns, x += r.columns, dx += r.columns) {
      double along = 0;
      for (int64_t k = 0; k < r.columns; k++) {
        along += dy[k] * gamma[k] * x[k];
        dgamma[k] += dy[k] * x[k] * rrms[i];
        dbeta[k] += dy[k];
      }
      along *= rrms[i] * rrms[i] / r.count();
      for (int64_t k = 0; k < r.columns; k++) {
        dx[k] = (dy[k] * gamma[k] - x[k] * along) * rrms[i];
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(LayerNorm, LayerNormOperator)
REGISTER_CPU_OPERATOR(LayerNormGradient, LayerNormGradientOperator)
REGISTER_CPU_OPERATOR(RMSNorm, RMSNormOperator)
REGISTER_CPU_OPERATOR(RMSNormGradient, RMSNormGradientOperator)

}  // namespace caffe2
