// Operators that read data sets: databases of records that are lists of tensors.
#include "core/database.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/near_names.h"
#include "core/registry.h"
#include "core/serialize.h"
#include "operators/files.h"

namespace caffe2 {
namespace {

class CreateDBOperator : public Operator {
 public:
  explicit CreateDBOperator(const OperatorContext& context)
      : Operator(context),
        path_(args().text("db")),
        type_(args().text("db_type")),
        shards_(args().int32("num_shards")),
        shard_(args().int32("shard_id")) {
    CAFFE2_ENFORCE(shard_ < shards_, "shard_id = ", shard_, " is not below num_shards = ", shards_);
  }

 protected:
  void run() override {
    auto database = open_database(engine().hooks(), type_, path_, DatabaseMode::kRead);
    output_object(0, std::make_shared<DatabaseReader>(std::move(database), path_, shards_, shard_));
  }

 private:
  const std::string path_, type_;
  const int shards_, shard_;
};

class DBExistsOperator : public Operator {
 public:
  explicit DBExistsOperator(const OperatorContext& context)
      : Operator(context), path_(path_of(context, "db_name")) {}

 protected:
  void run() override {
    std::error_code unreadable;
    *output(0, {}, DataType::kBool).mutable_data<bool>() =
        std::filesystem::exists(path_.full(), unreadable);
  }

 private:
  const FilePath path_;
};

class TensorProtosDBInputOperator : public Operator {
 public:
  explicit TensorProtosDBInputOperator(const OperatorContext& context)
      : Operator(context), batch_(args().int32("batch_size")) {}

 protected:
  void run() override {
    const auto reader = input_object<DatabaseReader>(0);
    if (ahead_ == nullptr || ahead_->reader != reader) ahead_ = read_batch(reader);
    if (ahead_->problem != nullptr) std::rethrow_exception(std::exchange(ahead_, {})->problem);
    const std::deque<Item>& items = ahead_->items;
    std::vector<char*> places;
    for (int i = 0; i < outputs(); i++) {
      const TensorItem& first = items.front().tensors[i];
      Shape shape;
      if (batch_ > 0) shape.append(batch_);
      for (const int64_t dim : first.shape()) shape.append(dim);
      places.push_back(static_cast<char*>(output(i, shape, first.type()).raw_mutable_data()));
    }
    for (const Item& item : items) {
      for (int i = 0; i < outputs(); i++) {
        const TensorItem& tensor = item.tensors[i];
        tensor.copy_to(places[i]);
        places[i] += static_cast<size_t>(tensor.shape().size()) * type_size(tensor.type());
      }
    }
    ahead_ = reader->allows_reading_ahead() ? read_batch(reader) : nullptr;
  }

 private:
  struct Item {
    DatabaseReader::Record record;  // what the tensors point into
    TensorProtos protos;
    std::vector<TensorItem> tensors;
  };

  struct Batch {
    std::shared_ptr<DatabaseReader> reader;
    std::deque<Item> items;
    std::exception_ptr problem;  // why it could not be read
  };

  std::unique_ptr<Batch> read_batch(const std::shared_ptr<DatabaseReader>& reader) {
    auto batch = std::make_unique<Batch>(Batch{reader, {}, nullptr});
    try {
      for (int n = 0; n < std::max(batch_, 1); n++) {
        context().cancellation.poll();
        read(*reader, batch->items.emplace_back(), batch->items.front());
      }
    } catch (const Error& error) {
      if (error.code() == Code::kCancelled) throw;
      batch->problem = std::current_exception();
    }
    return batch;
  }

  void read(DatabaseReader& reader, Item& item, const Item& first) {
    item.record = reader.read(context().cancellation);
    try {
      ParseOptions options;
      options.borrow = true;
      item.protos = parse<TensorProtos>(item.record.value, options);
      const auto found = static_cast<int>(item.protos.protos.size());
      CAFFE2_ENFORCE(found == outputs(), "it has ", found, " tensor(s) for ", outputs(),
                     " output(s)");
      for (int i = 0; i < outputs(); i++) {
        const TensorItem& tensor = item.tensors.emplace_back(item.protos.protos[i]);
        const TensorItem& other = first.tensors[i];
        CAFFE2_ENFORCE(tensor.type() == other.type() && tensor.shape() == other.shape(), "tensor ",
                       i, " is ", type_name(tensor.type()), " of shape ", tensor.shape().text(),
                       ", in the first record of the batch ", type_name(other.type()), " of shape ",
                       other.shape().text());
      }
    } catch (const Error& error) {
      fail(error.code(), "database '", reader.source(), "', record ", quoted(item.record.key), ": ",
           error.text());
    }
  }

  const int batch_;
  // One batch is read ahead, as in the original, which loses it with the operator.
  std::unique_ptr<Batch> ahead_;
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateDB, CreateDBOperator)
REGISTER_CPU_OPERATOR(DBExists, DBExistsOperator)
REGISTER_CPU_OPERATOR(TensorProtosDBInput, TensorProtosDBInputOperator)

}  // namespace caffe2
