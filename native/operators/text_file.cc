// Reading tables out of text files.
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/numbers.h"
#include "core/operator.h"
#include "core/registry.h"

namespace caffe2 {
namespace {

class TextFileReader : public Object {
 public:
  TextFileReader(const std::string& path, int passes, std::vector<DataType> types)
      : path(path), types(std::move(types)), file(path), passes_left(passes) {
    if (!file) fail(Code::kNotFound, "file '", path, "' cannot be opened");
  }
  const char* kind() const override { return "std::unique_ptr<caffe2::TextFileReaderInstance>"; }

  const std::string path;
  const std::vector<DataType> types;
  std::mutex mutex;
  std::ifstream file;
  int passes_left;
  int64_t row = 0;  // of this pass
};

class CreateTextFileReaderOperator : public Operator {
 public:
  explicit CreateTextFileReaderOperator(const OperatorContext& context)
      : Operator(context), path_(args().text("filename")), passes_(args().int32("num_passes")) {
    for (const int64_t number : args().integers("field_types")) {
      types_.push_back(static_cast<DataType>(number));
      CAFFE2_ENFORCE(types_.back() == DataType::kFloat || types_.back() == DataType::kString,
                     "field_types has ", number, "; allowed are 1 (float) and 4 (string)");
    }
    CAFFE2_ENFORCE(!types_.empty(), "field_types is empty");
  }

 protected:
  void run() override {
    output_object(0, std::make_shared<TextFileReader>(path_, passes_, types_));
  }

 private:
  const std::string path_;
  const int passes_;
  std::vector<DataType> types_;
};

class TextFileReaderReadOperator : public Operator {
 public:
  explicit TextFileReaderReadOperator(const OperatorContext& context)
      : Operator(context), batch_(args().int32("batch_size")) {}

 protected:
  void run() override {
    const auto reader = input_object<TextFileReader>(0);
    const std::lock_guard lock(reader->mutex);
    const auto fields = static_cast<int>(reader->types.size());
    CAFFE2_ENFORCE(outputs() == fields, "it has ", outputs(), " outputs; file '", reader->path,
                   "' has ", fields, " fields");
    const auto place = reader->file.tellg();
    const auto passes = reader->passes_left;
    const auto row = reader->row;
    std::vector<Column> columns(fields);
    try {
      read(*reader, columns);
      std::vector<Tensor*> results;
      for (int i = 0; i < fields; i++) {
        const auto rows = static_cast<int64_t>(columns[i].texts.size() + columns[i].numbers.size());
        results.push_back(&output(i, {rows}, reader->types[i]));
      }
      for (int i = 0; i < fields; i++) {
        if (reader->types[i] == DataType::kFloat) {
          std::copy(columns[i].numbers.begin(), columns[i].numbers.end(),
                    results[i]->mutable_data<float>());
        } else {
          std::move(columns[i].texts.begin(), columns[i].texts.end(),
                    results[i]->mutable_data<std::string>());
        }
      }
    } catch (...) {
      reader->file.clear();
      reader->file.seekg(place);
      reader->passes_left = passes;
      reader->row = row;
      throw;
    }
  }

 private:
  struct Column {
    std::vector<std::string> texts;
    std::vector<float> numbers;
  };

  void read(TextFileReader& reader, std::vector<Column>& columns) {
    std::string line;
    for (int rows = 0; rows < batch_ && reader.passes_left > 0;) {
      if (!std::getline(reader.file, line)) {
        reader.file.clear();
        reader.file.seekg(0);
        if (reader.row == 0) reader.passes_left = 1;  // an empty file has no pass with rows
        reader.row = 0;
        reader.passes_left--;
        context().cancellation.poll();
        continue;
      }
      reader.row++;
      rows++;
      if (line.ends_with('\r')) line.pop_back();
      take(reader, line, columns);
    }
  }

  static void take(const TextFileReader& reader, std::string_view line,
                   std::vector<Column>& columns) {
    const auto where = [&] { return concat("file '", reader.path, "', row ", reader.row); };
    size_t begin = 0;
    for (size_t i = 0; i < columns.size(); i++) {
      const bool last = i + 1 == columns.size();
      const size_t end = line.find('\t', begin);
      CAFFE2_ENFORCE(last == (end == std::string_view::npos), where(), " has ",
                     last ? "more" : "less", " than ", columns.size(), " fields");
      const std::string_view field = line.substr(begin, last ? line.size() - begin : end - begin);
      begin = end + 1;
      if (reader.types[i] == DataType::kFloat) {
        columns[i].numbers.push_back(number(field, where));
      } else {
        columns[i].texts.emplace_back(field);
      }
    }
  }

  template <class Where>
  static float number(std::string_view text, const Where& where) {
    std::string_view rest = text;
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    if (rest.starts_with('+')) rest.remove_prefix(1);
    double value = 0;
    const auto [end, error] = read_double(rest, value);
    CAFFE2_ENFORCE(error == std::errc() && end == rest.data() + rest.size(), where(), " has '",
                   text, "' where a number is needed");
    return static_cast<float>(value);
  }

  const int batch_;
};

}  // namespace

REGISTER_CPU_OPERATOR(CreateTextFileReader, CreateTextFileReaderOperator)
REGISTER_CPU_OPERATOR(TextFileReaderRead, TextFileReaderReadOperator)

}  // namespace caffe2
