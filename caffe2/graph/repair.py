"""Mending nets that were written by hand."""

from __future__ import annotations

import warnings

from caffe2.graph.errors import net_called
from caffe2.graph.tensors import argument_value
from caffe2.proto import caffe2_pb2


def join_split_arguments(net: caffe2_pb2.NetDef) -> None:
    """Joins arguments whose name and value came from two calls, in place, with a warning.

        op.arg.add().name = "std"
        op.arg.add().f = 0.01

    Such a pair is one argument, a name without a value followed by a value without a name.
    """
    for index, op in enumerate(net.op):
        joined: list[caffe2_pb2.Argument] = []
        names = []
        for arg in op.arg:
            before = joined[-1] if joined else None
            if before is not None and not arg.name and before.name and _is_empty(before):
                before.MergeFrom(arg)
                names.append(before.name)
            else:
                joined.append(caffe2_pb2.Argument())
                joined[-1].CopyFrom(arg)
        if names:
            del op.arg[:]
            op.arg.extend(joined)
            warnings.warn(
                f"{net_called(net.name)}, #{index} {op.type}: the arguments {', '.join(names)} had "
                "name and value in separate messages, which were joined",
                stacklevel=3,
            )


def _is_empty(arg: caffe2_pb2.Argument) -> bool:
    return bool(argument_value(arg) == [])
