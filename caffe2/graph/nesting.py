"""Operators of a net and of the nets inside its operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from caffe2 import ops
from caffe2.graph.reading import parse_text
from caffe2.proto import caffe2_pb2

DEEPEST = 64  # as in the engine


class Place(NamedTuple):
    """An operator and where it is: `#3 If, then_net #0` for one in a net inside of operator 3."""

    where: str
    op: caffe2_pb2.OperatorDef


def nets_of(op: caffe2_pb2.OperatorDef) -> Iterator[tuple[str, caffe2_pb2.NetDef]]:
    """The nets that an operator holds, each with the name of its argument.

    Nets in text or bytes, as old recurrent nets hold them, are copies.
    """
    for arg in op.arg:
        if arg.HasField("n"):
            yield arg.name, arg.n
        for net in arg.nets:
            yield arg.name, net
        if arg.s and arg.name.endswith("net"):
            quoted = read_quoted(arg.s)
            if quoted is not None:
                yield arg.name, quoted


def read_quoted(text: bytes) -> caffe2_pb2.NetDef | None:
    """The net that a string argument holds, as text or as bytes; None when it is none."""
    try:
        net = parse_text(caffe2_pb2.NetDef, text.decode(), allow_unknown_field=True)
    except (text_format.ParseError, UnicodeDecodeError):
        try:
            net = caffe2_pb2.NetDef.FromString(text)
        except DecodeError:
            return None
    return net if net.op else None


def every_operator(net: caffe2_pb2.NetDef, where: str = "", depth: int = 0) -> Iterator[Place]:
    """All operators of a net in order, those of nets inside an operator after it."""
    for index, op in enumerate(net.op):
        here = f"{where}#{index} {op.type}"
        yield Place(here, op)
        if depth < DEEPEST:
            for name, inner in nets_of(op):
                yield from every_operator(inner, f"{here}, {name} ", depth + 1)


def undeclared_operators(net: caffe2_pb2.NetDef) -> dict[str, list[str]]:
    """Types of operators that nobody declared, each with the places where it is used."""
    known, found = ops.all(), dict[str, list[str]]()
    for where, op in every_operator(net):
        if op.type not in known:
            found.setdefault(op.type, []).append(where)
    return found


def reads(net: caffe2_pb2.NetDef) -> set[str]:
    """The blobs that operators of a net read, those of nets inside operators too."""
    return {name for _, op in every_operator(net) for name in op.input}


def touching_operators(net: caffe2_pb2.NetDef, allowed: Iterable[str] = ()) -> list[str]:
    """Operators that touch something outside of the engine which is not allowed: a line for each.

    allowed  any of "files", "code", "network" (see `caffe2.ops.declaration.TOUCHES`)
    """
    known, fine = ops.all(), set(allowed)
    return [
        f"{where} touches {' and '.join(touched)}"
        for where, op in every_operator(net)
        if op.type in known
        if (touched := [item for item in known[op.type].touched_by(op) if item not in fine])
    ]
