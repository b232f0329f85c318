// Matrices and tables in the tensor-train format: products of small cores.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/registry.h"
#include "operators/segments.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

kernels::Gemm product(int64_t m, int64_t n, int64_t k, bool trans_a = false, bool trans_b = false) {
  kernels::Gemm g;
  g.trans_a = trans_a, g.trans_b = trans_b;
  g.m = m, g.n = n, g.k = k;
  g.lda = trans_a ? m : k, g.ldb = trans_b ? k : n, g.ldc = n;
  return g;
}

// C += the product.
kernels::Gemm added(kernels::Gemm g) {
  g.beta = 1;
  return g;
}

class TensorTrainOperator : public Operator {
 public:
  explicit TensorTrainOperator(const OperatorContext& context) : Operator(context) {
    const auto inputs = args().integers("inp_sizes"), outputs = args().integers("out_sizes");
    const auto ranks = args().integers("tt_ranks");
    CAFFE2_ENFORCE(
        !inputs.empty() && outputs.size() == inputs.size() && ranks.size() == inputs.size() + 1,
        "it has ", inputs.size(), " inp_sizes, ", outputs.size(), " out_sizes and ", ranks.size(),
        " tt_ranks; needed are n, n and n + 1");
    CAFFE2_ENFORCE(ranks.front() == 1 && ranks.back() == 1,
                   "the first and the last of tt_ranks are ", ranks.front(), " and ", ranks.back(),
                   "; both are 1");
    for (size_t k = inputs.size(); k-- > 0;) {
      cores_.push_back({inputs[k], ranks[k + 1], ranks[k], outputs[k]});
      taken_ = checked_multiply(taken_, inputs[k]);
      given_ = checked_multiply(given_, outputs[k]);
      values_ += checked_multiply(checked_multiply(inputs[k], ranks[k + 1]),
                                  checked_multiply(ranks[k], outputs[k]));
    }
  }

 protected:
  void run() override {
    const Tensor &x = input(0), &b = input(1), &cores = input(2);
    CAFFE2_ENFORCE(x.rank() == 2 && x.dim(1) == taken_, describe_input(0), " has shape ",
                   x.shape().text(), "; two dimensions and ", taken_, " columns are needed");
    CAFFE2_ENFORCE(b.shape() == Shape{given_}, describe_input(1), " has shape ", b.shape().text(),
                   "; (", given_, ",) is needed");
    CAFFE2_ENFORCE(cores.size() == values_, describe_input(2), " has shape ", cores.shape().text(),
                   "; ", values_, " elements are needed");
    const int64_t rows = x.dim(0);
    int64_t largest = 0, left = taken_, outputs = 1;
    int64_t bytes = 0;
    for (const Core& core : cores_) {
      left /= core.input;
      bytes = std::max(bytes, kernels().gemm_scratch_bytes(core.contract(outputs), 1));
      outputs = checked_multiply(outputs, core.output);
      largest = std::max(largest, checked_multiply(checked_multiply(left, core.before), outputs));
    }
    auto* work = scratch<float>(checked_multiply(largest, 2));
    void* buffer = scratch(bytes);
    Tensor& y = output(0, {rows, given_}, DataType::kFloat);
    auto* out = y.mutable_data<float>();
    for (int64_t row = 0; row < rows; row++) {
      const float* found = x.data<float>() + row * taken_;
      contract(found, cores.data<float>(), work, work + largest, buffer, out + row * given_);
    }
    kernels().add_row(rows, given_, out, b.data<float>(), out, parallel());
  }

 private:
  struct Core {
    int64_t input, behind, before, output;
    int64_t size() const { return input * behind * before * output; }
    // [before, output][so far] = core^T * [input, behind][so far]
    kernels::Gemm contract(int64_t so_far) const {
      return product(before * output, so_far, input * behind, true);
    }
  };

  // One row: found is [inputs that are left][rank][outputs so far].
  void contract(const float* found, const float* core, float* target, float* other, void* buffer,
                float* y) const {
    const kernels::Parallel alone;
    int64_t left = taken_, outputs = 1;
    for (size_t k = 0; k < cores_.size(); k++) {
      const Core& c = cores_[k];
      const kernels::Gemm g = c.contract(outputs);
      left /= c.input;
      float* to = k + 1 == cores_.size() ? y : target;
      for (int64_t l = 0; l < left; l++) {
        kernels().gemm(g, core, found + l * g.k * g.n, to + l * g.m * g.n, buffer, alone);
      }
      core += c.size();
      outputs *= c.output;
      found = to;
      std::swap(target, other);
    }
  }

