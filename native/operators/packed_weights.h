// Weights in the order in which a kernel reads them, made anew when others are bound or written.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/operator.h"

namespace caffe2 {

// Known by storage, version and form: the sizes of a layer (n, h, w and pads may change), and a
// number for what else the order depends on.
class PackedWeights {
 public:
  // What was made of these weights in this form; nullptr where nothing was, and after a write.
  const void* find(const Tensor& weights, const kernels::ConvShape& shape,
                   int64_t variant = 0) const {
    return bound(weights, shape, variant) ? data() : nullptr;
  }
  // Whether they were bound last, in this form, and not written since.
  bool bound(const Tensor& weights, const kernels::ConvShape& shape, int64_t variant = 0) const {
    return bound(weights) && variant == variant_ && same_form(shape, shape_);
  }
  bool bound(const Tensor& weights) const {
    const std::shared_ptr<Storage>& storage = weights.storage();
    return !source_.owner_before(storage) && !storage.owner_before(source_) &&
           storage->version() == version_;
  }

  // Binds them to what was packed elsewhere, or to nothing yet.
  void bind(const Tensor& weights, const kernels::ConvShape& shape, int64_t variant = 0,
            std::shared_ptr<Storage> packed = nullptr) {
    keep(weights, weights.storage()->version(), shape, variant, std::move(packed));
  }
  // Binds them to `bytes` that pack(memory) writes.
  template <class Pack>
  const void* pack(const Tensor& weights, const kernels::ConvShape& shape, int64_t variant,
                   const std::shared_ptr<Allocator>& allocator, int64_t bytes, const Pack& pack) {
    const uint64_t version = weights.storage()->version();
    std::shared_ptr<Storage> packed = memory(allocator, checked_size(bytes));
    pack(packed->data());
    keep(weights, version, shape, variant, std::move(packed));
    return packed_->data();
  }

  // How those that are bound are packed.
  const kernels::ConvShape& shape() const { return shape_; }
  int64_t variant() const { return variant_; }
  const void* data() const { return packed_ ? packed_->data() : nullptr; }

 private:
  static bool same_form(const kernels::ConvShape& a, const kernels::ConvShape& b) {
    return a.c == b.c && a.k == b.k && a.kh == b.kh && a.kw == b.kw && a.group == b.group &&
           a.stride_h == b.stride_h && a.stride_w == b.stride_w && a.dilation_h == b.dilation_h &&
           a.dilation_w == b.dilation_w;
  }
  void keep(const Tensor& weights, uint64_t version, const kernels::ConvShape& shape,
            int64_t variant, std::shared_ptr<Storage> packed);
  // That of what is packed where it is large enough.
  std::shared_ptr<Storage> memory(const std::shared_ptr<Allocator>& allocator, size_t bytes);

  std::shared_ptr<Storage> packed_;
  std::weak_ptr<Storage> source_;
  uint64_t version_ = 0;
  kernels::ConvShape shape_;
  int64_t variant_ = 0;
};

// The filter of a convolution of floats, channels first, packed once for each algorithm that inputs
// of some size ask for. Where a model file has it packed, that is used where it lies; where nobody
// else needs the original, it is dropped.
class PackedFilter {
 public:
  // Of an input of the operator, to which the context belongs.
  PackedFilter(const OperatorContext& context, int input, bool channels_last = false);

  // Of what the input holds now, which need not stay when it `may_be_released`.
  const float* get(const Tensor& filter, bool may_be_released, const kernels::ConvShape& shape,
                   kernels::ConvAlgorithm algorithm) {
    for (const PackedWeights& packed : packed_) {
      const void* found = packed.find(filter, shape, static_cast<int64_t>(algorithm));
      if (found) return static_cast<const float*>(found);
    }
    return static_cast<const float*>(make(filter, may_be_released, shape, algorithm));
  }

 private:
  const void* make(const Tensor& filter, bool may_be_released, const kernels::ConvShape& shape,
                   kernels::ConvAlgorithm algorithm);
  void unpack(int64_t size, float* weights);
  std::shared_ptr<Storage> from_file(const Tensor& filter, const kernels::ConvShape& shape,
                                     kernels::ConvAlgorithm algorithm, int64_t bytes) const;
  void give(int64_t bytes) const;

  Engine& engine_;
  Workspace& workspace_;
  const std::string packed_name_;
  const bool channels_last_;
  std::vector<PackedWeights> packed_;  // all of one filter
};

}  // namespace caffe2
