"""Checks nets without running them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence

from caffe2 import ops
from caffe2.graph.costs import spec_bytes
from caffe2.graph.errors import net_called
from caffe2.graph.model import Model, unresolved
from caffe2.graph.nesting import every_operator, touching_operators
from caffe2.graph.operator import check_operator
from caffe2.graph.shapes import infer_shapes
from caffe2.ops.arguments import OperatorError
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2

_HINTS = 50  # problems with near names, which take long to find among many,
_COMPARED = 1_000_000  # and names that are looked at for them, a microsecond each


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
    refused = infer_shapes(net, specs)[1] if specs is not None else ()
    return _problems(net, known, refused, net_called(net.name), sites)


def _problems(
    net: caffe2_pb2.NetDef,
    known: Iterable[str],
    refused: Iterable[tuple[int, OperatorError]],
    called: str,
    sites: Sequence[str] = (),
) -> list[str]:
    problems: list[tuple[int, str]] = []
    written = {*net.external_input, *known}
    everything = written.union(*(op.output for op in net.op))
    hints = min(_HINTS, _COMPARED // max(1, len(everything)))
    sound = set()
    for index, op in enumerate(net.op):
        near = everything if len(problems) < hints else set[str]()
        wrong = [*_unwritten(op, written, everything, near), *_declared(op, bool(near))]
        problems.extend((index, text) for text in wrong)
        if not wrong:
            sound.add(index)
        written.update(op.output)
    problems.extend((index, _text(error)) for index, error in refused if index in sound)
    lines = [
        f"{called}, #{index} {net.op[index].type}{_site(sites, index)}: {text}"
        for index, text in sorted(problems, key=lambda problem: problem[0])
    ]
    for name in net.external_output:
        if name not in written:
            lines.append(
                f"{called}: external output '{name}' is written by no operator"
                f"{_near(name, written if len(lines) < hints else ())}"
            )
    return lines


def verify_model(
    model: Model,
    given: Mapping[str, Spec],
    *,
    allow: Iterable[str] = (),
    phone: bool = False,
    memory: int = (1 << 63) - 1,
) -> list[str]:
    """What keeps a model from running as a program runs it (see `Predictor`), a line for each.

    given   shapes and types of inputs: of all of them, or of none
    allow   what operators may touch, of "files", "code" and "network"
    phone   whether it has to run where there is no Python, and nothing may be touched
    memory  bytes that one operator may take
    """
    specs, touched = model.known(given), () if phone else tuple(allow)
    there = {*model.filled, *given}
    if not model.predict.external_input:
        there.update(model.inputs)
    problems = [
        f"{net_called(model.init.name, 'init')}: it reads '{name}', which nothing fills before; "
        "were the two nets swapped?"
        for name in unresolved(model.init, ())
        if name in model.init.external_input
    ]
    predict = net_called(model.predict.name, "predict")
    nets: list[tuple[str, caffe2_pb2.NetDef, Iterable[str], Mapping[str, Spec]]]
    nets = [("init", model.init, (), {}), ("predict", model.predict, there, specs)]
    for role, net, known, shapes in nets:
        called = net_called(net.name, role)
        inferred, refused = infer_shapes(net, shapes)
        lines = [
            *_nested(net),
            *(_slow(net) if phone else ()),
            *(f"{x}, which is not allowed" for x in touching_operators(net, touched)),
            *_large(net, inferred, memory),
        ]
        problems += _problems(net, known, refused, called)
        problems += [f"{called}, {line}" for line in lines]
    if model.unread and not model.predict.external_output:
        problems.append(
            f"{predict}: it seems to be cut off: it names no external_output, and "
            f"{len(model.unread)} of {len(model.filled)} parameters are read by nobody"
        )
    missing = [name for name in model.inputs if name not in given and name in model.declared]
    if given and missing:
        problems.append(
            f"{predict}: it needs {', '.join(missing)}, too, which no net fills "
            "and no shape is given for"
        )
    if not model.outputs:
        problems.append(f"{predict}: it has no answer: no external_output")
    return problems


def _nested(net: caffe2_pb2.NetDef) -> Iterable[str]:
    """What is wrong with operators inside of operators, each for itself."""
    found = 0
    for where, op in every_operator(net):
        for text in _declared(op, found < _HINTS) if "," in where else ():
            found += 1
            yield f"{where}: {text}"


def _slow(net: caffe2_pb2.NetDef) -> Iterable[str]:
    known = ops.all()
    for where, op in every_operator(net):
        if op.type in known and (not known[op.type].native or op.engine == "REFERENCE"):
            yield f"{where} runs on its NumPy body, which phones do not have"


def _large(net: caffe2_pb2.NetDef, known: Mapping[str, Spec], memory: int) -> Iterable[str]:
    """Operators whose inputs and outputs together are more than `memory` bytes."""
    for index, op in enumerate(net.op):
        names = {*op.input, *op.output}
        size = sum(spec_bytes(known[name]) for name in names if name in known)
        if size > memory:
            yield (
                f"#{index} {op.type} needs {size} bytes for what it reads and writes; the limit is "
                f"{memory}"
            )


def _unwritten(
    op: caffe2_pb2.OperatorDef, written: set[str], everything: set[str], near: set[str]
) -> Iterable[str]:
    for position, name in enumerate(op.input):
        if name not in written:
            hint = "; a later operator writes it" if name in everything else _near(name, near)
            yield (
                f"input {position} '{name}' is neither an external input nor written by an "
                f"earlier operator{hint}"
            )


def _declared(op: caffe2_pb2.OperatorDef, hint: bool = True) -> Iterable[str]:
    try:
        if check_operator(op) is None:
            yield (
                str(ops.UnknownOperatorError(op.type))
                if hint
                else f"no operator is called '{op.type}'"
            )
    except OperatorError as error:
        yield _text(error)


def _text(error: OperatorError) -> str:
    return str(error).removeprefix(f"{error.operator}: ")


def _near(name: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(name, list(names), 3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _site(sites: Sequence[str], index: int) -> str:
    return f" ({sites[index]})" if index < len(sites) and sites[index] else ""
