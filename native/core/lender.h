#pragma once
#include <cstddef>

namespace caffe2 {

// Who owns memory that a storage only reads.
class Lender {
 public:
  Lender() = default;
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;
  virtual ~Lender() = default;
  // Nobody reads this part for now.
  virtual void drop(const void* data, size_t bytes) const {
    (void)data;
    (void)bytes;
  }
};

}  // namespace caffe2
