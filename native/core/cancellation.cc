#include "core/cancellation.h"

namespace caffe2 {

void Cancellation::poll() {
  Cancellation* outermost = this;
  while (outermost->parent_ != nullptr) outermost = outermost->parent_;
  outermost->ask_host();
  require();
}

void Cancellation::ask_host() {
  if (!hooks_.interrupted || cancelled() || std::this_thread::get_id() != thread_) return;
  const auto now = Clock::now();
  if (now - asked_ <= kPeriod) return;
  asked_ = now;
  if (hooks_.interrupted()) cancel();
}

}  // namespace caffe2
