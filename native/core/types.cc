#include "core/types.h"

namespace caffe2 {

const char* type_name(DataType type) {
  switch (type) {
    case DataType::kFloat:
      return "float";
    case DataType::kInt32:
      return "int32";
    case DataType::kByte:
      return "byte";
    case DataType::kString:
      return "string";
    case DataType::kBool:
      return "bool";
    case DataType::kUInt8:
      return "uint8";
    case DataType::kInt8:
      return "int8";
    case DataType::kUInt16:
      return "uint16";
    case DataType::kInt16:
      return "int16";
    case DataType::kInt64:
      return "int64";
    case DataType::kFloat16:
      return "float16";
    case DataType::kDouble:
      return "double";
    case DataType::kUndefined:
      break;
  }
  return "undefined";
}

size_t type_size(DataType type) {
  switch (type) {
    case DataType::kByte:
    case DataType::kBool:
    case DataType::kUInt8:
    case DataType::kInt8:
      return 1;
    case DataType::kUInt16:
    case DataType::kInt16:
    case DataType::kFloat16:
      return 2;
    case DataType::kFloat:
    case DataType::kInt32:
      return 4;
    case DataType::kInt64:
    case DataType::kDouble:
      return 8;
    case DataType::kString:
      return sizeof(std::string);
    case DataType::kUndefined:
      break;
  }
  return 0;
}

std::string Shape::text() const {
  std::string out = "(";
  for (int i = 0; i < rank_; i++) {
    if (i) out += ", ";
    out += std::to_string(dims_[i]);
  }
  return out + (rank_ == 1 ? ",)" : ")");
}

}  // namespace caffe2
