// FC: Y = X W^T + b, FCTransposed: Y = X W + b, their gradients, and MatMul.
#include <algorithm>
#include <utility>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/packed_weights.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// X as [m, k], W as [n, k] or, transposed, as [k, n], b as [n].
template <bool kTransposed>
class FullyConnected : public Operator {
 public:
  explicit FullyConnected(const OperatorContext& context)
      : Operator(context), axis_(args().int32("axis")), axis_w_(args().int32("axis_w")) {}

 protected:
  struct Sizes {
    int64_t m, n, k;
    int axis;
  };

  Sizes sizes() const {
    const Tensor &x = input(0), &w = input(1);
    const int axis = canonical_axis(axis_, x.rank(), describe_input(0));
    const int axis_w = canonical_axis(axis_w_, w.rank(), describe_input(1));
    int64_t n = w.shape().product(0, axis_w), k_w = w.shape().product(axis_w, w.rank());
    if (kTransposed) std::swap(n, k_w);
    const Sizes s{x.shape().product(0, axis), n, x.shape().product(axis, x.rank()), axis};
    CAFFE2_ENFORCE(s.k == k_w, describe_input(0), " has shape ", x.shape().text(), ", ", s.k,
                   " features from axis ", axis, " on, but ", describe_input(1), " has shape ",
                   w.shape().text(), ", which takes ", k_w);
    return s;
  }

 private:
  const int axis_, axis_w_;
};

template <bool kTransposed>
class FCOperator : public FullyConnected<kTransposed> {
  using Base = FullyConnected<kTransposed>;
  using Base::describe_input, Base::engine, Base::fused_bounds, Base::input, Base::kernels,
      Base::output, Base::parallel, Base::scratch, Base::sizes;

 public:
  using Base::Base;
  unsigned fuses() const override { return kFusesBounds; }
  bool only_reads(int i) const override { return i == 0; }

 protected:
  void run() override {
    const Tensor &x = input(0), &w = input(1), &b = input(2);
    const typename Base::Sizes s = sizes();
    CAFFE2_ENFORCE(b.shape() == Shape{s.n}, describe_input(2), " has shape ", b.shape().text(),
                   "; (", s.n, ",) is needed, as ", describe_input(1), " has shape ",
                   w.shape().text());
    Shape shape;
    for (int i = 0; i < s.axis; i++) shape.append(x.dim(i));
    shape.append(s.n);
    kernels::Gemm g;
    g.trans_b = !kTransposed;
    g.m = s.m, g.n = s.n, g.k = s.k;
    g.lda = s.k, g.ldb = kTransposed ? s.n : s.k, g.ldc = s.n;
    g.bias = b.data<float>();
    g.bounds = fused_bounds();
    // Rows turn round one after the other: after an even number of them all is as it was.
    g.backwards = backwards_;
    backwards_ ^= g.m % 2 == 1;
    Tensor& y = output(0, shape, DataType::kFloat);
    void* buffer = scratch(kernels().gemm_scratch_bytes(g, parallel().threads));
    if (const float* packed = packed_weights(g)) {
      kernels().gemm_packed(g, x.data<float>(), packed, y.mutable_data<float>(), buffer,
                            parallel());
    } else {
      kernels().gemm(g, x.data<float>(), w.data<float>(), y.mutable_data<float>(), buffer,
                     parallel());
    }
  }

 private:
  // W in the kernel's order, or null where W as it is serves as well: for vectors and a few rows,
  // and for weights not seen before, which training may change before the next run. Both ways add
  // in the same order, so that runs agree bit for bit.
  const float* packed_weights(const kernels::Gemm& g) {
    if (kTransposed || g.m <= 3 || g.n <= 1 || g.k == 0) return nullptr;
    const Tensor& w = input(1);
    kernels::ConvShape form;  // as of a pixel
    form.c = g.k, form.k = g.n;
    if (!packed_.bound(w, form)) {
      packed_.bind(w, form);
      return nullptr;
    }
    if (!packed_.data()) {
      packed_.pack(w, form, 0, engine().allocator(), kernels().gemm_packed_bytes(g.n, g.k),
                   [&](void* out) {
                     kernels().gemm_pack(g, w.data<float>(), static_cast<float*>(out), parallel());
                   });
      w.storage()->drop_pages();
    }
    return static_cast<const float*>(packed_.data());
  }

  bool backwards_ = false;
  PackedWeights packed_;
};

// Inputs X, W, dY; outputs dW, db and, where wanted, dX.
template <bool kTransposed>
class FCGradientOperator : public FullyConnected<kTransposed> {
  using Base = FullyConnected<kTransposed>;
  using Base::describe_input, Base::input, Base::kernels, Base::output, Base::outputs,
      Base::parallel, Base::scratch, Base::sizes;

 public:
  using Base::Base;

