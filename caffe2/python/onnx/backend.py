"""ONNX models run by this engine; see `caffe2.interop.onnx.backend`."""

from caffe2.interop.onnx.backend import (
    Caffe2Backend,
    Caffe2Rep,
    get_device_option,
    is_compatible,
    prepare,
    run_model,
    run_node,
    supports_device,
)
from caffe2.interop.onnx.workspace import Workspace

__all__ = [
    "Caffe2Backend",
    "Caffe2Rep",
    "Workspace",
    "get_device_option",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
