"""A workspace of its own; see `caffe2.interop.onnx.workspace`."""

from caffe2.interop.onnx.workspace import Workspace

__all__ = ["Workspace"]
