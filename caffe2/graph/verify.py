"""Checks a NetDef without running it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from caffe2 import ops
from caffe2.graph.operator import check_operator
from caffe2.graph.shapes import infer_shapes
from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2


def verify(
    net: caffe2_pb2.NetDef,
    *,
    known: Iterable[str] = (),
    specs: Mapping[str, Spec] | None = None,
    sites: Sequence[str] = (),
) -> list[str]:
    """What is wrong with a net, one line for each problem; nothing for a net that is right.

    known  blobs that exist besides the external inputs
    specs  shapes and types of inputs; with them every shape that follows is checked as well
    sites  "file:line" of the code that made each operator, named in the lines

    A line reads `net "name", #3 Relu (file:line): what is wrong`.
    """
    problems: list[tuple[int, str]] = []
    written = {*net.external_input, *known}
    everything = written.union(*(op.output for op in net.op))
    sound = set()
    for index, op in enumerate(net.op):
        wrong = [*_unwritten(op, written, everything), *_declared(op)]
        problems.extend((index, text) for text in wrong)
        if not wrong:
            sound.add(index)
        written.update(op.output)
    if specs is not None:
        for index, error in infer_shapes(net, specs)[1]:
            if index in sound:
                problems.append((index, _text(error)))
    lines = [
        f'net "{net.name}", #{index} {net.op[index].type}{_site(sites, index)}: {text}'
        for index, text in sorted(problems, key=lambda problem: problem[0])
    ]
    for name in net.external_output:
        if name not in written:
            lines.append(
                f"net \"{net.name}\": external output '{name}' is written by no operator"
                f"{_near(name, written)}"
            )
    return lines


def _unwritten(
    op: caffe2_pb2.OperatorDef, written: set[str], everything: set[str]
) -> Iterable[str]:
    for position, name in enumerate(op.input):
        if name not in written:
            hint = "; a later operator writes it" if name in everything else _near(name, everything)
            yield (
                f"input {position} '{name}' is neither an external input nor written by an "
                f"earlier operator{hint}"
            )


def _declared(op: caffe2_pb2.OperatorDef) -> Iterable[str]:
    try:
        if check_operator(op) is None:
            ops.find(op.type)
    except ops.UnknownOperatorError as error:
        yield str(error)
    except OperatorError as error:
        yield _text(error)


def _text(error: OperatorError) -> str:
    return str(error).removeprefix(f"{error.operator}: ")


def _near(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _site(sites: Sequence[str], index: int) -> str:
    return f" ({sites[index]})" if index < len(sites) and sites[index] else ""
