"""Whether a model is right, and fit for a place."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from caffe2 import ops
from caffe2.commands.common import (
    add_json,
    add_model,
    add_shapes,
    load_model,
    parse_shapes,
    show_json,
)
from caffe2.graph import verify as checks
from caffe2.graph.nesting import every_operator, touching_operators, undeclared_operators
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_shapes(parser)
    parser.add_argument(
        "--target",
        choices=["here", "phone"],
        default="here",
        help="phone: kernels in C++ only, and nothing but the net's own blobs is touched",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    specs = model.known(parse_shapes(options.shape))
    there = model.filled if model.predict.external_input else [*model.filled, *model.inputs]
    problems = []
    nets: list[tuple[caffe2_pb2.NetDef, Sequence[str], Mapping[str, Spec]]]
    nets = [(model.init, (), {}), (model.predict, there, specs)]
    for net, known, given in nets:
        if net.op:
            problems += checks.verify(net, known=known, specs=given)
            problems += _nested_problems(net)
            if options.target == "phone":
                problems += _unfit_for_phones(net)
    if options.json:
        show_json({"problems": problems})
    else:
        print("\n".join(problems) or "no problems found")
    return 1 if problems else 0


def _nested_problems(net: caffe2_pb2.NetDef) -> list[str]:
    """Unknown operators inside of operators, which the verifier of a net does not see."""
    return [
        f'net "{net.name}", {place}: there is no operator {kind}'
        for kind, places in undeclared_operators(net).items()
        for place in places
        if "," in place
    ]


def _unfit_for_phones(net: caffe2_pb2.NetDef) -> list[str]:
    known = ops.all()
    slow = [
        f"{where} runs on its NumPy body, which phones do not have"
        for where, op in every_operator(net)
        if op.type in known and (not known[op.type].native or op.engine == "REFERENCE")
    ]
    return [f'net "{net.name}", {line}' for line in [*slow, *touching_operators(net)]]
