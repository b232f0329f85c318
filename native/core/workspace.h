// Named blobs and the nets that run on them.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/blob.h"
#include "core/engine.h"
#include "core/net.h"

namespace caffe2 {

// Makes operators that run outside the engine (the NumPy bodies); may return nullptr.
using ReferenceFactory = std::function<std::unique_ptr<Operator>(const OperatorContext&)>;

class Workspace {
 public:
  explicit Workspace(std::shared_ptr<Engine> engine);
  // Inside `parent`, which outlives it: blobs of the parent are read and written here as well, new
  // ones are this workspace's own. Nets are not shared.
  Workspace(const Workspace* parent, uint64_t random_seed);

  Engine& engine() const { return *engine_; }
  const std::shared_ptr<Engine>& share_engine() const { return engine_; }

  std::vector<std::string> blob_names() const;
  std::vector<std::string> own_blob_names() const;               // without those of the parent
  std::shared_ptr<Blob> find_blob(std::string_view name) const;  // nullptr when there is none
  std::shared_ptr<Blob> get_blob(std::string_view name) const;   // raises with near names
  std::shared_ptr<Blob> create_blob(std::string_view name);  // the present one when there is one
  bool remove_blob(std::string_view name);
  // Makes `name` stand for a blob of another workspace: both see every write.
  void forward_blob(std::string_view name, std::shared_ptr<Blob> blob);

  std::shared_ptr<CompiledNet> create_net(NetDef def, std::vector<std::string> sites,
                                          bool overwrite, NetOptions options = {});
  std::shared_ptr<CompiledNet> get_net(std::string_view name) const;  // raises with near names
  bool remove_net(std::string_view name);
  std::vector<std::string> net_names() const;

  void run_net_once(NetDef def, std::vector<std::string> sites);
  void run_operator_once(OperatorDef def, std::string site);

  // Forgets all nets, then all blobs.
  void reset();

  void set_reference_factory(ReferenceFactory factory) { reference_ = std::move(factory); }
  const ReferenceFactory& reference_factory() const { return reference_; }

  // What operators made here, and in workspaces inside, may touch: a set of Touches.
  void allow(uint32_t touches) { allowed_ = touches; }
  uint32_t allowed() const { return allowed_ & (parent_ ? parent_->allowed() : kTouchesAll); }

  // Where the files of operators are whose paths are not absolute.
  void set_root_folder(std::string folder);
  std::string root_folder() const;

  // Base of the random streams of operators whose device option names no seed.
  uint64_t random_seed() const { return random_seed_; }
  void set_random_seed(uint64_t seed);
  // Of the next net that is made here.
  uint64_t next_seed();

 private:
  friend class CompiledNet;
  uint64_t epoch() const { return epoch_ + (parent_ != nullptr ? parent_->epoch() : 0); }

  std::shared_ptr<Engine> engine_;
  const Workspace* const parent_;
  std::map<std::string, std::shared_ptr<Blob>, std::less<>> blobs_;
  std::map<std::string, std::shared_ptr<CompiledNet>, std::less<>> nets_;
  mutable ForkMutex mutex_;  // of the two maps, the folder and the seed
  ReferenceFactory reference_;
  std::atomic<uint32_t> allowed_{kTouchesAll};
  std::string root_folder_ = ".";
  uint64_t random_seed_;
  uint64_t nets_made_ = 0;
  std::atomic<uint64_t> epoch_{1};  // raised when a blob goes away: nets look theirs up anew
};

}  // namespace caffe2
