"""A model in one file, laid out so that its weights can be used where they lie.

The file is a plain ModelDef, the net that fills the parameters and the net that predicts, and every
protobuf reader takes it.  The floats of `GivenTensorFill` stand packed at multiples of 64 bytes: a
reader that maps the file has the tensors without reading or copying them.  At the end is a checksum
(see `caffe2.graph.checksum`).
"""

from __future__ import annotations

import itertools
import os

import numpy as np

from caffe2.graph import wire
from caffe2.graph.checksum import seal
from caffe2.graph.errors import UsageError
from caffe2.graph.files import is_text, save_message, write_atomically
from caffe2.graph.reading import AnyMessage
from caffe2.proto import caffe2_pb2

ALIGNMENT = 64
LARGEST = (1 << 31) - 1  # of a message, for any protobuf reader

# Numbers of fields.
_ARGUMENT_NAME, _ARGUMENT_FLOATS, _OPERATOR_ARG, _NET_OP, _MODEL_NET = 1, 5, 5, 2, 2


def save_model(
    init_net: caffe2_pb2.NetDef,
    predict_net: caffe2_pb2.NetDef,
    path: str | os.PathLike[str],
) -> None:
    """Writes a model as one file, in one step; as text, which cannot be mapped, when the name ends
    in .pbtxt or .prototxt.

    UsageError for more than 2 GiB, which no message may have.
    """
    if is_text(path):
        model = caffe2_pb2.ModelDef(name=predict_net.name, net=[init_net, predict_net])
        save_message(model, path)
        return
    name = caffe2_pb2.ModelDef(name=predict_net.name).SerializeToString()
    predict = caffe2_pb2.ModelDef(net=[predict_net]).SerializeToString()
    pieces = [name, *_first_net(init_net, len(name)), predict]
    pieces.append(seal(pieces))
    size = sum(map(len, pieces))
    if size > LARGEST:
        raise UsageError(f"a model of {size} bytes: protobuf messages have at most {LARGEST}")
    write_atomically(path, *pieces)


def _first_net(net: caffe2_pb2.NetDef, start: int) -> list[bytes]:
    """A net as field `net` of a ModelDef, from byte `start` of the file on."""
    operators = [_operator(op) for op in net.op]
    rest = _without(net, "op").SerializeToString()
    # How many bytes its length takes decides where its operators begin.
    for length_bytes in range(len(wire.varint(LARGEST)), 0, -1):
        at = start + 1 + length_bytes
        pieces: list[bytes] = []
        for head, floats in operators:
            pieces += (added := _placed(head, floats, at))
            at += sum(map(len, added))
        pieces.append(rest)
        length = wire.varint(sum(map(len, pieces)))
        if len(length) >= length_bytes:
            break
    return [wire.tag(_MODEL_NET), length, *pieces]


def _operator(op: caffe2_pb2.OperatorDef) -> tuple[bytes, bytes | None]:
    """An operator without its floats, and these, which have to lie well; None where it has none."""
    values = [arg for arg in op.arg if arg.name == "values"]
    floats = _packed(values[0]) if op.type == "GivenTensorFill" and len(values) == 1 else None
    if floats is None:
        return op.SerializeToString(), None
    rest = _without(op, "arg")
    rest.arg.extend(arg for arg in op.arg if arg.name != "values")
    return rest.SerializeToString(), floats


def _placed(head: bytes, floats: bytes | None, start: int) -> list[bytes]:
    """An operator as field `op` of a NetDef, from byte `start` of the file on."""
    if floats is None:
        return [wire.text(_NET_OP, head)]
    begin = _begin(head, len(floats), 0)
    least = -(start + len(begin)) % ALIGNMENT  # enough, unless the lengths grow by a byte
    for padding in itertools.count(least):
        if padding != 1:
            begin = _begin(head, len(floats), padding)
            if (start + len(begin)) % ALIGNMENT == 0:
                break
    return [begin, floats]


def _begin(head: bytes, size: int, padding: int) -> bytes:
    """What stands before the floats of an operator: `size` bytes."""
    # A field given twice has its last value, so a first name of blanks is no name at all.
    blanks = wire.text(_ARGUMENT_NAME, b" " * (padding - 2)) if padding else b""
    name = blanks + wire.text(_ARGUMENT_NAME, b"values")
    name += wire.tag(_ARGUMENT_FLOATS) + wire.varint(size)
    arg = wire.tag(_OPERATOR_ARG) + wire.varint(len(name) + size) + name
    return wire.tag(_NET_OP) + wire.varint(len(head) + len(arg) + size) + head + arg


def _packed(arg: caffe2_pb2.Argument) -> bytes | None:
    """The floats of an argument, one behind the other; None when it holds anything else."""
    content = arg.SerializeToString()  # in the order of the fields' numbers
    count = len(arg.floats)
    start = len(content) - 5 * count
    if caffe2_pb2.Argument.FromString(content[:start]) != caffe2_pb2.Argument(name=arg.name):
        return None
    each = np.frombuffer(content, [("tag", "u1"), ("value", "<f4")], count, start)
    return each["value"].tobytes() if (each["tag"] == _ARGUMENT_FLOATS << 3 | 5).all() else None


def _without(message: AnyMessage, name: str) -> AnyMessage:
    """A copy without one of the fields; a whole copy of many values takes long."""
    rest = type(message)()
    for field, value in message.ListFields():
        if field.name == name:
            continue
        target = getattr(rest, field.name)
        if hasattr(target, "MergeFrom"):  # a message or a list
            target.MergeFrom(value)
        else:
            setattr(rest, field.name, value)
    return rest
