"""Batch normalization over the batches of all replicas together."""

from __future__ import annotations

from collections.abc import Sequence

from caffe2.graph.errors import UsageError
from caffe2.graph.net import Net
from caffe2.graph.operator import MakeArgument
from caffe2.proto import caffe2_pb2
from caffe2.train.replicas import Replicas, stripBlobName

_Ops = list[caffe2_pb2.OperatorDef]


def interleave(net: Net, start: int, replicas: Replicas) -> None:
    """Puts the first operators of all replicas, which were appended one replica after the other
    from `start` on, first, then the second ones, and so on.  UsageError when they differ."""
    ops: _Ops = list(net.Proto().op[start:])
    count, rest = divmod(len(ops), len(replicas.devices))
    parts = [ops[i * count : (i + 1) * count] for i in range(len(replicas.devices))]
    types = [[op.type for op in part] for part in parts]
    if rest or any(found != types[0] for found in types):
        raise UsageError("combine_spatial_bn needs replicas of the same operators")
    rows = zip(*parts, strict=True)
    _replace(net, [*net.Proto().op[:start], *(op for row in rows for op in row)])


def combine_forward(net: Net) -> None:
    """Gives each training SpatialBN of interleaved replicas the sums over all batches."""
    ops, following = list(net.Proto().op), []
    groups = _groups(ops, "SpatialBN", 0)
    for op in ops:
        group = groups.get(id(op), [])
        if group and op is group[0]:
            inputs = [part.input[0] for part in group]
            sums, squares = [f"{x}_sums" for x in inputs], [f"{x}_sumsq" for x in inputs]
            device = op.device_option
            for x, *outputs in zip(inputs, sums, squares, strict=True):
                following.append(_op("ChannelStats", [x], outputs, device))
            combined = [f"{parts[0]}_combined" for parts in (sums, squares)]
            for parts, total in zip((sums, squares), combined, strict=True):
                following.append(_op("Sum", parts, [total], device))
            for part in group:
                part.input.extend(combined)
                part.arg.append(MakeArgument("num_batches", len(group)))
        following.append(op)
    _replace(net, following)


def combine_backward(net: Net) -> None:
    """Gives each gradient of a combined SpatialBN the sums over all batches."""
    ops, following = list(net.Proto().op), []
    groups = _groups(ops, "SpatialBNGradient", 1)
    for op in ops:
        group = groups.get(id(op), [])
        if group and op is group[0]:
            group = sorted(group, key=lambda part: part.device_option.device_id)
            device = group[0].device_option
            for part in group:
                x, grad, mean, deviation = (part.input[i] for i in (0, 2, 3, 4))
                inputs = [x, mean, deviation, grad]
                following.append(_op("ChannelBackpropStats", inputs, part.output[1:3], device))
            for index in (1, 2):
                names = [part.output[index] for part in group]
                total = f"{names[0]}_combined"
                following.append(_op("Sum", names, [total], device))
                following.extend(_op("Copy", [total], [name], device) for name in names)
        following.append(op)
    _replace(net, following)


def _groups(ops: _Ops, op_type: str, output: int) -> dict[int, _Ops]:
    """The operators of one type that train, each with its counterparts in all replicas."""
    by_name: dict[str, _Ops] = {}
    for op in ops:
        is_test = any(arg.name == "is_test" and arg.i for arg in op.arg)
        if op.type == op_type and not is_test:
            by_name.setdefault(stripBlobName(op.output[output]), []).append(op)
    return {id(op): group for group in by_name.values() if len(group) > 1 for op in group}


def _op(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    device: caffe2_pb2.DeviceOption,
) -> caffe2_pb2.OperatorDef:
    return caffe2_pb2.OperatorDef(type=op_type, input=inputs, output=outputs, device_option=device)


def _replace(net: Net, ops: _Ops) -> None:
    copies = []
    for op in ops:
        copies.append(caffe2_pb2.OperatorDef())
        copies[-1].CopyFrom(op)
    del net.Proto().op[:]
    net.Proto().op.extend(copies)
