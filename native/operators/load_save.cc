// Blobs to databases and back.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/database.h"
#include "core/near_names.h"
#include "core/registry.h"
#include "core/serialize.h"
#include "operators/files.h"
#include "operators/save_options.h"

namespace caffe2 {
namespace {

// `name` without `prefix`, where it begins with that.
std::string without(const std::string& prefix, std::string_view name) {
  if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
  return std::string(name);
}

class LoadOperator : public Operator {
 public:
  explicit LoadOperator(const OperatorContext& context)
      : Operator(context),
        workspace_(context.workspace),
        type_(args().text("db_type")),
        strip_(args().text("strip_prefix")),
        add_(args().text("add_prefix")),
        all_(args().boolean("load_all")),
        incomplete_(args().boolean("allow_incomplete")),
        sources_(args().texts("source_blob_names")) {
    const bool absolute = args().boolean("absolute_path");
    std::vector<std::string> paths = args().texts("dbs");
    if (paths.empty() && !args().text("db").empty()) paths = {args().text("db")};
    if (context.def.input.empty()) {
      CAFFE2_ENFORCE(!paths.empty(),
                     "it names no database: it has no inputs, and neither 'db' nor 'dbs'");
      CAFFE2_ENFORCE(!type_.empty(), "argument 'db_type' is needed, such as minidb");
      for (const std::string& path : paths) paths_.emplace_back(context, path, absolute);
      require_distinct(paths, "database");
    }
    const size_t outputs = context.def.output.size();
    CAFFE2_ENFORCE(sources_.empty() || sources_.size() == outputs, "it has ", sources_.size(),
                   " source_blob_names for ", outputs, " output(s)");
    if (sources_.empty()) sources_ = context.def.output;
    require_distinct(sources_, "blob");
  }

 protected:
  void run() override {
    found_.clear();
    struct Clear {
      std::map<std::string, Found>& found;
      ~Clear() { found.clear(); }
    } clear{found_};
    for (int i = 0; i < inputs(); i++) read(*input_object<DatabaseReader>(i));
    if (inputs() == 0) {
      for (const FilePath& path : paths_) {
        DatabaseReader reader(
            open_database(engine().hooks(), type_, path.full(), DatabaseMode::kRead), path.full(),
            1, 0);
        read(reader);
      }
    }
    require_complete();
    // Nothing was written so far, and nothing fails from here on.
    std::vector<std::pair<std::shared_ptr<Blob>, BlobValue>> others;
    for (auto& [name, found] : found_) {
      if (!found.blob.complete()) continue;
      const auto source = std::find(sources_.begin(), sources_.end(), name);
      if (source != sources_.end()) {
        output_value(static_cast<int>(source - sources_.begin()), found.blob.take());
      } else {
        others.emplace_back(workspace_.create_blob(name), found.blob.take());
      }
    }
    for (auto& [blob, value] : others) blob->set(std::move(value));
    for (int i = 0; i < outputs(); i++) {
      if (found_.find(sources_[i]) == found_.end()) forget(def().output[i]);
    }
  }

 private:
  // What is not there leaves no blob, unless it was there before or others wait for it.
  void forget(const std::string& name) {
    const std::shared_ptr<Blob> blob = workspace_.find_blob(name);
    constexpr long kHolders = 3;  // the workspace, this operator and this function
    if (blob && blob.use_count() == kHolders && blob->get().empty()) workspace_.remove_blob(name);
  }

  struct Found {
    BlobAssembler blob;
    std::string database;
  };

  static void require_distinct(const std::vector<std::string>& names, const char* what) {
    std::set<std::string_view> seen;
    for (const std::string& name : names) {
      CAFFE2_ENFORCE(seen.insert(name).second, "it names the ", what, " '", name, "' twice");
    }
  }

  bool wanted(const std::string& name) const {
    return all_ || std::find(sources_.begin(), sources_.end(), name) != sources_.end();
  }

  bool all_outputs_complete() const {
    return std::all_of(sources_.begin(), sources_.end(), [&](const std::string& name) {
      const auto it = found_.find(name);
      return it != found_.end() && it->second.blob.complete();
    });
  }

