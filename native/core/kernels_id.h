// Which kernels this engine has.
#pragma once

namespace caffe2 {

// A digest of their sources, written by native/generate.py.
extern const char kKernelsId[];

}  // namespace caffe2
