// Storage: counted memory with a version. Tensor: a typed, shaped window on a Storage.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/allocator.h"
#include "core/lender.h"
#include "core/types.h"

namespace caffe2 {

enum class Device : int32_t { kCPU = 0 };  // numbers of DeviceTypeProto

class Storage {
 public:
  Storage(std::shared_ptr<Allocator> allocator, size_t bytes, Device device = Device::kCPU)
      : allocator_(std::move(allocator)),
        data_(allocator_->allocate(bytes)),
        bytes_(bytes),
        device_(device) {}
  // A part of another one, which it keeps alive. A write to it is a write to both.
  Storage(std::shared_ptr<Storage> whole, size_t offset, size_t bytes)
      : allocator_(whole->allocator_),
        whole_(std::move(whole)),
        data_(static_cast<char*>(whole_->data_) + offset),
        bytes_(bytes),
        device_(whole_->device_) {}
  // Memory of somebody else, a part of a file or an array, for reading only.
  Storage(std::shared_ptr<Allocator> allocator, std::shared_ptr<const Lender> lender, void* data,
          size_t bytes)
      : allocator_(std::move(allocator)),
        lender_(std::move(lender)),
        data_(data),
        bytes_(bytes),
        device_(Device::kCPU) {}
  ~Storage() {
    if (deleter_ != nullptr) deleter_(data_, bytes_);
    if (!whole_ && !lender_) allocator_->release(data_, bytes_);
  }
  // Memory full of empty strings, which end with it.
  static std::shared_ptr<Storage> of_strings(std::shared_ptr<Allocator> allocator, size_t bytes);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  const Storage* whole() const { return whole_.get(); }  // what it is a part of, or nullptr
  const std::shared_ptr<Allocator>& allocator() const { return allocator_; }
  // Whether a tensor of this size and type can live here. Strings never move into used memory:
  // somebody else may be reading them.
  bool fits(size_t bytes, DataType type) const {
    return bytes_ >= bytes && deleter_ == nullptr && !lender_ && type != DataType::kString;
  }
  bool lent() const { return lender_ != nullptr; }
  // Frees what a file has lent, to be read again when it is used.
  void drop_pages() const;
  // Frees the memory, of which whoever asks has what is needed in another form.
  void release() {
    if (whole_ || lender_ || deleter_ != nullptr) return;
    allocator_->release(std::exchange(data_, nullptr), std::exchange(bytes_, 0));
  }
  bool released() const { return data_ == nullptr; }

  // Every write raises the version; what is derived from the content (packed weights) is kept
  // together with the version it was made from and never used at another one.
  // Parts have the version of the whole: what overlaps them may have been written instead.
  void raise_version() {
    if (whole_) return whole_->raise_version();
    version_.fetch_add(1, std::memory_order_acq_rel);
  }
  uint64_t version() {
    if (whole_) return whole_->version();
    if (views() > 0) raise_version();
    return version_.load(std::memory_order_acquire);
  }

  // While somebody outside of the engine can write, no version is seen twice.
  void add_view() {
    views_.fetch_add(1, std::memory_order_acq_rel);
    if (whole_) whole_->add_view();
  }
  int views() const { return views_.load(std::memory_order_acquire); }
  void remove_view() {
    raise_version();
    views_.fetch_sub(1, std::memory_order_acq_rel);
    if (whole_) whole_->remove_view();
  }

  // A part of memory that several blobs are meant to share: who writes the blob writes here, in
  // plain order, wherever the values fit.
  void set_shared() { shared_ = true; }
  bool shared() const { return shared_; }

 private:
  std::shared_ptr<Allocator> allocator_;
  std::shared_ptr<Storage> whole_;
  std::shared_ptr<const Lender> lender_;
  void* data_;
  size_t bytes_;
  void (*deleter_)(void* data, size_t bytes) = nullptr;
  Device device_;
  bool shared_ = false;
  std::atomic<uint64_t> version_{0};
  std::atomic<int> views_{0};
};

// How the values of a tensor lie in memory. Plain: row-major, in the order of the axes. Blocked,
// for floats with axes N C ... (N ... C when channels_last): [n][ceil(c / block)][place][block],
// with zeros where the last block has no channel. The shape is the same in all layouts.
struct Layout {
  int32_t block = 0;  // channels per block; 0: plain
  bool channels_last = false;

  bool plain() const { return block == 0; }
  bool operator==(const Layout&) const = default;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(const std::shared_ptr<Allocator>& allocator, const Shape& shape, DataType type,
         Layout layout = {});
  Tensor(std::shared_ptr<Storage> storage, const Shape& shape, DataType type, Layout layout = {})
      : storage_(std::move(storage)),
        shape_(shape),
        type_(type),
        layout_(layout),
        size_(shape.size()) {}

  // Bytes that a tensor takes, checked for overflow.
  static size_t bytes_for(const Shape& shape, DataType type, Layout layout = {}) {
    const size_t unit = type_size(type);
    if (unit == 0) fail(Code::kUnsupported, "there are no tensors of type ", type_name(type));
    return checked_size(checked_multiply(stored_size(shape, layout), unit));
  }

  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int axis) const { return shape_[axis]; }
  int64_t size() const { return size_; }
  DataType type() const { return type_; }
  size_t bytes() const { return static_cast<size_t>(size_) * type_size(type_); }
  const std::shared_ptr<Storage>& storage() const { return storage_; }

  template <class T>
  const T* data() const {
    return static_cast<const T*>(typed(TypeOf<T>::value));
  }
  template <class T>
  T* mutable_data() {
    storage_->raise_version();
    return static_cast<T*>(typed(TypeOf<T>::value));
  }
  // The same values in memory of its own.
  Tensor copy() const;
  // Copies all values from a plain tensor of the same type and number of elements.
  void copy_from(const Tensor& other);

  const void* raw_data() const { return plain_data(); }
  void* raw_mutable_data() {
    storage_->raise_version();
    return plain_data();
  }

  Layout layout() const { return layout_; }
  // Batch, channels and places per channel of a tensor whose layout is, or could be, `layout`.
  struct Planes {
    int64_t n, c, places;
    int64_t blocks(int block) const { return (c + block - 1) / block; }
  };
  static Planes planes(const Shape& shape, Layout layout);
  // The values as they lie in memory, whatever the layout; those of plain floats are data<float>().
  const float* stored() const { return static_cast<const float*>(storage_->data()); }
  float* mutable_stored() {
    storage_->raise_version();
    return static_cast<float*>(storage_->data());
  }
  static int64_t stored_size(const Shape& shape, Layout layout);
  int64_t stored_size() const { return stored_size(shape_, layout_); }
  // The same values in plain order; the tensor itself where that is its order.
  Tensor to_plain() const;

 private:
  void* plain_data() const {
    if (!layout_.plain()) fail(Code::kInternal, "a blocked tensor was used as a plain one");
    if (storage_->released()) fail(Code::kInternal, "a tensor was used that has been released");
    return storage_->data();
  }
  void* typed(DataType wanted) const {
    if (type_ != wanted) {
      fail(Code::kInvalidArgument, "a tensor of type ", type_name(type_), " was used as ",
           type_name(wanted));
    }
    return plain_data();
  }

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  DataType type_ = DataType::kUndefined;
  Layout layout_;
  int64_t size_ = 0;
};

}  // namespace caffe2
