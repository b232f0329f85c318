// Operators that move whole channels or blocks of a picture: ChannelShuffle, SpaceToBatch and
// BatchToSpace.
#include <algorithm>
#include <array>

#include "core/registry.h"
#include "operators/channels.h"
#include "operators/parallel.h"

namespace caffe2 {
namespace {

// The channels are a matrix [rows][columns], which is transposed. There are `group` rows, or, the
// way back, columns.
template <bool kBack>
class ChannelShuffleOperator : public ChannelOperator {
 public:
  explicit ChannelShuffleOperator(const OperatorContext& context)
      : ChannelOperator(context), group_(args().integer("group")) {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const kernels::ChannelShape s = channel_shape(0);
    CAFFE2_ENFORCE(s.channels % group_ == 0, describe_input(0), " has ", s.channels,
                   " channels; a multiple of group=", group_, " is needed");
    const int64_t rows = kBack ? s.channels / group_ : group_;
    const int64_t columns = kBack ? group_ : s.channels / group_;
    Tensor& y = output(0, x.shape(), DataType::kFloat);
    if (y.size() == 0) return;
    const float* in = x.data<float>();
    float* out = y.mutable_data<float>();
    const int64_t size = s.channels * s.inner;
    for_ranges(parallel(), s.outer, rows_per_range(size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        float* to = out + i * size;
        for (int64_t c = 0; c < columns; c++) {
          for (int64_t r = 0; r < rows; r++, to += s.inner) {
            std::copy_n(in + i * size + (r * columns + c) * s.inner, s.inner, to);
          }
        }
      }
    });
  }

 private:
  const int64_t group_;
};

// Moves between pictures [n][c][height][width] and blocks [block][block][n][c][h][w], where the
// pictures have pads around them.
class BlockOperator : public Operator {
 public:
  explicit BlockOperator(const OperatorContext& context)
      : Operator(context), block_(args().integer("block_size")) {
    const std::array<const char*, 4> names{"pad_t", "pad_l", "pad_b", "pad_r"};
    const auto given =
        std::count_if(names.begin(), names.end(), [&](const char* n) { return args().has(n); });
    CAFFE2_ENFORCE(given == 0 || given == 4,
                   "arguments pad_t, pad_l, pad_b, pad_r are given together or not at all");
    const int64_t pad = args().integer("pad");
    for (size_t i = 0; i < 4; i++) pads_[i] = given && pad == 0 ? args().integer(names[i]) : pad;
  }

 protected:
  struct Sizes {
    int64_t n, c, height, width, h, w;  // pictures without pads; blocks
  };

  void require_rank() const {
    CAFFE2_ENFORCE(input(0).rank() == 4, describe_input(0), " has shape ", input(0).shape().text(),
                   "; 4 dimensions are needed");
  }

  int64_t vertical() const { return pads_[0] + pads_[2]; }
  int64_t horizontal() const { return pads_[1] + pads_[3]; }

  // Calls body(first, last, picture, blocks) for each row of the blocks: for columns [first, last)
  // there are elements of a picture, `block_` apart, from the offset `picture` on; `blocks` is the
  // offset of the whole row.
  template <class Body>
  void for_rows(const Sizes& s, const Body& body) const {
    if (s.h * s.w == 0) return;
    const int64_t planes = block_ * block_ * s.n * s.c;
    for_ranges(parallel(), planes, rows_per_range(s.h * s.w), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        const int64_t at = plane / (s.n * s.c), source = plane % (s.n * s.c);
        const int64_t left = at % block_ - pads_[1];
        const int64_t first = left >= 0 ? 0 : (-left + block_ - 1) / block_;
        const int64_t last = left >= s.width ? 0 : (s.width - 1 - left) / block_ + 1;
        for (int64_t i = 0; i < s.h; i++) {
          const int64_t row = i * block_ + at / block_ - pads_[0];
          const bool inside = row >= 0 && row < s.height;
          body(inside ? std::min(first, s.w) : s.w, inside ? std::min(last, s.w) : s.w,
               (source * s.height + row) * s.width + left, (plane * s.h + i) * s.w);
        }
      }
    });
  }

  const int64_t block_;

 private:
  std::array<int64_t, 4> pads_{};
};

class SpaceToBatchOperator : public BlockOperator {
 public:
  using BlockOperator::BlockOperator;

 protected:
  void run() override {
    require_rank();
    const Tensor& x = input(0);
    const int64_t height = x.dim(2) + vertical(), width = x.dim(3) + horizontal();
    CAFFE2_ENFORCE(height % block_ == 0 && width % block_ == 0, describe_input(0), " has shape ",
                   x.shape().text(), ", with pads ", height, " x ", width,
                   "; multiples of block_size=", block_, " are needed");
    const Sizes s{x.dim(0), x.dim(1), x.dim(2), x.dim(3), height / block_, width / block_};
    const int64_t batch = checked_multiply(s.n, block_ * block_);
    Tensor& y = output(0, {batch, s.c, s.h, s.w}, DataType::kFloat);
    const float* in = x.data<float>();
    float* out = y.mutable_data<float>();
    for_rows(s, [&](int64_t first, int64_t last, int64_t picture, int64_t blocks) {
      float* to = out + blocks;
      std::fill_n(to, first, 0.f);
      for (int64_t j = first; j < last; j++) to[j] = in[picture + j * block_];
      for (int64_t j = std::max(first, last); j < s.w; j++) to[j] = 0;
    });
  }
};

class BatchToSpaceOperator : public BlockOperator {
 public:
  using BlockOperator::BlockOperator;

 protected:
  void run() override {
    require_rank();
    const Tensor& x = input(0);
    const int64_t blocks_per_picture = block_ * block_;
    CAFFE2_ENFORCE(x.dim(0) % blocks_per_picture == 0, describe_input(0), " has shape ",
                   x.shape().text(), "; the batch must be a multiple of ", blocks_per_picture,
                   ", block_size is ", block_);
    const int64_t height = checked_multiply(x.dim(2), block_) - vertical();
    const int64_t width = checked_multiply(x.dim(3), block_) - horizontal();
    CAFFE2_ENFORCE(height >= 0 && width >= 0, describe_input(0), " has shape ", x.shape().text(),
                   "; the pads cut off more than there is");
    const Sizes s{x.dim(0) / blocks_per_picture, x.dim(1), height, width, x.dim(2), x.dim(3)};
    Tensor& y = output(0, {s.n, s.c, height, width}, DataType::kFloat);
    const float* in = x.data<float>();
    float* out = y.mutable_data<float>();
    for_rows(s, [&](int64_t first, int64_t last, int64_t picture, int64_t blocks) {
      for (int64_t j = first; j < last; j++) out[picture + j * block_] = in[blocks + j];
    });
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(ChannelShuffle, ChannelShuffleOperator<false>)
REGISTER_CPU_OPERATOR(ChannelShuffleGradient, ChannelShuffleOperator<true>)
REGISTER_CPU_OPERATOR(SpaceToBatch, SpaceToBatchOperator)
REGISTER_CPU_OPERATOR(BatchToSpace, BatchToSpaceOperator)

}  // namespace caffe2
