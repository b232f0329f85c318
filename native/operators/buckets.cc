// Values as numbers of buckets, ids as hashes, and values that occur again.
#include <algorithm>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "core/registry.h"
#include "operators/dispatch.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

// How many of the sorted boundaries are less than the value.
int64_t bucket(const float* boundaries, int64_t n, float value) {
  // A value that is not a number is above none.
  if (value != value) return 0;
  return std::lower_bound(boundaries, boundaries + n, value) - boundaries;
}

// The same, but of boundaries equal to the value half count, rounded down.
int64_t middle_bucket(const float* boundaries, int64_t n, float value) {
  const int64_t below = bucket(boundaries, n, value);
  const float* end = std::upper_bound(boundaries + below, boundaries + n, value);
  return value != value ? below : below + (end - boundaries - below) / 2;
}

class BucketizeOperator : public Operator {
 public:
  explicit BucketizeOperator(const OperatorContext& context)
      : Operator(context), boundaries_(args().reals("boundaries")) {
    CAFFE2_ENFORCE(std::is_sorted(boundaries_.begin(), boundaries_.end()),
                   "argument 'boundaries' is not in ascending order");
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    int32_t* out = output(0, x.shape(), DataType::kInt32).mutable_data<int32_t>();
    const float* in = x.data<float>();
    const auto n = static_cast<int64_t>(boundaries_.size());
    for_ranges(parallel(), x.size(), kBlockElements, [&](int64_t i, int64_t end) {
      for (; i < end; i++) out[i] = static_cast<int32_t>(bucket(boundaries_.data(), n, in[i]));
    });
  }

 private:
  const std::vector<float> boundaries_;
};

class BatchBucketOneHotOperator : public SegmentBase {
 public:
  using SegmentBase::SegmentBase;

 protected:
  void run() override {
    const Tensor &data = input(0), &given = input(2);
    CAFFE2_ENFORCE(data.rank() == 2, describe_input(0), " has shape ", data.shape().text(),
                   "; two dimensions are needed");
    CAFFE2_ENFORCE(given.rank() == 1, describe_input(2), " has shape ", given.shape().text(),
                   "; one dimension is needed");
    find_segments(SegmentKind::kLengths, 1, given.size());
    const int64_t rows = data.dim(0), columns = data.dim(1);
    CAFFE2_ENFORCE(segments() == columns, describe_input(1), " has shape ", input(1).shape().text(),
                   "; ", describe_input(0), " has ", columns, " columns");
    const float* boundaries = given.data<float>();
    for (int64_t f = 0; f < columns; f++) {
      CAFFE2_ENFORCE(offset(f + 1) > offset(f), describe_input(1), " holds 0 at position ", f,
                     "; each is at least 1");
      for (int64_t j = offset(f) + 1; j < offset(f + 1); j++) {
        CAFFE2_ENFORCE(boundaries[j - 1] <= boundaries[j], describe_input(2), " holds ",
                       boundaries[j], " at position ", j, " after ", boundaries[j - 1],
                       "; those of a column are in ascending order");
      }
    }
    const int64_t width = given.size() + columns;
    Tensor& y = output(0, {rows, width}, DataType::kFloat);
    clear(y);
    const float* in = data.data<float>();
    float* out = y.mutable_data<float>();
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t f = 0; f < columns; f++) {
        const int64_t size = offset(f + 1) - offset(f);
        const int64_t place = middle_bucket(boundaries + offset(f), size, in[r * columns + f]);
        out[r * width + offset(f) + f + place] = 1;
      }
    }
  }
};

class IndexHashOperator : public Operator {
 public:
  explicit IndexHashOperator(const OperatorContext& context)
      : Operator(context), seed_(args().integer("seed")), modulo_(args().integer("modulo")) {}

 protected:
  void run() override {
    Tensor& y = output(0, input(0).shape(), input(0).type());
    if (y.type() == DataType::kInt32) {
      CAFFE2_ENFORCE(modulo_ <= INT32_MAX, "modulo = ", modulo_, ", which is no int32");
      hash(input(0).data<int32_t>(), y.mutable_data<int32_t>(), y.size());
    } else {
      hash(input(0).data<int64_t>(), y.mutable_data<int64_t>(), y.size());
    }
  }

 private:
  template <class T>
  void hash(const T* in, T* out, int64_t n) const {
    using Unsigned = std::make_unsigned_t<T>;
    const auto seed = static_cast<Unsigned>(static_cast<uint64_t>(seed_) * 0xDEADBEEF);
    const T modulo = static_cast<T>(modulo_);
    for_ranges(parallel(), n, kBlockElements, [&](int64_t i, int64_t end) {
      for (; i < end; i++) {
        Unsigned value = seed;
        for (size_t byte = 0; byte < sizeof(T); byte++) {
          const auto part = static_cast<int8_t>(static_cast<Unsigned>(in[i]) >> (8 * byte) & 0xff);
          value = value * 65537 + static_cast<Unsigned>(part);
        }
        const T rest = static_cast<T>(value) % modulo;
        out[i] = rest < 0 ? rest + modulo : rest;
      }
    });
  }

  const int64_t seed_, modulo_;
};

class FindDuplicateElementsOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const Tensor& data = input(0);
    CAFFE2_ENFORCE(data.rank() == 1, describe_input(0), " has shape ", data.shape().text(),
                   "; one dimension is needed");
    std::vector<int64_t> found;
    dispatch<float, double, int32_t, int64_t, std::string>(data.type(), [&](auto type) {
      using T = decltype(type);
      std::unordered_set<T> seen;
      const T* values = data.data<T>();
      for (int64_t j = 0; j < data.size(); j++) {
        if (!seen.insert(values[j]).second) found.push_back(j);
      }
    });
    Tensor& y = output(0, {static_cast<int64_t>(found.size())}, DataType::kInt64);
    std::copy(found.begin(), found.end(), y.mutable_data<int64_t>());
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Bucketize, BucketizeOperator)
REGISTER_CPU_OPERATOR(BatchBucketOneHot, BatchBucketOneHotOperator)
REGISTER_CPU_OPERATOR(IndexHash, IndexHashOperator)
REGISTER_CPU_OPERATOR(FindDuplicateElements, FindDuplicateElementsOperator)

}  // namespace caffe2
