// Records packed into one blob, for queues of whole records, and unpacked again.
#include <memory>
#include <vector>

#include "core/registry.h"
#include "operators/record_tree.h"
#include "operators/segments.h"

namespace caffe2 {
namespace {

// Parts of records: in each, a tensor per field.
class PackedRecords : public Object {
 public:
  const char* kind() const override { return "packed records"; }
  std::vector<Tensor> fields;
  int64_t records = 0;
};

class PackRecordsOperator : public RecordOperator {
 public:
  explicit PackRecordsOperator(const OperatorContext& context)
      : RecordOperator(context), tree_(args().texts("fields")) {}

 protected:
  void run() override {
    const std::vector<const Tensor*> data = fields(tree_, 0);
    const std::vector<int64_t> limits = tree_.limits(data);
    const std::vector<int64_t> none(tree_.domains(), 0);
    const std::vector<int64_t> sizes = tree_.sizes(data, none, limits[0]);
    auto packed = std::make_shared<PackedRecords>();
    packed->records = sizes[0];
    for (int i = 0; i < tree_.fields(); i++) {
      const int64_t rows = sizes[tree_.domain(i)];
      Tensor copy(engine().allocator(), with_rows(data[i]->shape(), rows), data[i]->type());
      copy_rows(*data[i], 0, rows, copy, 0, parallel());
      packed->fields.push_back(copy);
    }
    output_object(0, packed);
  }

 private:
  const RecordTree tree_;
};

class UnPackRecordsOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override {
    const auto packed = input_object<PackedRecords>(0);
    const int n = static_cast<int>(packed->fields.size());
    CAFFE2_ENFORCE(outputs() == n, "there are ", outputs(), " outputs, but ", describe_input(0),
                   " has ", n, " fields");
    CAFFE2_ENFORCE(inputs() == 1 || inputs() == n + 1, "there are ", inputs(),
                   " inputs; needed are the packed records and either no prototype or ", n);
    for (int i = 0; i < n; i++) {
      output_value(i, BlobValue{packed->fields[i], nullptr});
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(PackRecords, PackRecordsOperator)
REGISTER_CPU_OPERATOR(UnPackRecords, UnPackRecordsOperator)

}  // namespace caffe2
