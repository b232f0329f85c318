"""Nets as ONNX models; see `caffe2.interop.onnx.exporter`."""

from caffe2.interop.onnx.exporter import (
    Caffe2Frontend,
    caffe2_init_net_to_initializer,
    caffe2_net_to_onnx_graph,
    caffe2_net_to_onnx_model,
    ssa_rewrite,
)
from caffe2.interop.onnx.helper import c2_native_run_net

__all__ = [
    "Caffe2Frontend",
    "c2_native_run_net",
    "caffe2_init_net_to_initializer",
    "caffe2_net_to_onnx_graph",
    "caffe2_net_to_onnx_model",
    "ssa_rewrite",
]