 protected:
  void run() override {
    const Tensor &x = input(0), &w = input(1), &dy = input(2);
    const typename Base::Sizes s = sizes();
    CAFFE2_ENFORCE(dy.size() == checked_multiply(s.m, s.n), describe_input(2), " has shape ",
                   dy.shape().text(), "; ", s.m, " x ", s.n, " values are needed");
    kernels::Gemm weights;  // dW[n, k] = dY^T X, or dW[k, n] = X^T dY
    weights.trans_a = true;
    weights.m = kTransposed ? s.k : s.n, weights.n = kTransposed ? s.n : s.k, weights.k = s.m;
    weights.lda = weights.m, weights.ldb = weights.n, weights.ldc = weights.n;
    kernels::Gemm data;  // dX[m, k] = dY W, or dY W^T
    data.trans_b = kTransposed;
    data.m = s.m, data.n = s.k, data.k = s.n;
    data.lda = s.n, data.ldb = kTransposed ? s.n : s.k, data.ldc = s.k;
    const bool wants_dx = outputs() == 3;
    const int threads = parallel().threads;
    Tensor& dw = output(0, w.shape(), DataType::kFloat);
    Tensor& db = output(1, {s.n}, DataType::kFloat);
    Tensor* dx = wants_dx ? &output(2, x.shape(), DataType::kFloat) : nullptr;
    void* buffer = scratch(std::max(kernels().gemm_scratch_bytes(weights, threads),
                                    wants_dx ? kernels().gemm_scratch_bytes(data, threads) : 0));
    const float *dyp = dy.data<float>(), *xp = x.data<float>();
    kernels().gemm(weights, kTransposed ? xp : dyp, kTransposed ? dyp : xp,
                   dw.mutable_data<float>(), buffer, parallel());
    kernels().reduce(kernels::Reduction::kSum, 1, s.m, s.n, dyp, db.mutable_data<float>(),
                     parallel());
    if (wants_dx) {
      kernels().gemm(data, dyp, w.data<float>(), dx->mutable_data<float>(), buffer, parallel());
    }
  }
};

// Y = A B, both flattened to matrices; an input 2 gives Y its shape.
class MatMulOperator : public Operator {
 public:
  explicit MatMulOperator(const OperatorContext& context)
      : Operator(context),
        axis_a_(args().int32("axis_a")),
        axis_b_(args().int32("axis_b")),
        trans_a_(args().boolean("trans_a")),
        trans_b_(args().boolean("trans_b")) {}

 protected:
  void run() override {
    const Tensor &a = input(0), &b = input(1);
    const int axis_a = canonical_axis(axis_a_, a.rank(), describe_input(0));
    const int axis_b = canonical_axis(axis_b_, b.rank(), describe_input(1));
    kernels::Gemm g;
    g.trans_a = trans_a_, g.trans_b = trans_b_;
    g.m = a.shape().product(0, axis_a), g.k = a.shape().product(axis_a, a.rank());
    g.lda = g.k;
    if (trans_a_) std::swap(g.m, g.k);
    int64_t k = b.shape().product(0, axis_b);
    g.n = b.shape().product(axis_b, b.rank());
    g.ldb = g.n;
    if (trans_b_) std::swap(k, g.n);
    g.ldc = g.n;
    CAFFE2_ENFORCE(g.k == k, describe_input(0), " has shape ", a.shape().text(), ", ", g.k,
                   " columns after flattening and trans_a, but ", describe_input(1), " has shape ",
                   b.shape().text(), ", ", k, " rows after flattening and trans_b");
    Shape shape{g.m, g.n};
    if (has_input(2)) {
      shape = input(2).shape();
      CAFFE2_ENFORCE(shape.size() == checked_multiply(g.m, g.n), describe_input(2), " has shape ",
                     shape.text(), "; ", g.m, " x ", g.n, " values are needed");
    }
    Tensor& y = output(0, shape, DataType::kFloat);
    void* buffer = scratch(kernels().gemm_scratch_bytes(g, parallel().threads));
    kernels().gemm(g, a.data<float>(), b.data<float>(), y.mutable_data<float>(), buffer,
                   parallel());
  }

 private:
  const int axis_a_, axis_b_;
  const bool trans_a_, trans_b_;
};

}  // namespace

REGISTER_CPU_OPERATOR(MatMul, MatMulOperator)
REGISTER_CPU_OPERATOR(FC, FCOperator<false>)
REGISTER_CPU_OPERATOR(FbFCPacked, FCOperator<false>)
REGISTER_CPU_OPERATOR(FCGradient, FCGradientOperator<false>)
REGISTER_CPU_OPERATOR(FCTransposed, FCOperator<true>)
REGISTER_CPU_OPERATOR(FCTransposedGradient, FCGradientOperator<true>)

}  // namespace caffe2
