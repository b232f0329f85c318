// The blobs of a net that nobody else can see, in memory that is used several times within a run.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/blob.h"
#include "core/fusion.h"
#include "core/messages.h"

namespace caffe2 {

class PrivateBlobs {
 public:
  PrivateBlobs() = default;
  // What operators of the net write, and nobody outside can want: not its external outputs, nor
  // what `exists` outside already. `ordinary` says which operators keep nothing of what they see.
  PrivateBlobs(const NetDef& net, const std::function<bool(int op)>& ordinary,
               const std::function<bool(const std::string&)>& exists);

  bool contains(const std::string& name) const { return blobs_.count(name) > 0; }
  std::shared_ptr<Blob> find(const std::string& name) const;  // nullptr when there is none

  // After a run of these steps: lays the values out in one piece of memory, by what they needed and
  // when; inputs of an operator that `joined` them lie in its output. Nothing to do when they lie
  // there already.
  void settle(const NetDef& net, const std::vector<Step>& steps,
              const std::function<bool(int op)>& joined,
              const std::shared_ptr<Allocator>& allocator);

 private:
  struct Entry {
    std::shared_ptr<Blob> blob;
    bool one_place;    // within a run: written once, or in place
    size_t bytes = 0;  // when it was laid out
  };
  struct Span;
  struct Shared;
  using Found = std::map<Storage*, Shared>;
  Found found(const std::map<std::string_view, Span>& spans) const;
  void join(Found& found, const OperatorDef& op, int step) const;
  bool lies_there(const Tensor& tensor) const {
    return memory_ && tensor.storage()->whole() == memory_.get();
  }
  bool settled() const;
  void leave_out_movers();
  std::map<std::string_view, Span> spans(const NetDef& net, const std::vector<Step>& steps) const;

  std::map<std::string, Entry, std::less<>> blobs_;
  std::shared_ptr<Storage> memory_;
};

}  // namespace caffe2
