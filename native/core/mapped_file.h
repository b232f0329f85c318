// A file as memory: pages are read when they are used, and can be given back.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/lender.h"

namespace caffe2 {

class MappedFile : public Lender {
 public:
  // Raises Error, with the reason, for what cannot be read or is no regular file. The file must not
  // be cut short while it is mapped; one that is replaced stays as it was.
  explicit MappedFile(const std::string& path);
  ~MappedFile() override;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

  // Gives back the memory of a part, which is read again when it is used. Nobody may have written.
  void drop(const void* data, size_t bytes) const override;

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace caffe2
