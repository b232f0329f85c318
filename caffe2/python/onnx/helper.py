"""Nets run on their own, and their files; see `caffe2.interop.onnx.helper`."""

from caffe2.interop.onnx.helper import (
    benchmark_caffe2_model,
    c2_native_run_net,
    c2_native_run_op,
    load_caffe2_net,
    save_caffe2_net,
)
from caffe2.interop.onnx.workspace import Workspace

__all__ = [
    "Workspace",
    "benchmark_caffe2_model",
    "c2_native_run_net",
    "c2_native_run_op",
    "load_caffe2_net",
    "save_caffe2_net",
]
