#include "core/private_blobs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/allocator.h"
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
        it->second.one_place &= has(op.input, name);
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
    if (!item.second.one_place) return true;
    const BlobValue value = item.second.blob->get_stored();
    return !value.is_tensor() || lies_there(value.tensor);
  });
}

// Values of the same size as before that lie elsewhere again are moved by each run, as when an
// operator brings them into plain order. They stay where they are.
void PrivateBlobs::leave_out_movers() {
  for (auto& [name, entry] : blobs_) {
    const BlobValue value = entry.blob->get_stored();
    if (!entry.one_place || !value.is_tensor()) continue;
    const Tensor& tensor = value.tensor;
    const size_t bytes = Tensor::bytes_for(tensor.shape(), tensor.type(), tensor.layout());
    if (memory_ && bytes == entry.bytes && !lies_there(tensor)) entry.one_place = false;
    entry.bytes = bytes;
  }
}

// Blobs may share memory; the value that is written first stands for all of them.
struct PrivateBlobs::Shared {
  Lifetime lifetime;
  Blob* first;
  Shape shape;
  DataType type;
  Layout layout;
  long holders;
  std::shared_ptr<Storage> storage;
  Shared* whole = nullptr;  // it lies in there,
  size_t offset = 0;        // so many bytes from the start

  // What others hold as well, such as an output of the net, stays where it is.
  bool movable() const { return storage.use_count() == holders + 1; }
};

PrivateBlobs::Found PrivateBlobs::found(const std::map<std::string_view, Span>& spans) const {
  Found found;
  for (const auto& [name, entry] : blobs_) {
    const auto span = spans.find(name);
    const BlobValue value = entry.blob->get_stored();
    if (!entry.one_place || span == spans.end() || !value.is_tensor()) continue;
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
  return found;
}

// Puts the inputs of the operator into its output, unless one of them is needed afterwards or lies
// elsewhere.
void PrivateBlobs::join(Found& found, const OperatorDef& op, int step) const {
  const auto shared_of = [&](const std::string& name) -> Shared* {
    const auto entry = blobs_.find(name);
    if (entry == blobs_.end()) return nullptr;
    const auto it = found.find(entry->second.blob->get_stored().tensor.storage().get());
    return it == found.end() || !it->second.movable() ? nullptr : &it->second;
  };
  Shared* whole = shared_of(op.output[0]);
  if (!whole || whole->lifetime.first != step) return;
  std::vector<Shared*> parts;
  size_t bytes = 0;
  for (const std::string& name : op.input) {
    Shared* part = shared_of(name);
    if (!part || part->whole || part->lifetime.last != step || !(part->layout == whole->layout) ||
        bytes % Allocator::kAlignment != 0 ||
        std::find(parts.begin(), parts.end(), part) != parts.end()) {
      return;
    }
    parts.push_back(part);
    bytes += part->lifetime.bytes;
  }
  if (bytes != whole->lifetime.bytes) return;
  size_t offset = 0;
  for (Shared* part : parts) {
    part->whole = whole;
    part->offset = offset;
    offset += part->lifetime.bytes;
    whole->lifetime.first = std::min(whole->lifetime.first, part->lifetime.first);
  }
}

void PrivateBlobs::settle(const NetDef& net, const std::vector<Step>& steps,
                          const std::function<bool(int op)>& joined,
                          const std::shared_ptr<Allocator>& allocator) {
  if (settled()) return;
  leave_out_movers();
  Found found = this->found(spans(net, steps));
  for (int s = 0; s < static_cast<int>(steps.size()); s++) {
    if (joined(steps[s].op)) join(found, net.op[steps[s].op], s);
  }
  std::vector<Lifetime> lifetimes;
  std::vector<Shared*> values;
  for (auto& [storage, shared] : found) {
    if (!shared.movable()) continue;
    values.push_back(&shared);
    if (!shared.whole) lifetimes.push_back(shared.lifetime);
  }
  const size_t bytes = place(lifetimes);
  for (const auto& [name, entry] : blobs_) {
    if (entry.one_place) entry.blob->clear();
  }
  for (auto& [storage, shared] : found) shared.storage.reset();
  memory_.reset();
  memory_ = std::make_shared<Storage>(allocator, bytes);
  auto placed = lifetimes.begin();
  for (Shared* value : values) {
    if (!value->whole) value->offset = placed++->offset;
  }
  for (Shared* value : values) {
    size_t offset = 0;
    for (const Shared* v = value; v; v = v->whole) offset += v->offset;
    auto part = std::make_shared<Storage>(memory_, offset, value->lifetime.bytes);
    value->first->set(Tensor(std::move(part), value->shape, value->type, value->layout));
  }
}

}  // namespace caffe2
