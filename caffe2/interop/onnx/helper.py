"""Nets run on their own, and their files."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf import text_format
from onnx.backend.base import namedtupledict

from caffe2.graph.reading import read_message
from caffe2.interop.onnx.workspace import Workspace
from caffe2.proto import caffe2_pb2


def c2_native_run_net(
    init_net: caffe2_pb2.NetDef | None,
    predict_net: caffe2_pb2.NetDef,
    inputs: Any,
    debug_arg: Any = None,
) -> tuple[Workspace, Any]:
    """Runs both nets in a new workspace: the workspace, and the outputs as a named tuple.

    inputs: an array or a list, for the external inputs that init_net does not fill, or a dict
    """
    workspace = Workspace()
    if init_net is not None:
        workspace.RunNetOnce(init_net)
    filled = {name for op in (init_net.op if init_net is not None else ()) for name in op.output}
    names = [name for name in predict_net.external_input if name not in filled]
    given = inputs
    if not isinstance(inputs, Mapping):
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        given = dict(zip(names, values, strict=False))
    for name, value in given.items():
        workspace.FeedBlob(name, np.asarray(value))
    workspace.RunNetOnce(predict_net)
    outputs = list(predict_net.external_output)
    values = [workspace.FetchBlob(name) for name in outputs]
    return workspace, namedtupledict("Outputs", outputs)(*values)


def c2_native_run_op(op_def: caffe2_pb2.OperatorDef, inputs: Any) -> tuple[Workspace, Any]:
    """Runs one operator in a new workspace; see c2_native_run_net."""
    net = caffe2_pb2.NetDef(op=[op_def], external_input=op_def.input)
    net.external_output.extend(op_def.output)
    return c2_native_run_net(None, net, inputs)


def load_caffe2_net(file: str) -> caffe2_pb2.NetDef:
    """The net in a file, binary or text."""
    with open(file, "rb") as source:
        return read_message(caffe2_pb2.NetDef, source.read(), file)


def save_caffe2_net(net: Any, file: str, output_txt: bool = False) -> None:
    """Writes a net to a file, and as text to "<file>txt" when asked for."""
    proto = net.Proto() if hasattr(net, "Proto") else net
    with open(file, "wb") as target:
        target.write(proto.SerializeToString())
    if output_txt:
        with open(file + "txt", "w", encoding="utf-8") as text:
            text.write(text_format.MessageToString(proto))


def benchmark_caffe2_model(
    init_net: caffe2_pb2.NetDef,
    predict_net: caffe2_pb2.NetDef,
    warmup_iters: int = 3,
    main_iters: int = 10,
    layer_details: bool = True,
) -> float:
    """The milliseconds that a run takes.  init_net has to fill the inputs too."""
    workspace = Workspace()
    workspace.RunNetOnce(init_net)
    workspace.CreateNet(predict_net)
    for _ in range(warmup_iters):
        workspace.RunNet(predict_net.name)
    start = time.perf_counter()
    for _ in range(main_iters):
        workspace.RunNet(predict_net.name)
    return (time.perf_counter() - start) * 1000 / main_iters
