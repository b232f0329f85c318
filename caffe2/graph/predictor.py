"""From a training net to the pair of nets that serves it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from caffe2.graph.blob import BlobReference
from caffe2.graph.errors import UsageError
from caffe2.graph.fills import given_tensor
from caffe2.graph.net import Net
from caffe2.graph.operator import CreateOperator
from caffe2.proto import caffe2_pb2


def add_tensor(net: caffe2_pb2.NetDef, name: str, blob: Any) -> None:
    """Appends the operator that fills blob `name` with the array `blob`.

    UsageError for an element type that no operator can hold.
    """
    try:
        op_type, arguments = given_tensor(np.asarray(blob))
    except ValueError as error:
        raise UsageError(f"blob '{name}': {error}") from None
    net.op.append(CreateOperator(op_type, [], [BlobReference(name)], **arguments))


def Export(
    workspace: Any, net: Any, params: Iterable[Any]
) -> tuple[caffe2_pb2.NetDef, caffe2_pb2.NetDef]:
    """An init net that fills the parameters with their present values, and a predict net.

    workspace  where the values are: anything with `FetchBlob(name)`
    net        a Net or NetDef
    params     the blobs to store

    External inputs of the net that are no parameters are its data; the init net fills them with
    one 0, which a reader of old that knows no inputs needs.  Outputs of the predict net are its
    external outputs, and blobs that no operator reads.
    """
    proto = net.Proto() if hasattr(net, "Proto") else net
    stored = [str(param) for param in params]
    init_net = caffe2_pb2.NetDef()
    for name in stored:
        add_tensor(init_net, name, workspace.FetchBlob(name))
    predict_net = caffe2_pb2.NetDef()
    predict_net.CopyFrom(proto)
    for name in proto.external_input:
        if name not in stored:
            add_tensor(init_net, name, np.zeros((1, 1), np.float32))
    read = {name for op in proto.op for name in op.input}
    for op in proto.op:
        for name in op.output:
            if name not in read and name not in predict_net.external_output:
                predict_net.external_output.append(name)
    return init_net, predict_net


def ExtractPredictorNet(
    net_proto: caffe2_pb2.NetDef,
    input_blobs: Sequence[Any],
    output_blobs: Sequence[Any],
    device: caffe2_pb2.DeviceOption | None = None,
    renames: Mapping[Any, Any] | None = None,
    disabled_inputs: Iterable[Any] | None = None,
) -> tuple[Net, list[str]]:
    """The operators of a net that are needed to get from `input_blobs` to `output_blobs`.

    device           put on every operator, also of nets inside operators
    renames          old name -> new name of blobs
    disabled_inputs  operators that read one of these are left out

    Gives the net, and the blobs besides the inputs that it reads: its parameters.  UsageError for
    an input that no operator reads, an output that none writes, and an operator in training mode.
    """
    rename = {str(old): str(new) for old, new in (renames or {}).items()}
    inputs, outputs = [str(b) for b in input_blobs], [str(b) for b in output_blobs]
    needed, kept = set(outputs), []
    for op in reversed(_from_first_use(net_proto.op, inputs, outputs)):
        if needed.isdisjoint(op.output) or not _disjoint(disabled_inputs, op.input):
            continue
        kept.append(op)
        needed.difference_update(op.output)
        needed.update(op.input)
    result = caffe2_pb2.NetDef(name=f"{net_proto.name}_predict")
    result.external_input.extend(rename.get(name, name) for name in inputs)
    result.external_output.extend(rename.get(name, name) for name in outputs)
    for source in reversed(kept):
        if any(arg.name == "is_test" and arg.i == 0 for arg in source.arg):
            raise UsageError(
                f"{source.type} '{source.output[0]}' has is_test=0; "
                "extract a predictor from a test net, not from a training net"
            )
        op = result.op.add()
        op.CopyFrom(source)
        for blobs in (op.input, op.output):
            blobs[:] = [rename.get(name, name) for name in blobs]
        for arg in op.arg:
            if op.type == "RecurrentNetwork" and arg.name == "backward_step_net":
                arg.n.Clear()  # without it the steps are not kept
        if device is not None:
            _put_on(op, device)
    net = Net(result)
    return net, list(net.Proto().external_input[len(inputs) :])


def _from_first_use(
    ops: Sequence[caffe2_pb2.OperatorDef], inputs: list[str], outputs: list[str]
) -> Sequence[caffe2_pb2.OperatorDef]:
    """The operators from the first that reads an input to the last that writes an output."""
    for what, wanted, there in (
        ("read", inputs, {name for op in ops for name in op.input}),
        ("write", outputs, {name for op in ops for name in op.output}),
    ):
        missing = [name for name in wanted if name not in there]
        if missing:
            raise UsageError(f"the net has no operators that {what} {', '.join(missing)}")
    first = min((i for i, op in enumerate(ops) if not _disjoint(inputs, op.input)), default=0)
    last = max(i for i, op in enumerate(ops) if not _disjoint(outputs, op.output))
    return ops[first : last + 1]


def _disjoint(names: Iterable[Any] | None, others: Iterable[str]) -> bool:
    return {str(name) for name in names or ()}.isdisjoint(others)


def _put_on(op: caffe2_pb2.OperatorDef, device: caffe2_pb2.DeviceOption) -> None:
    op.device_option.CopyFrom(device)
    for arg in op.arg:
        for inner in (*arg.n.op, *(op for net in arg.nets for op in net.op)):
            _put_on(inner, device)
