// Operators that show what is in blobs, and others that say something about a workspace.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "core/registry.h"
#include "core/workspace.h"
#include "operators/half.h"

namespace caffe2 {
namespace {

// Lines for a file "<root folder>/<blob>.<ending>", which begins anew with the first of them, or
// for people.
class ReportOperator : public Operator {
 public:
  ReportOperator(const OperatorContext& context, const char* ending)
      : Operator(context),
        workspace_(context.workspace),
        ending_(ending),
        to_file_(args().boolean("to_file")) {}

 protected:
  bool to_file() const { return to_file_; }

  void write_to_file(const std::string& line) {
    if (!file_) open();
    *file_ << line << std::endl;
    if (!*file_) fail(Code::kFailedPrecondition, "'", path_, "' cannot be written");
  }

  void show(const std::string& text) {
    if (to_file_) return write_to_file(text);
    const auto& print = engine().hooks().print;
    if (print) return print(text);
    std::fprintf(stderr, "%s\n", text.c_str());
  }

 private:
  void open() {
    namespace fs = std::filesystem;
    const fs::path name(def().input[0] + ending_);
    for (const fs::path& part : name) {
      CAFFE2_ENFORCE(part != "..", describe_input(0),
                     " has a name that would leave the root folder");
    }
    const fs::path path = fs::path(workspace_.root_folder()) / name.relative_path();
    std::error_code ignored;  // the file says what is wrong
    fs::create_directories(path.parent_path(), ignored);
    path_ = path.string();
    file_.emplace(path_);
    if (*file_) return;
    file_.reset();
    fail(Code::kFailedPrecondition, "'", path_, "' cannot be written");
  }

  Workspace& workspace_;
  const char* const ending_;
  const bool to_file_;
  std::string path_;
  std::optional<std::ofstream> file_;
};

// The names that the original prints.
const char* printed_type(DataType type) {
  switch (type) {
    case DataType::kInt32:
      return "int";
    case DataType::kInt64:
      return "long int";
    case DataType::kUInt8:
      return "unsigned char";
    case DataType::kString:
      return "std::basic_string<char>";
    default:
      return type_name(type);
  }
}

template <class T>
void write_values(const Tensor& tensor, int64_t count, std::ostream& out) {
  const T* values = tensor.data<T>();
  for (int64_t i = 0; i < count; i++) {
    if (i > 0) out << ',';
    if constexpr (sizeof(T) == 1) {
      out << static_cast<int>(values[i]);
    } else {
      out << values[i];
    }
  }
}

void write_values(const Tensor& tensor, int64_t count, std::ostream& out) {
  switch (tensor.type()) {
    case DataType::kFloat:
      return write_values<float>(tensor, count, out);
    case DataType::kDouble:
      return write_values<double>(tensor, count, out);
    case DataType::kInt32:
      return write_values<int32_t>(tensor, count, out);
    case DataType::kInt64:
      return write_values<int64_t>(tensor, count, out);
    case DataType::kBool:
      return write_values<bool>(tensor, count, out);
    case DataType::kUInt8:
      return write_values<uint8_t>(tensor, count, out);
    case DataType::kInt8:
      return write_values<int8_t>(tensor, count, out);
    case DataType::kUInt16:
      return write_values<uint16_t>(tensor, count, out);
    case DataType::kInt16:
      return write_values<int16_t>(tensor, count, out);
    case DataType::kString:
      return write_values<std::string>(tensor, count, out);
    case DataType::kFloat16: {
      const auto* bits = static_cast<const uint16_t*>(tensor.raw_data());
      for (int64_t i = 0; i < count; i++) out << (i > 0 ? "," : "") << half_to_float(bits[i]);
      return;
    }
    default: {
      const auto* bytes = static_cast<const uint8_t*>(tensor.raw_data());
      for (int64_t i = 0; i < count; i++) out << (i > 0 ? "," : "") << static_cast<int>(bytes[i]);
    }
  }
}

class PrintOperator : public ReportOperator {
 public:
  explicit PrintOperator(const OperatorContext& context)
      : ReportOperator(context, ".log"),
        limit_(args().integer("limit")),
        every_(args().integer("every_n")) {}

