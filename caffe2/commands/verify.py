"""Whether a model is right, and fit for a place."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from caffe2._native import EngineError
from caffe2.commands.common import (
    add_allow,
    add_json,
    add_model,
    add_shapes,
    load_model,
    parse_shapes,
    show,
    show_json,
)
from caffe2.graph.errors import net_called
from caffe2.graph.model import Model, unresolved
from caffe2.graph.nesting import every_operator
from caffe2.graph.verify import verify_model
from caffe2.proto import caffe2_pb2
from caffe2.runtime.engine import default_engine, new_workspace


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_shapes(parser)
    add_allow(parser)
    parser.add_argument(
        "--target",
        choices=["here", "phone"],
        default="here",
        help="phone: kernels in C++ only, and nothing but the net's own blobs is touched",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    given = parse_shapes(options.shape, model)
    phone, memory = options.target == "phone", default_engine().memory_limit
    problems = verify_model(model, given, allow=options.allow, phone=phone, memory=memory)
    if not problems:
        problems = _refusals(model, options.allow)
    notes = [*model.notes, *_undeclared(model, given), *_floats_instead(model.predict)]
    if options.json:
        show_json({"problems": problems, "notes": notes})
    else:
        show(*(problems or ["no problems found"]), *(f"note: {note}" for note in notes))
    return 1 if problems else 0


def _undeclared(model: Model, given: Iterable[str]) -> Iterable[str]:
    """Inputs of a net that declares others."""
    declared = {*model.predict.external_input, *model.filled}
    if not model.predict.external_input:
        return
    for name in unresolved(model.predict, declared):
        if name in given:
            yield f"'{name}' is read, and is no external_input"
        else:
            yield f"if '{name}' is an input, give its shape: --shape {name}=1,3,224,224"


def _floats_instead(net: caffe2_pb2.NetDef) -> Iterable[str]:
    """Operators on floats that the original computes in integers, and hands on as such."""
    for where, op in every_operator(net):
        if op.engine.startswith("DNNLOWP") and not op.type.startswith(("Int8", "Quant", "Dequant")):
            yield f"{where} is computed in floats: only Int8 operators have engine {op.engine}"


def _refusals(model: Model, allow: Iterable[str]) -> list[str]:
    """What the engine says against the nets when it makes them, without running them."""
    workspace = new_workspace()
    workspace.allow_files("files" in allow)
    for blob in (*model.filled, *model.inputs, *model.predict.external_input):
        workspace.create_blob(blob)
    problems = []
    for name, net in (("init", model.init), ("predict", model.predict)):
        # A field given twice has its last value: both may have one name.
        named = net.SerializeToString() + type(net)(name=name).SerializeToString()
        try:
            workspace.create_net(named)
        except EngineError as error:
            problems.append(f"{net_called(net.name, name)}: {error}")
    return problems
