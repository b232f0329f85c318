// A named value of a workspace: nothing yet, a tensor, or an object of another registered kind.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

#include "core/tensor.h"

namespace caffe2 {

struct BlobProto;

// Base of all blob kinds that are not tensors (text, mutexes, values of a host language).
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
  const char* kind() const override { return "std::unique_ptr<std::mutex>"; }
  std::mutex mutex;
};

class Blob {
 public:
  bool empty() const { return std::holds_alternative<std::monostate>(value_); }
  const char* kind() const;

  // nullptr when the blob holds something else.
  const Tensor* tensor() const { return std::get_if<Tensor>(&value_); }
  Tensor* tensor() { return std::get_if<Tensor>(&value_); }
  template <class T>
  std::shared_ptr<T> object() const {
    const auto* held = std::get_if<std::shared_ptr<Object>>(&value_);
    return held ? std::dynamic_pointer_cast<T>(*held) : nullptr;
  }

  void set(Tensor tensor) { value_ = std::move(tensor); }
  void set(std::shared_ptr<Object> object) { value_ = std::move(object); }
  void clear() { value_ = std::monostate(); }

 private:
  std::variant<std::monostate, Tensor, std::shared_ptr<Object>> value_;
};

}  // namespace caffe2
