"""A model ready to run; see `caffe2.interop.onnx.backend`."""

from caffe2.interop.onnx.backend import Caffe2Rep

__all__ = ["Caffe2Rep"]