  std::vector<Core> cores_;  // the last one first, as they lie in memory
  int64_t taken_ = 1, given_ = 1, values_ = 0;
};

// The table of three cores: core k is (rows, rank, columns, next rank).
struct Cores {
  int64_t rows[3], columns[3], rank[4];

  int64_t width() const { return columns[0] * columns[1] * columns[2]; }
  // products so far of one index
  int64_t first() const { return columns[0] * rank[1]; }
  int64_t second() const { return columns[0] * columns[1] * rank[2]; }
  int64_t size(int k) const { return rank[k] * columns[k] * rank[k + 1]; }  // of one row

  kernels::Gemm second_product() const {
    return product(columns[0], columns[1] * rank[2], rank[1]);
  }
  kernels::Gemm row_product() const {
    return product(columns[0] * columns[1], columns[2], rank[2]);
  }
  // The gradients of what they multiply.
  kernels::Gemm d_second() const {
    return product(columns[0] * columns[1], rank[2], columns[2], false, true);
  }
  kernels::Gemm d_core2() const {
    return added(product(rank[2], columns[2], columns[0] * columns[1], true));
  }
  kernels::Gemm d_core1() const {
    return added(product(rank[1], columns[1] * rank[2], columns[0], true));
  }
  kernels::Gemm d_core0() const {
    return added(product(columns[0], rank[1], columns[1] * rank[2], false, true));
  }
};

class TableOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  // Of inputs 0, 1 and 2.
  Cores cores() const {
    Cores c{};
    c.rank[0] = c.rank[3] = 1;
    for (int k = 0; k < 3; k++) {
      CAFFE2_ENFORCE(input(k).rank() == 4, describe_input(k), " has shape ",
                     input(k).shape().text(), "; four dimensions are needed");
      c.rows[k] = input(k).dim(0);
      c.columns[k] = input(k).dim(2);
      if (k > 0) c.rank[k] = input(k).dim(1);
    }
    CAFFE2_ENFORCE(input(0).dim(1) == 1 && input(0).dim(3) == c.rank[1] &&
                       input(1).dim(3) == c.rank[2] && input(2).dim(3) == 1,
                   "the cores have shapes ", input(0).shape().text(), ", ", input(1).shape().text(),
                   " and ", input(2).shape().text(), ", whose ranks do not go together");
    int64_t all = 1;  // no product of these is larger
    for (const int64_t n : c.columns) all = checked_multiply(all, std::max<int64_t>(n, 1));
    for (const int64_t n : c.rank) all = checked_multiply(all, std::max<int64_t>(n, 1));
    return c;
  }
  void require(int i, const Shape& shape) const {
    CAFFE2_ENFORCE(input(i).shape() == shape, describe_input(i), " has shape ",
                   input(i).shape().text(), "; ", shape.text(), " is needed");
  }
  void* gemm_scratch(std::initializer_list<kernels::Gemm> products) {
    int64_t bytes = 0;
    for (const kernels::Gemm& g : products) {
      bytes = std::max(bytes, kernels().gemm_scratch_bytes(g, 1));
    }
    return scratch(bytes);
  }
};

// Inputs core0, core1, core2, index, lengths.
class TableSumOperator : public TableOperator {
 public:
  explicit TableSumOperator(const OperatorContext& context)
      : TableOperator(context),
        rows_(args().integers("factor_i")),
        columns_(args().integers("factor_j")),
        ranks_(args().integers("ranks")) {
    CAFFE2_ENFORCE(rows_.size() == 3 && columns_.size() == 3 && ranks_.size() == 4, "it has ",
                   rows_.size(), " factor_i, ", columns_.size(), " factor_j and ", ranks_.size(),
                   " ranks; needed are 3, 3 and 4");
  }

