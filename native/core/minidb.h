// The simplest database: one file, record after record, each as the lengths of key and value
// (int32, little-endian) and the bytes of both. Records keep their order, and keys may be equal.
#pragma once
#include <memory>
#include <string>

#include "core/database.h"

namespace caffe2 {

std::shared_ptr<Database> open_minidb(const std::string& path, DatabaseMode mode);

}  // namespace caffe2
