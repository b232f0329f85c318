"""ONNX models; see `caffe2.interop.onnx`."""
