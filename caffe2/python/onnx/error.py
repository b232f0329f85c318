"""What has no counterpart; see `caffe2.interop.onnx.node`."""

from caffe2.interop.onnx.node import Unsupported

__all__ = ["Unsupported"]
