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

Tensor::Tensor(const std::shared_ptr<Allocator>& allocator, const Shape& shape, DataType type)
    : Tensor(type == DataType::kString
                 ? Storage::of_strings(allocator, bytes_for(shape, type))
                 : std::make_shared<Storage>(allocator, bytes_for(shape, type)),
             shape, type) {}

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
