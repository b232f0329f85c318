"""What a model is made of, without running it."""

from __future__ import annotations

import argparse
from typing import Any

from caffe2.commands.common import (
    add_json,
    add_model,
    add_shapes,
    amount,
    load_model,
    parse_shapes,
    shape_text,
    show_json,
    show_table,
)
from caffe2.graph.costs import elements, operator_flops, spec_bytes
from caffe2.graph.nesting import undeclared_operators


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_shapes(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    specs = model.specs(parse_shapes(options.shape))
    read = {name for op in model.predict.op for name in op.input}
    params = [specs[name] for name in model.filled if name in specs and name in read]
    # A blob that is written in place is listed where it was written last.
    operators: list[dict[str, Any]] = [
        {
            "index": index,
            "type": op.type,
            "inputs": list(op.input),
            "outputs": {name: shape_text(specs.get(name)) for name in op.output},
            "flops": operator_flops(op, specs),
        }
        for index, op in enumerate(model.predict.op)
    ]
    written = {name for op in model.predict.op for name in op.output}
    facts: dict[str, Any] = {
        "name": model.predict.name,
        "operators": operators,
        "inputs": {name: shape_text(specs.get(name)) for name in model.inputs},
        "outputs": {name: shape_text(specs.get(name)) for name in model.outputs},
        "parameters": sum(map(elements, params)),
        "parameter_bytes": sum(map(spec_bytes, params)),
        "activation_bytes": sum(spec_bytes(specs[name]) for name in written if name in specs),
        "flops": sum(op["flops"] or 0 for op in operators),
        "missing": undeclared_operators(model.predict) | undeclared_operators(model.init),
    }
    if options.json:
        show_json(facts)
        return 0
    rows = [
        (
            op["index"],
            op["type"],
            ", ".join(op["inputs"][:3]) + ", ..." * (len(op["inputs"]) > 3),
            ", ".join(f"{name} {shape}" for name, shape in op["outputs"].items()),
            None if op["flops"] is None else amount(op["flops"]),
        )
        for op in operators
    ]
    show_table(["#", "operator", "inputs", "outputs", "flops"], rows, right="# flops")
    print()
    for what in ("inputs", "outputs"):
        listed = ", ".join(f"{name} {shape}" for name, shape in facts[what].items())
        print(f"{what:11}{listed or 'none'}")
    print(f"parameters {amount(facts['parameters'])} ({amount(facts['parameter_bytes'], 'B')})")
    unknown = any(op["flops"] is None for op in operators)
    print(f"flops      {amount(facts['flops'])}" + " of operators with known shapes" * unknown)
    print(f"blobs      {amount(facts['activation_bytes'], 'B')}, all together")
    if unknown and any("?" in shape for shape in facts["inputs"].values()):
        print("shapes of inputs are not known: give --shape NAME=1,3,224,224")
    for kind, places in facts["missing"].items():
        print(f"missing    {kind}: {', '.join(places)}")
    return 0
