"""A model in one file, laid out so that its weights can be used where they lie.

The file is a plain ModelDef, the net that fills the parameters and the net that predicts, and every
protobuf reader takes it.  The floats of `GivenTensorFill` stand packed at multiples of 64 bytes: a
reader that maps the file has the tensors without reading or copying them.
"""

from __future__ import annotations

import os

import numpy as np

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
    size = sum(map(len, pieces))
    if size > LARGEST:
        raise UsageError(f"a model of {size} bytes: protobuf messages have at most {LARGEST}")
    write_atomically(path, b"".join(pieces))


def _first_net(net: caffe2_pb2.NetDef, start: int) -> list[bytes]:
    """A net as field `net` of a ModelDef, from byte `start` of the file on."""
    # How many bytes its length takes decides where its operators begin; it has no more than this.
    most = net.ByteSize() + (2 * ALIGNMENT + 16) * len(net.op)
    for length_bytes in range(len(_varint(most)), 0, -1):
        at = start + 1 + length_bytes
        pieces: list[bytes] = []
        for op in net.op:
            pieces += (added := _operator(op, at))
            at += sum(map(len, added))
        pieces.append(_without(net, "op").SerializeToString())
        length = _varint(sum(map(len, pieces)))
        if len(length) == length_bytes:
            break
    return [_tag(_MODEL_NET), length, *pieces]


def _operator(op: caffe2_pb2.OperatorDef, start: int) -> list[bytes]:
    """An operator as field `op` of a NetDef, from byte `start` of the file on."""
    values = [arg for arg in op.arg if arg.name == "values"]
    floats = _packed(values[0]) if op.type == "GivenTensorFill" and len(values) == 1 else None
    if floats is None:
        return [caffe2_pb2.NetDef(op=[op]).SerializeToString()]
    rest = _without(op, "arg")
    rest.arg.extend(arg for arg in op.arg if arg.name != "values")
    head = rest.SerializeToString()
    for padding in range(2 * ALIGNMENT + 2):
        if padding == 1:
            continue
        # A field given twice has its last value, so a first name of blanks is no name at all.
        blanks = _text(_ARGUMENT_NAME, b" " * (padding - 2)) if padding else b""
        name = blanks + _text(_ARGUMENT_NAME, b"values")
        name += _tag(_ARGUMENT_FLOATS) + _varint(len(floats))
        arg = _tag(_OPERATOR_ARG) + _varint(len(name) + len(floats)) + name
        begin = _tag(_NET_OP) + _varint(len(head) + len(arg) + len(floats)) + head + arg
        if (start + len(begin)) % ALIGNMENT == 0:
            break
    return [begin, floats]


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


def _text(field: int, text: bytes) -> bytes:
    return _tag(field) + _varint(len(text)) + text


def _tag(field: int) -> bytes:
    return _varint(field << 3 | 2)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
