"""Making nets ready for inference, with the values that a workspace holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from caffe2 import _native, passes
from caffe2.graph.fills import given_int8
from caffe2.graph.model import PACKED_SUFFIX
from caffe2.graph.operator import CreateOperator
from caffe2.graph.predictor import add_tensor
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.feeding import feed
from caffe2.runtime.values import WorkspaceValues
from caffe2.runtime.workspace import current


def optimize(
    predict_net: Any, inputs: Sequence[str], outputs: Sequence[str], without: Collection[str] = ()
) -> caffe2_pb2.NetDef:
    """The net that computes `outputs` from `inputs` with less work (see `caffe2.passes.optimize`).

    All other blobs that `predict_net` (a Net or NetDef) reads are taken as constant: they have to
    be in the current workspace.  Constants that change get new names there; the old ones stay.

    ValueError for inputs that the net does not read and outputs that it does not compute.
    """
    net = predict_net.Proto() if hasattr(predict_net, "Proto") else predict_net
    read = {name for op in net.op for name in op.input}
    unread = [name for name in inputs if name not in read]
    if unread:
        raise ValueError(f"the net does not read {', '.join(unread)}")
    workspace = current()
    values = WorkspaceValues(workspace, read.difference(inputs))
    optimized, _ = passes.optimize(net, values, [str(name) for name in outputs], without=without)
    del optimized.external_output[:]
    optimized.external_output.extend(str(name) for name in outputs)
    return optimized


def optimize_pair(
    init_net: caffe2_pb2.NetDef, predict_net: caffe2_pb2.NetDef, without: Collection[str] = ()
) -> tuple[caffe2_pb2.NetDef, caffe2_pb2.NetDef, list[str]]:
    """init_net and predict_net of a saved model, optimized, and a line for each change.

    What init_net fills is constant, but for the first of the net's inputs where all are filled: a
    value that stands for it.
    """
    workspace = new_workspace()
    workspace.run_net_once(init_net.SerializeToString())
    filled = [name for op in init_net.op for name in op.output]
    inputs = list(predict_net.external_input)
    stands_for_input = inputs[:1] if set(inputs) <= set(filled) else []
    values = WorkspaceValues(workspace, set(filled) - set(stands_for_input))
    predict, notes = passes.optimize(predict_net, values, without=without)
    init = caffe2_pb2.NetDef(name=init_net.name)
    for name in predict.external_input:
        if name in values or name in stands_for_input:
            _add_value(init, name, workspace)
    return init, predict, notes


def _add_value(init_net: caffe2_pb2.NetDef, name: str, workspace: _native.Workspace) -> None:
    if workspace.tensor_spec(name) is not None:
        add_tensor(init_net, name, workspace.fetch(name))
    else:
        kind, args = given_int8(*workspace.fetch_int8(name))
        init_net.op.append(CreateOperator(kind, [], [name], **args))


def _filters(op: caffe2_pb2.OperatorDef) -> tuple[int, ...]:
    """Which inputs are filters that kernels of convolutions read packed."""
    if op.type == "ExpandDepthwise":
        return (1, 3, 5) if len(op.input) > 5 else (1, 3)
    return (1,) if op.type.startswith("Conv") else ()


def add_packed(
    init_net: caffe2_pb2.NetDef, predict_net: caffe2_pb2.NetDef, inputs: Mapping[str, Any]
) -> list[str]:
    """Appends to init_net the weights of convolutions in the order in which this processor's
    kernels read them, for inputs of such shapes; a line for each.

    Of a file that `save_model` writes then, these are used where they lie.  Other processors,
    versions and shapes go on with the plain weights, which stay in the net.
    """
    workspace = new_workspace()
    workspace.run_net_once(init_net.SerializeToString())
    for name, value in inputs.items():
        feed(workspace, name, value)
    filled = {name for op in init_net.op for name in op.output}
    weights = [op.input[i] for op in predict_net.op for i in _filters(op)]
    wanted = [name for name in dict.fromkeys(weights) if name in filled]
    for name in wanted:
        workspace.create_blob(name + PACKED_SUFFIX)
    net = caffe2_pb2.NetDef()
    net.CopyFrom(predict_net)
    net.name = net.name or "predict_net"
    workspace.create_net(net.SerializeToString(), hide_intermediates=True)
    workspace.run_net(net.name)
    notes = []
    for name in wanted:
        if workspace.tensor_spec(name + PACKED_SUFFIX) is not None:
            add_tensor(init_net, name + PACKED_SUFFIX, workspace.fetch(name + PACKED_SUFFIX))
            notes.append(f"packed: '{name}'")
    return notes
