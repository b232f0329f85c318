// Exceptions as caffe2_error, for callers that know none.
#pragma once
#include "api/caffe2.h"

namespace caffe2::api {

// Whether `error` can be written: it is NULL, which asks for no details, or has its size.
bool usable(const caffe2_error* error) noexcept;

caffe2_code report_success(caffe2_error* error) noexcept;

// To be called while an exception is handled.
caffe2_code report_exception(caffe2_error* error) noexcept;

}  // namespace caffe2::api