  void read(DatabaseReader& reader) {
    reader.read_all(context().cancellation, [&](std::string_view key, std::string_view value) {
      const std::string name = add_ + without(strip_, name_of_key(key));
      CAFFE2_ENFORCE(is_utf8(name), "database '", reader.source(),
                     "' has a blob whose name is no UTF-8 text");
      names_.insert(name);
      if (!wanted(name)) return true;
      auto [it, first] = found_.try_emplace(name, Found{BlobAssembler(engine()), reader.source()});
      try {
        if (!first && it->second.database != reader.source()) {
          fail(Code::kInvalidArgument, "it is in '", it->second.database, "' already");
        }
        it->second.blob.add(value);
      } catch (const Error& error) {
        fail(error.code(), "blob ", quoted(name), " of database '", reader.source(),
             "': ", error.text());
      }
      return all_ || !all_outputs_complete();
    });
  }

  void require_complete() {
    std::string missing;
    for (auto& [name, found] : found_) {
      if (!found.blob.complete())
        missing += concat("; blob ", quoted(name), " ", found.blob.missing_text());
    }
    if (!incomplete_) {
      for (const std::string& name : sources_) {
        if (found_.find(name) != found_.end()) continue;
        missing += concat("; blob ", quoted(name), " is not there", near_names(name, names_));
      }
    }
    names_.clear();
    CAFFE2_ENFORCE(missing.empty(), "the database is not whole", missing);
  }

  Workspace& workspace_;
  const std::string type_, strip_, add_;
  const bool all_, incomplete_;
  std::vector<std::string> sources_;  // names in the database, one per output
  std::vector<FilePath> paths_;
  std::map<std::string, Found> found_;
  std::set<std::string> names_;
};

class SaveOperator : public Operator {
 public:
  explicit SaveOperator(const OperatorContext& context)
      : Operator(context),
        path_(path_of(context, "db")),
        type_(args().text("db_type")),
        chunk_(args().integer("chunk_size")),
        options_(args().text("options")),
        names_(args().texts("blob_name_overrides")) {
    const std::string strip = args().text("strip_prefix");
    const auto& inputs = context.def.input;
    CAFFE2_ENFORCE(names_.empty() || names_.size() == inputs.size(), "it has ", names_.size(),
                   " blob_name_overrides for ", inputs.size(), " blob(s)");
    CAFFE2_ENFORCE(names_.empty() || strip.empty(),
                   "blob_name_overrides and strip_prefix exclude each other");
    if (names_.empty()) {
      for (const std::string& name : inputs) names_.push_back(without(strip, name));
    }
    std::set<std::string_view> seen;
    for (const std::string& name : names_) {
      CAFFE2_ENFORCE(seen.insert(name).second, "two blobs would be saved as '", name, "'");
    }
  }

 protected:
  void run() override { save(path_.full()); }

  void save(const std::string& path) {
    const auto database = open_database(engine().hooks(), type_, path, DatabaseMode::kNew);
    for (int i = 0; i < inputs(); i++) {
      try {
        const SaveOptions::Option* option = options_.find(def().input[i]);
        serialize_chunks(names_[i], input_value(i), chunk_of(option), option && option->half,
                         [&](std::string key, std::string bytes) { database->put(key, bytes); });
      } catch (const Error& error) {
        fail(error.code(), describe_input(i), ": ", error.text());
      }
    }
    database->commit();
  }

  const FilePath path_;

 private:
  int64_t chunk_of(const SaveOptions::Option* option) const {
    if (option != nullptr && option->chunk != 0) return std::max<int64_t>(option->chunk, 0);
    return chunk_ < 0 ? kDefaultChunk : chunk_;
  }

  const std::string type_;
  const int64_t chunk_;
  const SaveOptions options_;
  std::vector<std::string> names_;
};

// The names of all blobs, and about how many bytes each takes in a database.
class EstimateAllBlobSizesOperator : public Operator {
 public:
  explicit EstimateAllBlobSizesOperator(const OperatorContext& context)
      : Operator(context),
        workspace_(context.workspace),
        shared_(args().boolean("include_shared")),
        options_(args().text("options")) {}

 protected:
  void run() override {
    const auto blobs = shared_ ? workspace_.blob_names() : workspace_.own_blob_names();
    const auto n = static_cast<int64_t>(blobs.size());
    std::vector<int64_t> bytes;
    for (const std::string& blob : blobs) bytes.push_back(estimate(blob, n));
    Tensor &names = output(0, {n}, DataType::kString), &sizes = output(1, {n}, DataType::kInt64);
    std::copy(blobs.begin(), blobs.end(), names.mutable_data<std::string>());
    std::copy(bytes.begin(), bytes.end(), sizes.mutable_data<int64_t>());
  }

