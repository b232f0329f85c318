#include "operators/packed_weights.h"

#include <cstring>
#include <string_view>

#include "core/kernels_id.h"
#include "core/workspace.h"
#include "operators/window.h"

namespace caffe2 {

using kernels::ConvAlgorithm;
using kernels::ConvPass;
using kernels::ConvShape;

void PackedWeights::keep(const Tensor& weights, uint64_t version, const ConvShape& shape,
                         int64_t variant, std::shared_ptr<Storage> packed) {
  packed_ = std::move(packed);
  source_ = weights.storage();
  version_ = version;
  shape_ = shape;
  variant_ = variant;
}

std::shared_ptr<Storage> PackedWeights::memory(const std::shared_ptr<Allocator>& allocator,
                                               size_t bytes) {
  const bool fits = packed_ && !packed_->whole() && packed_->bytes() >= bytes;
  std::shared_ptr<Storage> old = std::move(packed_);
  if (fits) return old;
  old.reset();
  return std::make_shared<Storage>(allocator, bytes);
}

namespace {

// Filters that were packed beforehand: the blob "<filter>#packed" of a model file. Text says for
// which kernels and which convolution; the packed values follow. An empty blob of this name asks
// for them.
constexpr const char* kPackedSuffix = "#packed";
constexpr int64_t kHeader = 2 * Allocator::kAlignment;

constexpr int64_t kMostNumbers = int64_t{1} << 24;  // that a float tells apart

// Longer than kHeader, and so that of no file, where numbers are huge.
std::string header_of(const ConvShape& s, ConvAlgorithm algorithm, kernels::Isa isa) {
  std::string text = concat("Conv ", static_cast<int>(algorithm), " for ", kernels::isa_name(isa),
                            ", kernels ", kKernelsId, ", ", s.k, " x ", s.c, " x ", s.kh, " x ",
                            s.kw, ", group ", s.group, ", stride ", s.stride_h, " x ", s.stride_w,
                            ", dilation ", s.dilation_h, " x ", s.dilation_w);
  if (text.size() < kHeader) text.resize(kHeader, ' ');
  return text;
}

}  // namespace

PackedFilter::PackedFilter(const OperatorContext& context, int input, bool channels_last)
    : engine_(context.engine),
      workspace_(context.workspace),
      packed_name_(context.def.input[input] + kPackedSuffix),
      channels_last_(channels_last) {}

const void* PackedFilter::make(const Tensor& filter, bool may_be_released, const ConvShape& s,
                               ConvAlgorithm algorithm) {
  const auto variant = static_cast<int64_t>(algorithm);
  const int64_t bytes = engine_.kernels().conv_packed_bytes(s, algorithm);
  const bool known = !packed_.empty() && packed_.front().bound(filter);
  PackedWeights made;
  if (!known && !packed_.empty()) {  // of another filter: the memory may do
    made = std::move(packed_.front());
    packed_.clear();
  }
  if (std::shared_ptr<Storage> given = from_file(filter, s, algorithm, bytes)) {
    made.bind(filter, s, variant, std::move(given));
    return packed_.emplace_back(std::move(made)).data();
  }
  const bool released = filter.storage()->released() && known;
  std::unique_ptr<Storage> copy;
  if (released || channels_last_) copy = engine_.scratch().take(filter.bytes());
  auto* values = copy ? static_cast<float*>(copy->data()) : nullptr;
  if (released) {
    unpack(filter.size(), values);
  } else if (values) {
    to_channels_first(s.k, s.c / s.group, s.kh * s.kw, filter.data<float>(), values,
                      engine_.parallel());
  }
  const float* from = values ? values : filter.data<float>();
  made.pack(filter, s, variant, engine_.allocator(), bytes, [&](void* out) {
    engine_.kernels().conv_pack(s, algorithm, from, static_cast<float*>(out), engine_.parallel());
  });
  packed_.push_back(std::move(made));
  if (copy) engine_.scratch().give(std::move(copy));

  // Winograd's transformation loses bits: where an input of some size may ask for it, the original
  // stays.
  const bool transforms =
      engine_.kernels().conv_supports(s, ConvPass::kForward, ConvAlgorithm::kWinograd2);
  filter.storage()->drop_pages();
  if (may_be_released && !transforms && filter.size() < kMostNumbers) filter.storage()->release();
  give(bytes);
  return packed_.back().data();
}

// The filter out of its packed form: the numbers 1, 2, ... packed in the same way tell where each
// value is.
void PackedFilter::unpack(int64_t size, float* weights) {
  const PackedWeights& from = packed_.front();
  const auto algorithm = static_cast<ConvAlgorithm>(from.variant());
  const int64_t bytes = engine_.kernels().conv_packed_bytes(from.shape(), algorithm);
  std::unique_ptr<Storage> numbers = engine_.scratch().take(checked_size(bytes));
  auto* places = static_cast<float*>(numbers->data());
  std::memset(places, 0, checked_size(bytes));  // there are gaps that nobody writes
  for (int64_t i = 0; i < size; i++) weights[i] = static_cast<float>(i + 1);
  engine_.kernels().conv_pack(from.shape(), algorithm, weights, places, engine_.parallel());
  const auto* packed = static_cast<const float*>(from.data());
  for (int64_t i = 0; i < bytes / static_cast<int64_t>(sizeof(float)); i++) {
    if (places[i] > 0) weights[static_cast<int64_t>(places[i]) - 1] = packed[i];
  }
  engine_.scratch().give(std::move(numbers));
}

// Those of the file that the filter is in, or nullptr where there are none of this form.
std::shared_ptr<Storage> PackedFilter::from_file(const Tensor& filter, const ConvShape& s,
                                                 ConvAlgorithm algorithm, int64_t bytes) const {
  if (!filter.storage()->lent()) return nullptr;
  const auto blob = workspace_.find_blob(packed_name_);
  if (!blob) return nullptr;
  const Tensor packed = blob->get().tensor;
  if (!packed.storage() || !packed.storage()->lent() || packed.type() != DataType::kFloat ||
      static_cast<int64_t>(packed.bytes()) != kHeader + bytes ||
      header_of(s, algorithm, engine_.isa()) !=
          std::string_view(static_cast<const char*>(packed.raw_data()), kHeader)) {
    return nullptr;
  }
  return std::make_shared<Storage>(packed.storage(), kHeader, checked_size(bytes));
}

// Into the blob that asks for them.
void PackedFilter::give(int64_t bytes) const {
  const auto blob = workspace_.find_blob(packed_name_);
  if (!blob || !blob->get().empty()) return;
  const PackedWeights& made = packed_.back();
  const auto algorithm = static_cast<ConvAlgorithm>(made.variant());
  const std::string header = header_of(made.shape(), algorithm, engine_.isa());
  if (header.size() > kHeader) return;
  const int64_t count = (kHeader + bytes) / static_cast<int64_t>(sizeof(float));
  Tensor packed(engine_.allocator(), {count}, DataType::kFloat);
  auto* out = static_cast<char*>(packed.raw_mutable_data());
  std::memcpy(out, header.data(), kHeader);
  std::memcpy(out + kHeader, made.data(), checked_size(bytes));
  blob->set(std::move(packed));
}

}  // namespace caffe2
