#include "core/workspace.h"

#include <random>
#include <set>
#include <utility>

#include "core/near_names.h"

namespace caffe2 {

// Nets and blob values are destroyed without mutex_: their destructors may call into a host
// language, whose lock another thread may hold while it waits for ours.

Workspace::Workspace(std::shared_ptr<Engine> engine)
    : engine_(std::move(engine)), parent_(nullptr) {
  std::random_device device;
  random_seed_ = static_cast<uint64_t>(device()) << 32 | device();
}

Workspace::Workspace(const Workspace* parent, uint64_t random_seed)
    : engine_(parent->engine_),
      parent_(parent),
      reference_(parent->reference_),
      random_seed_(random_seed) {}

std::vector<std::string> Workspace::blob_names() const {
  std::vector<std::string> own = own_blob_names();
  if (parent_ == nullptr) return own;
  std::set<std::string> names(own.begin(), own.end());
  for (std::string& name : parent_->blob_names()) names.insert(std::move(name));
  return {names.begin(), names.end()};
}

std::vector<std::string> Workspace::own_blob_names() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, blob] : blobs_) names.push_back(name);
  return names;
}

std::shared_ptr<Blob> Workspace::find_blob(std::string_view name) const {
  {
    std::lock_guard lock(mutex_);
    const auto it = blobs_.find(name);
    if (it != blobs_.end()) return it->second;
  }
  return parent_ != nullptr ? parent_->find_blob(name) : nullptr;
}

std::shared_ptr<Blob> Workspace::get_blob(std::string_view name) const {
  if (auto blob = find_blob(name)) return blob;
  fail(Code::kNotFound, "there is no blob ", quoted(name), " in this workspace",
       near_names(name, blob_names()));
}

std::shared_ptr<Blob> Workspace::create_blob(std::string_view name) {
  if (parent_ != nullptr) {
    if (auto blob = find_blob(name)) return blob;
  }
  std::lock_guard lock(mutex_);
  auto it = blobs_.find(name);
  if (it == blobs_.end()) it = blobs_.emplace(std::string(name), std::make_shared<Blob>()).first;
  return it->second;
}

bool Workspace::remove_blob(std::string_view name) {
  std::shared_ptr<Blob> removed;
  {
    std::lock_guard lock(mutex_);
    const auto it = blobs_.find(name);
    if (it == blobs_.end()) return false;
    removed = std::move(it->second);
    blobs_.erase(it);
    epoch_++;
  }
  removed->clear();  // memory goes back now, also where a net still points to the blob
  return true;
}

void Workspace::forward_blob(std::string_view name, std::shared_ptr<Blob> blob) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Blob>& slot = blobs_[std::string(name)];
  if (slot == blob) return;
  slot.swap(blob);  // what was there goes after the lock
  epoch_++;
}

std::shared_ptr<CompiledNet> Workspace::create_net(NetDef def, std::vector<std::string> sites,
                                                   bool overwrite, NetOptions options) {
  const std::string name = def.name.value_or("");
  CAFFE2_ENFORCE(!name.empty(), "the net has no name (NetDef.name), by which it would be run");
  // With the lock held.
  const auto require_free = [&] {
    CAFFE2_ENFORCE(overwrite || nets_.find(name) == nets_.end(), "a net ", quoted(name),
                   " exists already in this workspace; overwrite=True replaces it");
  };
  {
    std::lock_guard lock(mutex_);
    require_free();
  }
  auto net =
      std::make_shared<CompiledNet>(std::move(def), std::move(sites), *this, next_seed(), options);
  std::shared_ptr<CompiledNet> replaced = net;  // goes after the lock
  std::lock_guard lock(mutex_);
  require_free();  // another thread may have been quicker
  nets_[name].swap(replaced);
  return net;
}

std::shared_ptr<CompiledNet> Workspace::get_net(std::string_view name) const {
  {
    std::lock_guard lock(mutex_);
    const auto it = nets_.find(name);
    if (it != nets_.end()) return it->second;
  }
  fail(Code::kNotFound, "there is no net ", quoted(name), " in this workspace",
       near_names(name, net_names()));
}

bool Workspace::remove_net(std::string_view name) {
  std::shared_ptr<CompiledNet> removed;
  std::lock_guard lock(mutex_);
  const auto it = nets_.find(name);
  if (it == nets_.end()) return false;
  removed = std::move(it->second);
  nets_.erase(it);
  return true;
}

std::vector<std::string> Workspace::net_names() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, net] : nets_) names.push_back(name);
  return names;
}

void Workspace::run_net_once(NetDef def, std::vector<std::string> sites) {
  CompiledNet(std::move(def), std::move(sites), *this, next_seed()).run();
}

void Workspace::run_operator_once(OperatorDef def, std::string site) {
  NetDef net;
  net.op.push_back(std::move(def));
  run_net_once(std::move(net), {std::move(site)});
}

void Workspace::reset() {
  decltype(nets_) nets;
  decltype(blobs_) blobs;
  {
    std::lock_guard lock(mutex_);
    nets.swap(nets_);
    blobs.swap(blobs_);
    epoch_++;
  }
  for (auto& [name, blob] : blobs) blob->clear();
  engine_->scratch().release_free();
}

void Workspace::set_root_folder(std::string folder) {
  std::lock_guard lock(mutex_);
  root_folder_ = std::move(folder);
}

std::string Workspace::root_folder() const {
  if (parent_ != nullptr) return parent_->root_folder();
  std::lock_guard lock(mutex_);
  return root_folder_;
}

void Workspace::set_random_seed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  random_seed_ = seed;
  nets_made_ = 0;
}

uint64_t Workspace::next_seed() {
  // SplitMix64 (Steele, Lea, Flood 2014): far apart seeds from a counter.
  std::lock_guard lock(mutex_);
  uint64_t z = random_seed_ + 0x9e3779b97f4a7c15u * ++nets_made_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

}  // namespace caffe2