 protected:
  void run() override {
    for (int k = 0; k < 3; k++) require(k, {rows_[k], ranks_[k], columns_[k], ranks_[k + 1]});
    const Cores c = cores();
    CAFFE2_ENFORCE(c.width() == args().integer("emb_size"),
                   "emb_size = ", args().integer("emb_size"), "; factor_j makes ", c.width(),
                   " columns");
    const int64_t limit = checked_multiply(checked_multiply(c.rows[0], c.rows[1]), c.rows[2]);
    const int64_t* index = find_indices(3, limit);
    const int64_t n = input(3).size();
    find_segments(SegmentKind::kLengths, 4, n);
    void* buffer = gemm_scratch({c.second_product(), c.row_product()});
    float* y = output(0, {segments(), c.width()}, DataType::kFloat).mutable_data<float>();
    float* firsts = output(1, {n, c.columns[0], c.rank[1]}, DataType::kFloat).mutable_data<float>();
    float* seconds = output(2, {n, c.columns[0] * c.columns[1], c.rank[2]}, DataType::kFloat)
                         .mutable_data<float>();
    auto* places = output(3, {n, 3}, DataType::kInt64).mutable_data<int64_t>();
    const float* core[3];
    for (int k = 0; k < 3; k++) core[k] = input(k).data<float>();
    const kernels::Parallel alone;
    std::fill_n(y, segments() * c.width(), 0.0F);
    for (int64_t s = 0; s < segments(); s++) {
      for (int64_t i = offset(s); i < offset(s + 1); i++) {
        int64_t* place = places + 3 * i;
        place[2] = index[i] % c.rows[2];
        place[1] = index[i] / c.rows[2] % c.rows[1];
        place[0] = index[i] / c.rows[2] / c.rows[1];
        float *first = firsts + i * c.first(), *second = seconds + i * c.second();
        std::copy_n(core[0] + place[0] * c.size(0), c.first(), first);
        kernels().gemm(c.second_product(), first, core[1] + place[1] * c.size(1), second, buffer,
                       alone);
        kernels().gemm(added(c.row_product()), second, core[2] + place[2] * c.size(2),
                       y + s * c.width(), buffer, alone);
      }
    }
  }

 private:
  const std::vector<int64_t> rows_, columns_, ranks_;
};

// Inputs core0, core1, core2, lengths, core0_output, core1_output, indices, dY.
class TableSumGradientOperator : public TableOperator {
 public:
  using TableOperator::TableOperator;

 protected:
  void run() override {
    const Cores c = cores();
    const Tensor& places = input(6);
    CAFFE2_ENFORCE(places.rank() == 2, describe_input(6), " has shape ", places.shape().text(),
                   "; two dimensions are needed");
    const int64_t n = places.dim(0);
    require(6, {n, 3});
    find_segments(SegmentKind::kLengths, 3, n);
    require(4, {n, c.columns[0], c.rank[1]});
    require(5, {n, c.columns[0] * c.columns[1], c.rank[2]});
    require(7, {segments(), c.width()});
    const auto* place = places.data<int64_t>();
    for (int64_t i = 0; i < 3 * n; i++) {
      CAFFE2_ENFORCE(place[i] >= 0 && place[i] < c.rows[i % 3], describe_input(6), " holds ",
                     place[i], " at position ", i, "; core ", i % 3, " has ", c.rows[i % 3],
                     " rows");
    }
    void* buffer = gemm_scratch({c.d_second(), c.d_core0(), c.d_core1(), c.d_core2()});
    auto* d_second = scratch<float>(c.second());
    float* d_core[3];
    for (int k = 0; k < 3; k++) {
      Tensor& out = output(k, input(k).shape(), DataType::kFloat);
      d_core[k] = out.mutable_data<float>();
    }
    for (int k = 0; k < 3; k++) std::fill_n(d_core[k], input(k).size(), 0.0F);
    const kernels::Parallel alone;
    for (int64_t s = 0; s < segments(); s++) {
      const float* dy = input(7).data<float>() + s * c.width();
      for (int64_t i = offset(s); i < offset(s + 1); i++, place += 3) {
        const float* first = input(4).data<float>() + i * c.first();
        const float* second = input(5).data<float>() + i * c.second();
        const float* core1 = input(1).data<float>() + place[1] * c.size(1);
        const float* core2 = input(2).data<float>() + place[2] * c.size(2);
        kernels().gemm(c.d_second(), dy, core2, d_second, buffer, alone);
        kernels().gemm(c.d_core2(), second, dy, d_core[2] + place[2] * c.size(2), buffer, alone);
        kernels().gemm(c.d_core1(), first, d_second, d_core[1] + place[1] * c.size(1), buffer,
                       alone);
        kernels().gemm(c.d_core0(), d_second, core1, d_core[0] + place[0] * c.size(0), buffer,
                       alone);
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(TT, TensorTrainOperator)
REGISTER_CPU_OPERATOR(TTSparseLengthsSum, TableSumOperator)
REGISTER_CPU_OPERATOR(TTSparseLengthsSumGradient, TableSumGradientOperator)

}  // namespace caffe2