 private:
  static constexpr int64_t kPart = 50, kString = 50, kText = 20;  // bytes around what is counted

  // n: how many blobs there are, which is the size of the outputs.
  int64_t estimate(const std::string& blob, int64_t n) const {
    if (blob == def().output[0]) return estimate(blob, n, DataType::kString);
    if (blob == def().output[1]) return estimate(blob, n, DataType::kInt64);
    const auto found = workspace_.find_blob(blob);
    const BlobValue value = found ? found->get() : BlobValue();
    if (const auto text = value.as<Text>()) {
      return static_cast<int64_t>(blob.size() + text->value.size()) + kText;
    }
    if (!value.is_tensor()) return 0;
    return estimate(blob, value.tensor.size(), value.tensor.type());
  }

  int64_t estimate(const std::string& blob, int64_t size, DataType type) const {
    const SaveOptions::Option* option = options_.find(blob);
    const int64_t chunk = option == nullptr || option->chunk == 0 ? kDefaultChunk
                          : option->chunk < 0                     ? std::max<int64_t>(size, 1)
                                                                  : option->chunk;
    const int64_t parts = size / chunk + (size % chunk != 0 ? 1 : 0);
    return parts * (static_cast<int64_t>(blob.size()) + kPart) + size * element(type, option);
  }

  static int64_t element(DataType type, const SaveOptions::Option* option) {
    switch (type) {
      case DataType::kFloat:
        return option != nullptr && option->half ? 2 : 4;
      case DataType::kBool:
        return 1;
      case DataType::kUInt8:
      case DataType::kInt8:
        return 2;  // numbers in messages have seven bits a byte
      case DataType::kUInt16:
      case DataType::kInt16:
      case DataType::kFloat16:
        return 3;
      case DataType::kString:
        return kString;
      default:
        return static_cast<int64_t>(type_size(type));
    }
  }

  const Workspace& workspace_;
  const bool shared_;
  const SaveOptions options_;
};

// `pattern` with the number where it says %d, or, to be at least six digits long, %06d.
std::string with_number(const std::string& pattern, int64_t number) {
  const size_t mark = pattern.find('%');
  if (mark == std::string::npos) return pattern;
  const size_t digits = pattern.find_first_not_of("0123456789", mark + 1);
  const size_t kind = pattern.find_first_not_of('l', digits);
  CAFFE2_ENFORCE(kind < pattern.size() && (pattern[kind] == 'd' || pattern[kind] == 'i') &&
                     digits - mark <= 3 && pattern.find('%', kind) == std::string::npos,
                 "db = '", pattern, "': one number can be in it, as %d or %06d");
  const std::string width = pattern.substr(mark + 1, digits - mark - 1);
  std::string text = std::to_string(number);
  if (!width.empty() && text.size() < std::stoul(width)) {
    text.insert(0, std::stoul(width) - text.size(), width[0] == '0' ? '0' : ' ');
  }
  return pattern.substr(0, mark) + text + pattern.substr(kind + 1);
}

class CheckpointOperator : public SaveOperator {
 public:
  explicit CheckpointOperator(const OperatorContext& context)
      : SaveOperator(context), every_(args().integer("every")) {
    with_number(path_.given(), 0);
  }

 protected:
  void run() override {
    CAFFE2_ENFORCE(input(0).type() == DataType::kInt64 && input(0).size() == 1, describe_input(0),
                   " is ", type_name(input(0).type()), " of shape ", input(0).shape().text(),
                   "; one int64 is needed, the number of the iteration");
    const int64_t iteration = input(0).data<int64_t>()[0];
    if (iteration % every_ != 0) return;
    save(path_.full(with_number(path_.given(), iteration)));
  }

 private:
  const int64_t every_;
};

}  // namespace

REGISTER_CPU_OPERATOR(Load, LoadOperator)
REGISTER_CPU_OPERATOR(Save, SaveOperator)
REGISTER_CPU_OPERATOR(EstimateAllBlobSizes, EstimateAllBlobSizesOperator)
REGISTER_CPU_OPERATOR(Checkpoint, CheckpointOperator)
REGISTER_CPU_OPERATOR(Snapshot, CheckpointOperator)

}  // namespace caffe2
