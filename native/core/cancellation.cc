#include "core/cancellation.h"

namespace caffe2 {

void Cancellation::poll() {
  if (parent_ == nullptr && hooks_.interrupted) {
    const auto now = Clock::now();
    if (now - asked_ > kPeriod) {
      asked_ = now;
      if (hooks_.interrupted()) cancel();
    }
  }
  require();
}

}  // namespace caffe2
