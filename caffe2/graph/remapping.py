"""Other names for the blobs of operators, those of nets in their arguments too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableSequence
from typing import TypeAlias

from caffe2.proto import caffe2_pb2

Remap: TypeAlias = Mapping[str, str]
# Renames what an operator says of blobs in its arguments: (operator, prefix, old name -> new name).
RemapFunction: TypeAlias = Callable[[caffe2_pb2.OperatorDef, str, Remap], None]


def remap_operator(
    op: caffe2_pb2.OperatorDef,
    remap: Remap,
    prefix: str = "",
    functions: Mapping[str, RemapFunction] | None = None,
) -> None:
    """Renames inputs and outputs in place, and arguments as `functions` say for the type."""
    for names in (op.input, op.output, op.control_input):
        _rename(names, remap)
    if functions and op.type in functions:
        functions[op.type](op, prefix, remap)


def remap_proto(argument: caffe2_pb2.Argument, blob_remap: Remap) -> None:
    """Renames the blobs of a net that an argument holds, and of nets in it, in place."""
    if not argument.HasField("n"):
        return
    _rename(argument.n.external_input, blob_remap)
    _rename(argument.n.external_output, blob_remap)
    for op in argument.n.op:
        remap_operator(op, blob_remap, functions=DEFAULT_REMAP_FUNCS)


def control_op_remap(op: caffe2_pb2.OperatorDef, prefix: str, blob_remap: Remap) -> None:
    """Renames the blobs of the nets of If, While, ...: names they share with the net outside."""
    for arg in op.arg:
        remap_proto(arg, blob_remap)


def recurrent_network_op_remap(op: caffe2_pb2.OperatorDef, prefix: str, blob_remap: Remap) -> None:
    """Renames the blobs of step nets, and those that string arguments name."""
    for arg in op.arg:
        remap_proto(arg, blob_remap)
        if arg.strings:
            arg.strings[:] = [
                blob_remap.get(name, name).encode()
                for name in (text.decode("utf-8", "surrogateescape") for text in arg.strings)
            ]


def remap_input(op: caffe2_pb2.OperatorDef, blob_name_remapping: Remap) -> caffe2_pb2.OperatorDef:
    """A copy of an operator that reads other blobs."""
    copy = caffe2_pb2.OperatorDef()
    copy.CopyFrom(op)
    _rename(copy.input, blob_name_remapping)
    return copy


def _rename(names: MutableSequence[str], remap: Remap) -> None:
    names[:] = [remap.get(name, name) for name in names]


DEFAULT_REMAP_FUNCS: dict[str, RemapFunction] = {
    "RecurrentNetwork": recurrent_network_op_remap,
    "RecurrentNetworkGradient": recurrent_network_op_remap,
    "If": control_op_remap,
    "While": control_op_remap,
    "AsyncIf": control_op_remap,
}
