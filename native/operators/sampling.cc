// Random choices: places drawn by weight, lists of ids dropped or replaced.
#include <algorithm>

#include "core/registry.h"
#include "operators/random.h"
#include "operators/segments.h"
#include "operators/shapes.h"

namespace caffe2 {
namespace {

// Numbers in [0, 1), one for each choice.
class SamplingOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  const float* draw(int64_t n) {
    auto* drawn = scratch<float>(n);
    kernels().uniform(random_state(next_random_stream()), 0, 1, n, drawn, parallel());
    return drawn;
  }
};

// Inputs weights (rows, columns), values?; outputs columns, values?
class WeightedSampleOperator : public SamplingOperator {
 public:
  using SamplingOperator::SamplingOperator;

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() == 2, describe_input(0), " has shape ", x.shape().text(),
                   "; 2 dimensions are needed");
    CAFFE2_ENFORCE(outputs() <= inputs(), "it has 2 outputs; the values to sample are missing");
    if (has_input(1)) require_same_shape(describe_input(0), x, describe_input(1), input(1));
    const float* weights = x.data<float>();
    for (int64_t i = 0; i < x.size(); i++) {
      CAFFE2_ENFORCE(weights[i] >= 0, describe_input(0), " holds ", weights[i],
                     "; weights are not negative");
    }
    const int64_t rows = x.dim(0), columns = x.dim(1);
    const Shape shape = x.size() == 0 ? Shape{0} : Shape{rows, 1};
    const float* drawn = draw(rows);
    Tensor& indices = output(0, shape, DataType::kInt32);
    Tensor* values = outputs() > 1 ? &output(1, shape, DataType::kFloat) : nullptr;
    if (x.size() == 0) return;
    int32_t* index = indices.mutable_data<int32_t>();
    float* value = values ? values->mutable_data<float>() : nullptr;
    for (int64_t i = 0; i < rows; i++) {
      const float* row = weights + i * columns;
      index[i] = choose(row, columns, drawn[i]);
      if (value) value[i] = input(1).data<float>()[i * columns + index[i]];
    }
  }

 private:
  static int32_t choose(const float* row, int64_t columns, double share) {
    double sum = 0;
    for (int64_t j = 0; j < columns; j++) sum += static_cast<double>(row[j]);
    const double wanted = share * sum;
    int64_t last = 0;
    double so_far = 0;
    for (int64_t j = 0; j < columns; j++) {
      so_far += static_cast<double>(row[j]);
      if (row[j] > 0) last = j;
      if (so_far > wanted) break;
    }
    return static_cast<int32_t>(last);
  }
};

// Inputs cumulated weights, shape?
class WeightedMultiSamplingOperator : public SamplingOperator {
 public:
  explicit WeightedMultiSamplingOperator(const OperatorContext& context)
      : SamplingOperator(context), samples_(args().integer("num_samples")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    CAFFE2_ENFORCE(x.rank() == 1, describe_input(0), " has shape ", x.shape().text(),
                   "; one dimension is needed");
    Shape shape = has_input(1) ? input(1).shape() : Shape{samples_};
    if (x.size() == 0) shape = {0};
    Tensor& y = output(0, shape, DataType::kInt32);
    const float* drawn = draw(y.size());
    const float *first = x.data<float>(), *last = first + x.size();
    int32_t* out = y.mutable_data<int32_t>();
    for (int64_t i = 0; i < y.size(); i++) {
      const int64_t place = std::lower_bound(first, last, drawn[i] * last[-1]) - first;
      out[i] = static_cast<int32_t>(std::min(place, x.size() - 1));
    }
  }

 private:
  const int64_t samples_;
};

// Inputs ids, lengths; outputs ids, lengths.
class SparseDropoutBase : public SamplingOperator {
 public:
  explicit SparseDropoutBase(const OperatorContext& context)
      : SamplingOperator(context),
        ratio_(args().real("ratio")),
        replacement_(args().integer("replacement_value")) {}

 protected:
  const int64_t* checked_offsets() {
    const Tensor &x = input(0), &lengths = input(1);
    CAFFE2_ENFORCE(x.rank() == 1 && lengths.rank() == 1, describe_input(0), " has shape ",
                   x.shape().text(), " and ", describe_input(1), " ", lengths.shape().text(),
                   "; one dimension is needed");
    const int64_t* offsets = offsets_of(1, lengths.data<int32_t>(), lengths.size());
    CAFFE2_ENFORCE(offsets[lengths.size()] == x.size(), describe_input(1), " sums to ",
                   offsets[lengths.size()], ", but ", describe_input(0), " has ", x.size(),
                   " values");
    return offsets;
  }
  bool drops(float drawn) const { return drawn < ratio_; }
  int64_t replacement() const { return replacement_; }

 private:
  const float ratio_;
  const int64_t replacement_;
};

class SparseDropoutOperator : public SparseDropoutBase {
 public:
  using SparseDropoutBase::SparseDropoutBase;

 protected:
  void run() override {
    const int64_t* offsets = checked_offsets();
    const int64_t n = input(1).size();
    const float* drawn = draw(n);
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
      total += drops(drawn[i]) ? 1 : offsets[i + 1] - offsets[i];
    }
    Tensor& y = output(0, {total}, DataType::kInt64);
    Tensor& lengths = output(1, {n}, DataType::kInt32);
    const int64_t* ids = input(0).data<int64_t>();
    int64_t* out = y.mutable_data<int64_t>();
    int32_t* length = lengths.mutable_data<int32_t>();
    for (int64_t i = 0; i < n; i++) {
      if (drops(drawn[i])) {
        *out++ = replacement();
        length[i] = 1;
      } else {
        out = std::copy(ids + offsets[i], ids + offsets[i + 1], out);
        length[i] = static_cast<int32_t>(offsets[i + 1] - offsets[i]);
      }
    }
  }
};

class SparseItemwiseDropoutOperator : public SparseDropoutBase {
 public:
  using SparseDropoutBase::SparseDropoutBase;

 protected:
  void run() override {
    checked_offsets();
    const int64_t n = input(0).size();
    const float* drawn = draw(n);
    Tensor& y = output(0, {n}, DataType::kInt64);
    Tensor& lengths = output(1, input(1).shape(), DataType::kInt32);
    lengths.copy_from(input(1));
    const int64_t* ids = input(0).data<int64_t>();
    int64_t* out = y.mutable_data<int64_t>();
    for (int64_t i = 0; i < n; i++) out[i] = drops(drawn[i]) ? replacement() : ids[i];
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(WeightedSample, WeightedSampleOperator)
REGISTER_CPU_OPERATOR(WeightedMultiSampling, WeightedMultiSamplingOperator)
REGISTER_CPU_OPERATOR(SparseDropoutWithReplacement, SparseDropoutOperator)
REGISTER_CPU_OPERATOR(SparseItemwiseDropoutWithReplacement, SparseItemwiseDropoutOperator)

}  // namespace caffe2
