#include "core/private_blobs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/definitions.h"
#include "core/memory_plan.h"

namespace caffe2 {

namespace {

// All that a net and the nets in it speak of; operators also find blobs by names in arguments.
void mention(const NetDef& net, std::set<std::string, std::less<>>& names) {
  for (const OperatorDef& op : net.op) {
    names.insert(op.input.begin(), op.input.end());
    names.insert(op.output.begin(), op.output.end());
    names.insert(op.control_input.begin(), op.control_input.end());
    for (const Argument& arg : op.arg) {
      if (arg.s) names.insert(*arg.s);
      names.insert(arg.strings.begin(), arg.strings.end());
    }
    for_each_net(op, [&names](const NetDef& inner) { mention(inner, names); });
  }
}

}  // namespace

PrivateBlobs::PrivateBlobs(const NetDef& net, const std::function<bool(int op)>& ordinary,
                           const std::function<bool(const std::string&)>& exists) {
  std::set<std::string, std::less<>> others(net.external_output.begin(), net.external_output.end());
  NetDef extraordinary;
  for (int i = 0; i < static_cast<int>(net.op.size()); i++) {
    if (!ordinary(i)) extraordinary.op.push_back(net.op[i]);
  }
  mention(extraordinary, others);
  std::set<std::string_view> read;
  for (const OperatorDef& op : net.op) {
    for (const std::string& name : op.output) {
      if (const auto it = blobs_.find(name); it != blobs_.end()) {
        it->second.one_size &= has(op.input, name);
      } else if (!others.count(name) && !read.count(name) && !has(op.input, name) &&
                 !exists(name)) {
        blobs_[name] = {std::make_shared<Blob>(), true};
      }
    }
    read.insert(op.input.begin(), op.input.end());
  }
}

std::shared_ptr<Blob> PrivateBlobs::find(const std::string& name) const {
  const auto it = blobs_.find(name);
  return it == blobs_.end() ? nullptr : it->second.blob;
}

// The steps in which a blob has to keep its value.
struct PrivateBlobs::Span {
  int first, last;
};

std::map<std::string_view, PrivateBlobs::Span> PrivateBlobs::spans(
    const NetDef& net, const std::vector<Step>& steps) const {
  std::map<std::string_view, Span> spans;
  for (int s = 0; s < static_cast<int>(steps.size()); s++) {
    const auto use = [&](const std::string& name) {
      spans.try_emplace(name, Span{s, s}).first->second.last = s;
    };
    const OperatorDef& op = net.op[steps[s].op];
    for (const std::string& name : op.input) use(name);
    for (size_t i = 0; i < op.output.size(); i++) {
      use(i == 0 && steps[s].fusion ? steps[s].fusion->output : op.output[i]);
    }
    if (steps[s].fusion && steps[s].fusion->residual) use(*steps[s].fusion->residual);
  }
  return spans;
}

bool PrivateBlobs::settled() const {
  return std::all_of(blobs_.begin(), blobs_.end(), [&](const auto& item) {
    if (!item.second.one_size) return true;
    const BlobValue value = item.second.blob->get_stored();
    return !value.is_tensor() || (memory_ && value.tensor.storage()->whole() == memory_.get());
  });
}

void PrivateBlobs::settle(const NetDef& net, const std::vector<Step>& steps,
                          const std::shared_ptr<Allocator>& allocator) {
  if (settled()) return;
  // Blobs may share memory; the value that is written first stands for all of them.
  struct Shared {
    Lifetime lifetime;
    Blob* first;
    Shape shape;
    DataType type;
    Layout layout;
    long holders;
    std::shared_ptr<Storage> storage;
  };
  std::map<Storage*, Shared> found;
  const auto spans = this->spans(net, steps);
  for (const auto& [name, entry] : blobs_) {
    const auto span = spans.find(name);
    const BlobValue value = entry.blob->get_stored();
    if (!entry.one_size || span == spans.end() || !value.is_tensor()) continue;
    const Tensor& tensor = value.tensor;
    if (tensor.type() == DataType::kString) continue;
    const Lifetime lifetime{Tensor::bytes_for(tensor.shape(), tensor.type(), tensor.layout()),
                            span->second.first, span->second.last};
    const auto [it, added] = found.try_emplace(
        tensor.storage().get(), Shared{lifetime, entry.blob.get(), tensor.shape(), tensor.type(),
                                       tensor.layout(), 1, tensor.storage()});
    if (added) continue;
    Shared& shared = it->second;
    shared.holders++;
    if (lifetime.first < shared.lifetime.first) {
      shared.first = entry.blob.get();
      shared.shape = tensor.shape();
      shared.layout = tensor.layout();
      shared.type = tensor.type();
    }
    shared.lifetime.bytes = std::max(shared.lifetime.bytes, lifetime.bytes);
    shared.lifetime.first = std::min(shared.lifetime.first, lifetime.first);
    shared.lifetime.last = std::max(shared.lifetime.last, lifetime.last);
  }
  std::vector<Lifetime> lifetimes;
  std::vector<Shared*> values;
  for (auto& [storage, shared] : found) {
    // What others hold as well, such as an output of the net, stays where it is.
    if (shared.storage.use_count() != shared.holders + 1) continue;
    lifetimes.push_back(shared.lifetime);
    values.push_back(&shared);
  }
  const size_t bytes = place(lifetimes);
  for (const auto& [name, entry] : blobs_) {
    if (entry.one_size) entry.blob->clear();
  }
  for (auto& [storage, shared] : found) shared.storage.reset();
  memory_.reset();
  memory_ = std::make_shared<Storage>(allocator, bytes);
  for (size_t i = 0; i < values.size(); i++) {
    const Shared& v = *values[i];
    auto part = std::make_shared<Storage>(memory_, lifetimes[i].offset, lifetimes[i].bytes);
    v.first->set(Tensor(std::move(part), v.shape, v.type, v.layout));
  }
}

}  // namespace caffe2
