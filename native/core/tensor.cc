#include "core/tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

namespace caffe2 {

std::shared_ptr<Storage> Storage::of_strings(std::shared_ptr<Allocator> allocator, size_t bytes) {
  auto storage = std::make_shared<Storage>(std::move(allocator), bytes);
  auto* strings = static_cast<std::string*>(storage->data_);
  std::uninitialized_value_construct_n(strings, bytes / sizeof(std::string));
  storage->deleter_ = [](void* data, size_t size) {
    std::destroy_n(static_cast<std::string*>(data), size / sizeof(std::string));
  };
  return storage;
}

void Storage::drop_pages() const {
  if (lender_) lender_->drop(data_, bytes_);
}

Tensor::Tensor(const std::shared_ptr<Allocator>& allocator, const Shape& shape, DataType type,
               Layout layout)
    : Tensor(type == DataType::kString
                 ? Storage::of_strings(allocator, bytes_for(shape, type))
                 : std::make_shared<Storage>(allocator, bytes_for(shape, type, layout)),
             shape, type, layout) {}

Tensor::Planes Tensor::planes(const Shape& shape, Layout layout) {
  const int rank = shape.rank(), channels = layout.channels_last ? rank - 1 : 1;
  return {shape[0], shape[channels],
          layout.channels_last ? shape.product(1, rank - 1) : shape.product(2, rank)};
}

int64_t Tensor::stored_size(const Shape& shape, Layout layout) {
  if (layout.plain()) return shape.size();
  const Planes p = planes(shape, layout);
  return checked_multiply(checked_multiply(p.n, p.blocks(layout.block) * layout.block), p.places);
}

Tensor Tensor::to_plain() const {
  if (layout_.plain()) return *this;
  const Planes p = planes(shape_, layout_);
  Tensor plain(storage_->allocator(), shape_, type_);
  const float* from = stored();
  float* to = plain.mutable_data<float>();
  const int64_t block = layout_.block;
  const int64_t step_c = layout_.channels_last ? 1 : p.places;
  const int64_t step_place = layout_.channels_last ? p.c : 1;
  for (int64_t n = 0; n < p.n; n++, to += p.c * p.places) {
    for (int64_t first = 0; first < p.c; first += block, from += p.places * block) {
      const int64_t width = std::min(block, p.c - first);
      for (int64_t place = 0; place < p.places; place++) {
        for (int64_t c = 0; c < width; c++) {
          to[(first + c) * step_c + place * step_place] = from[place * block + c];
        }
      }
    }
  }
  return plain;
}

Tensor Tensor::copy() const {
  Tensor copy(storage_->allocator(), shape_, type_, layout_);
  if (type_ == DataType::kString) {
    std::copy_n(data<std::string>(), size_, copy.mutable_data<std::string>());
  } else if (const size_t bytes = bytes_for(shape_, type_, layout_)) {
    std::memcpy(copy.storage_->data(), storage_->data(), bytes);
  }
  return copy;
}

void Tensor::copy_from(const Tensor& other) {
  if (other.type_ != type_ || other.size_ != size_) {
    fail(Code::kInternal, "a copy between tensors of different type or size");
  }
  if (storage_->data() == other.storage_->data()) return;
  if (type_ == DataType::kString) {
    std::copy_n(other.data<std::string>(), size_, mutable_data<std::string>());
  } else if (size_ > 0) {
    std::memcpy(raw_mutable_data(), other.raw_data(), bytes());
  }
}

}  // namespace caffe2
