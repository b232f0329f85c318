// A named value of a workspace: nothing yet, a tensor, or an object of another registered kind.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/fork.h"
#include "core/tensor.h"

namespace caffe2 {

struct BlobProto;

// Base of all blob kinds that are not tensors (text, mutexes, queues, values of a host language).
class Object {
 public:
  virtual ~Object() = default;
  virtual const char* kind() const = 0;
  // Fills type and content; kinds that live only in memory keep this refusal.
  virtual void serialize(BlobProto& proto) const;
};

class Text : public Object {
 public:
  explicit Text(std::string value) : value(std::move(value)) {}
  const char* kind() const override { return "std::string"; }
  void serialize(BlobProto& proto) const override;
  const std::string value;
};

class Mutex : public Object {
 public:
  static constexpr const char* kKind = "std::unique_ptr<std::mutex>";
  const char* kind() const override { return kKind; }
  void serialize(BlobProto& proto) const override;
  ForkMutex mutex;
};

// A number that any thread may change at any time.
class Counter : public Object {
 public:
  static constexpr const char* kKind = "std::unique_ptr<Counter<int64_t>>";
  explicit Counter(int64_t count) : count(count) {}
  const char* kind() const override { return kKind; }
  void serialize(BlobProto& proto) const override;
  std::atomic<int64_t> count;
};

// What a blob holds at one moment; keeps the content alive.
struct BlobValue {
  Tensor tensor;
  std::shared_ptr<Object> object;

  bool is_tensor() const { return tensor.storage() != nullptr; }
  bool empty() const { return !is_tensor() && !object; }
  const char* kind() const;
  template <class T>
  std::shared_ptr<T> as() const {
    return std::dynamic_pointer_cast<T>(object);
  }
};

// Reading and replacing the value is safe from any thread. What is being written in place (claim)
// comes as a copy, so that no value changes under a reader that has checked it.
class Blob {
 public:
  // Tensors come in plain order, which the blob keeps.
  BlobValue get() const {
    std::lock_guard lock(mutex_);
    if (!value_.tensor.layout().plain()) value_.tensor = value_.tensor.to_plain();
    return snapshot();
  }
  // In the order in which the value was stored.
  BlobValue get_stored() const {
    std::lock_guard lock(mutex_);
    return snapshot();
  }
  // The very memory, for views, which are meant to see writes.
  BlobValue get_shared() const {
    std::lock_guard lock(mutex_);
    if (!value_.tensor.layout().plain()) value_.tensor = value_.tensor.to_plain();
    return value_;
  }
  // The memory of the tensor that is here, to be written by the caller alone until it calls set()
  // or release(); nullptr where `may` refuses that or somebody else is writing it.
  template <class May>
  std::shared_ptr<Storage> claim(const May& may) {
    std::lock_guard lock(mutex_);
    const std::shared_ptr<Storage>& storage = value_.tensor.storage();
    if (!storage || claimed_ == storage.get() || !may(storage)) return nullptr;
    claimed_ = storage.get();
    return storage;
  }
  void release(const Storage* storage) {
    std::lock_guard lock(mutex_);
    if (claimed_ == storage) claimed_ = nullptr;
  }
  // `same` is what the blob holds, in another order; without effect when it holds another value.
  void reorder(const Storage* known, const Tensor& same) const {
    Tensor replaced;  // goes after the lock
    std::lock_guard lock(mutex_);
    if (value_.tensor.storage().get() != known) return;
    replaced = std::exchange(value_.tensor, same);
  }
  bool holds(const Object* object) const {
    std::lock_guard lock(mutex_);
    return value_.object.get() == object;
  }
  void set(BlobValue value) {
    // What was there goes after the lock: its destructor may call into a host language.
    std::lock_guard lock(mutex_);
    claimed_ = nullptr;
    std::swap(value_, value);
  }
  void set(Tensor tensor) { set(BlobValue{std::move(tensor), nullptr}); }
  // The same, but what shares memory with other blobs goes on to do so.
  void feed(Tensor tensor) {
    const Tensor now = get_shared().tensor;
    if (!now.storage() || !now.storage()->shared() || now.type() != tensor.type() ||
        !now.storage()->fits(tensor.bytes(), tensor.type())) {
      return set(std::move(tensor));
    }
    Tensor there(now.storage(), tensor.shape(), tensor.type());
    there.copy_from(tensor.layout().plain() ? tensor : tensor.to_plain());
    set(std::move(there));
  }
  void set(std::shared_ptr<Object> object) { set(BlobValue{Tensor(), std::move(object)}); }
  void clear() { set(BlobValue()); }

 private:
  BlobValue snapshot() const {
    if (claimed_ == nullptr || claimed_ != value_.tensor.storage().get()) return value_;
    return {value_.tensor.copy(), nullptr};
  }

  mutable ForkMutex mutex_;
  mutable BlobValue value_;
  const Storage* claimed_ = nullptr;  // whose holder keeps it alive
};

}  // namespace caffe2