 protected:
  void run() override {
    if (runs_++ % every_ != 0) return;
    const BlobValue& value = input_value(0);
    if (!value.is_tensor()) return show(concat("Blob of type: ", value.kind()));
    const Tensor& tensor = value.tensor;
    std::ostringstream out;
    out << "Tensor " << def().input[0] << " of type " << printed_type(tensor.type()) << ". Dims: (";
    for (const int64_t dim : tensor.shape()) out << dim << ',';
    out << "): ";
    const bool all = limit_ <= 0 || tensor.size() <= limit_;
    write_values(tensor, all ? tensor.size() : limit_, out);
    show(out.str());
  }

 private:
  const int64_t limit_, every_;
  int64_t runs_ = 0;
};

class SummarizeOperator : public ReportOperator {
 public:
  explicit SummarizeOperator(const OperatorContext& context)
      : ReportOperator(context, ".summary") {}

 protected:
  void run() override {
    const Tensor& x = input(0);
    const int64_t n = x.size();
    CAFFE2_ENFORCE(n > 0, describe_input(0), " has no elements");
    const float* values = x.data<float>();
    float least = values[0], largest = values[0];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
      // A NaN stays.
      if (!(values[i] >= least) && !std::isnan(least)) least = values[i];
      if (!(values[i] <= largest) && !std::isnan(largest)) largest = values[i];
      sum += values[i];
    }
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; i++) squares += (values[i] - mean) * (values[i] - mean);
    const double deviation = n == 1 ? 0 : std::sqrt(squares / static_cast<double>(n - 1));
    const float found[4] = {least, largest, static_cast<float>(mean),
                            static_cast<float>(deviation)};
    float* y = outputs() > 0 ? output(0, {4}, DataType::kFloat).mutable_data<float>() : nullptr;
    if (to_file()) {
      write_to_file(concat(found[0], ' ', found[1], ' ', found[2], ' ', found[3]));
    }
    if (y != nullptr) std::copy(found, found + 4, y);
  }
};

class FailOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { fail(Code::kFailedPrecondition, "it is there to fail"); }
};

class FeedBlobOperator : public Operator {
 public:
  using Operator::Operator;

 protected:
  void run() override { output_object(0, std::make_shared<Text>(args().text("value"))); }
};

class GetAllBlobNamesOperator : public Operator {
 public:
  explicit GetAllBlobNamesOperator(const OperatorContext& context)
      : Operator(context),
        workspace_(context.workspace),
        shared_(args().boolean("include_shared")) {}

 protected:
  void run() override {
    const auto names = shared_ ? workspace_.blob_names() : workspace_.own_blob_names();
    Tensor& y = output(0, {static_cast<int64_t>(names.size())}, DataType::kString);
    std::copy(names.begin(), names.end(), y.mutable_data<std::string>());
  }

 private:
  const Workspace& workspace_;
  const bool shared_;
};

class FreeOperator : public Operator {
 public:
  explicit FreeOperator(const OperatorContext& context) : Operator(context) {
    CAFFE2_ENFORCE(context.def.input.size() == context.def.output.size(), "it has ",
                   context.def.output.size(), " outputs for ", context.def.input.size(), " inputs");
  }

 protected:
  void run() override {
    for (int i = 0; i < outputs(); i++) output_value(i, BlobValue());
  }
};

}  // namespace

REGISTER_CPU_OPERATOR(Print, PrintOperator)
REGISTER_CPU_OPERATOR(Summarize, SummarizeOperator)
REGISTER_CPU_OPERATOR(Fail, FailOperator)
REGISTER_CPU_OPERATOR(LogFatal, FailOperator)
REGISTER_CPU_OPERATOR(FeedBlob, FeedBlobOperator)
REGISTER_CPU_OPERATOR(GetAllBlobNames, GetAllBlobNamesOperator)
REGISTER_CPU_OPERATOR(Free, FreeOperator)

}  // namespace caffe2
