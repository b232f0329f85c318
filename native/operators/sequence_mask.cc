// SequenceMask: what lies outside of a sequence, a window or a triangle is filled.
#include <algorithm>
#include <string>

#include "core/operator.h"
#include "core/registry.h"
#include "operators/shapes.h"
#include "operators/view.h"

namespace caffe2 {
namespace {

class SequenceMaskOperator : public Operator {
 public:
  explicit SequenceMaskOperator(const OperatorContext& context)
      : Operator(context),
        mode_(args().text("mode")),
        by_lengths_(mode_ == "sequence" || mode_ == "window"),
        radius_(args().integer("radius")),
        fill_(args().boolean("grad") ? 0 : args().real("fill_val")) {
    CAFFE2_ENFORCE(mode_ == "sequence" || !args().has("repeat_from_axis"),
                   "argument 'repeat_from_axis' is for the mode 'sequence' only, not for '", mode_,
                   "'");
  }

 protected:
  void run() override {
    const Tensor& x = input(0);
    find_sizes(x);
    const int32_t* lengths = nullptr;
    if (by_lengths_) {
      CAFFE2_ENFORCE(has_input(1), "input 1 (sequence_lengths) is needed for the mode '", mode_,
                     "'");
      CAFFE2_ENFORCE(input(1).rank() == 1 && input(1).size() >= rows_, describe_input(1),
                     " has shape ", input(1).shape().text(), "; there are ", rows_, " rows");
      lengths = input(1).data<int32_t>();
    }
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    if (y.size() == 0) return;
    const float* in = x.data<float>();
    float* out = y.mutable_data<float>();
    const int64_t width = columns_ * repeats_;
    for_ranges(parallel(), batches_ * rows_, rows_per_block(width), [&](int64_t r, int64_t end) {
      for (; r < end; r++) {
        const auto [begin, stop] = kept(lengths == nullptr ? r % rows_ : lengths[r % rows_]);
        const float* from = in + r * width;
        float* to = out + r * width;
        std::fill_n(to, begin * repeats_, fill_);
        std::copy(from + begin * repeats_, from + stop * repeats_, to + begin * repeats_);
        std::fill_n(to + stop * repeats_, width - stop * repeats_, fill_);
      }
    });
  }

 private:
  void find_sizes(const Tensor& x) {
    const int axis = canonical_axis(args().int32("axis"), x.rank(), describe_input(0));
    int repeat = x.rank(), batch = 0;
    if (args().has("repeat_from_axis")) {
      repeat = canonical_axis(args().int32("repeat_from_axis"), x.rank(), describe_input(0));
      CAFFE2_ENFORCE(repeat > axis, "repeat_from_axis = ", repeat,
                     " does not lie behind axis = ", axis);
    }
    if (args().has("batch")) {
      batch = 1 + canonical_axis(args().int32("batch"), x.rank(), describe_input(0));
      CAFFE2_ENFORCE(batch <= axis, "batch = ", batch - 1, " does not lie before axis = ", axis);
    }
    batches_ = x.shape().product(0, batch);
    rows_ = x.shape().product(batch, axis);
    columns_ = x.shape().product(axis, repeat);
    repeats_ = x.shape().product(repeat, x.rank());
  }

  struct Range {
    int64_t begin, end;
  };
  // The columns of a row that are kept, where `at` is the row or what sequence_lengths says of it.
  Range kept(int64_t at) const {
    Range range{0, columns_};
    if (mode_ == "sequence" || mode_ == "upperdiag") range.end = at;
    if (mode_ == "upper") range.end = at + 1;
    if (mode_ == "lower") range.begin = at;
    if (mode_ == "lowerdiag") range.begin = at + 1;
    if (mode_ == "window") range = {at - radius_, at + radius_ + 1};
    range.begin = std::clamp<int64_t>(range.begin, 0, columns_);
    range.end = std::clamp<int64_t>(range.end, range.begin, columns_);
    return range;
  }

  const std::string mode_;
  const bool by_lengths_;
  const int64_t radius_;
  const float fill_;
  int64_t batches_ = 0, rows_ = 0, columns_ = 0, repeats_ = 0;
};

}  // namespace

REGISTER_CPU_OPERATOR(SequenceMask, SequenceMaskOperator)

}  // namespace caffe2
