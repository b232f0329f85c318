// Records packed into elements of a tensor, which can be gathered, split and queued.
#include <string>
#include <vector>

#include "core/registry.h"
#include "core/serialize.h"
#include "operators/elements.h"
#include "operators/records.h"

namespace caffe2 {
namespace {

class PackRecordsOperator : public RecordOperator {
 public:
  explicit PackRecordsOperator(const OperatorContext& context)
      : RecordOperator(context),
        tree_(args().texts("fields")),
        single_(args().boolean("pack_to_single_shared_ptr")) {}

 protected:
  void run() override {
    const std::vector<const Tensor*> data = fields(tree_, 0);
    const int64_t rows = tree_.limits(data)[0], count = single_ ? 1 : rows;
    std::vector<std::string> packed;
    std::vector<int64_t> begin(tree_.domains(), 0);
    for (int64_t i = 0; i < count; i++) {
      const std::vector<int64_t> sizes = tree_.sizes(data, begin, single_ ? rows : 1);
      TensorProtos record;
      for (int field = 0; field < tree_.fields(); field++) {
        const Tensor& column = *data[field];
        const int k = tree_.domain(field);
        const int64_t row = column.shape().product(1, column.rank());
        TensorProto part = to_proto(column, begin[k] * row, (begin[k] + sizes[k]) * row);
        part.dims[0] = sizes[k];
        record.protos.push_back(std::move(part));
      }
      packed.push_back(serialize(record));
      for (int k = 0; k < tree_.domains(); k++) begin[k] += sizes[k];
    }
    std::move(packed.begin(), packed.end(),
              output(0, {count}, DataType::kString).mutable_data<std::string>());
  }

 private:
  const RecordTree tree_;
  const bool single_;
};

class UnPackRecordsOperator : public Operator {
 public:
  explicit UnPackRecordsOperator(const OperatorContext& context) : Operator(context) {
    const auto given = static_cast<int>(context.def.output.size());
    const auto fields = static_cast<int>(args().texts("fields").size());
    CAFFE2_ENFORCE(fields == given, "it has ", given, " outputs for ", fields, " fields");
    const auto prototypes = static_cast<int>(context.def.input.size()) - 1;
    CAFFE2_ENFORCE(prototypes == 0 || prototypes == given, "it has ", prototypes,
                   " prototypes for ", given, " outputs");
  }

 protected:
  void run() override {
    const Tensor& packed = input(0);
    CAFFE2_ENFORCE(packed.rank() == 1, describe_input(0), " has shape ", packed.shape().text(),
                   "; one dimension is needed");
    CAFFE2_ENFORCE(packed.size() > 0 || inputs() > 1, describe_input(0),
                   " has no element, and there are no prototypes that say what the columns are");
    std::vector<TensorProtos> records;  // which the parts point into
    std::vector<std::vector<TensorItem>> parts(outputs());
    read(packed, records, parts);
    std::vector<Tensor*> columns;
    for (int i = 0; i < outputs(); i++) {
      if (parts[i].empty()) {
        const Tensor& like = input(i + 1);
        CAFFE2_ENFORCE(like.rank() > 0, describe_input(i + 1), " has shape (); rows are needed");
        columns.push_back(&output(i, rows_like(like.shape(), 0), like.type()));
        continue;
      }
      Shape shape = parts[i][0].shape();
      int64_t rows = 0;
      for (const TensorItem& part : parts[i]) {
        CAFFE2_ENFORCE(!__builtin_add_overflow(rows, part.shape()[0], &rows), "too many rows");
      }
      columns.push_back(&output(i, rows_like(shape, rows), parts[i][0].type()));
    }
    for (int i = 0; i < outputs(); i++) {
      if (parts[i].empty()) continue;
      auto* place = static_cast<char*>(columns[i]->raw_mutable_data());
      for (const TensorItem& part : parts[i]) {
        part.copy_to(place);
        place += static_cast<size_t>(part.shape().size()) * type_size(part.type());
      }
    }
  }

 private:
  static Shape rows_like(const Shape& like, int64_t rows) {
    Shape shape{rows};
    for (int axis = 1; axis < like.rank(); axis++) shape.append(like[axis]);
    return shape;
  }

  void read(const Tensor& packed, std::vector<TensorProtos>& records,
            std::vector<std::vector<TensorItem>>& parts) const {
    ParseOptions options;
    options.borrow = true;
    records.reserve(packed.size());
    for (int64_t j = 0; j < packed.size(); j++) {
      try {
        records.push_back(parse<TensorProtos>(packed.data<std::string>()[j], options));
        const auto& found = records.back().protos;
        CAFFE2_ENFORCE(static_cast<int>(found.size()) == outputs(), "it has ", found.size(),
                       " columns; there are ", outputs(), " outputs");
        for (int i = 0; i < outputs(); i++) {
          const TensorItem& part = parts[i].emplace_back(found[i]);
          const TensorItem& first = parts[i][0];
          CAFFE2_ENFORCE(part.shape().rank() > 0 && part.type() == first.type() &&
                             rows_like(part.shape(), 0) == rows_like(first.shape(), 0),
                         "column ", i, " has type ", type_name(part.type()), " and shape ",
                         part.shape().text(), ", that of the first element ",
                         type_name(first.type()), ", ", first.shape().text());
        }
      } catch (const Error& error) {
        fail(error.code(), describe_input(0), ", element ", j,
             " is no packed record: ", error.text());
      }
    }
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(PackRecords, PackRecordsOperator)
REGISTER_CPU_OPERATOR(UnPackRecords, UnPackRecordsOperator)

}  // namespace caffe2
