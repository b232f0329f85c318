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
    show,
    show_json,
    show_table,
)
from caffe2.graph.costs import elements, spec_bytes
from caffe2.graph.costs import steps as walk
from caffe2.graph.nesting import reads, undeclared_operators
from caffe2.graph.shapes import written_inside


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_shapes(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    known = model.known(parse_shapes(options.shape, model))
    steps = list(walk(model.predict, known))
    for step in steps:
        for name in (*step.op.output, *written_inside(step.op)):
            known.pop(name, None)
        known |= step.outputs
    read = reads(model.predict)
    params = [known[name] for name in model.filled if name in known and name in read]
    sizes: dict[str, int] = {}  # a blob may be written more than once
    for step in steps:
        for name, spec in step.outputs.items():
            sizes[name] = max(sizes.get(name, 0), spec_bytes(spec))
    operators: list[dict[str, Any]] = [
        {
            "index": index,
            "type": step.op.type,
            "inputs": list(step.op.input),
            "outputs": {name: shape_text(step.outputs.get(name)) for name in step.op.output},
            "flops": step.flops,
        }
        for index, step in enumerate(steps)
    ]
    places = [f"#{index} {step.op.type}" for index, step in enumerate(steps)]
    facts: dict[str, Any] = {
        "name": model.predict.name,
        "operators": operators,
        "inputs": {name: shape_text(known.get(name)) for name in model.inputs},
        "outputs": {name: shape_text(known.get(name)) for name in model.outputs},
        "parameters": sum(map(elements, params)),
        "parameter_bytes": sum(map(spec_bytes, params)),
        "activation_bytes": sum(sizes.values()),
        "flops": sum(step.flops or 0 for step in steps),
        "unknown": {p: s.unknown for p, s in zip(places, steps, strict=True) if s.unknown},
        "refused": {
            place: str(step.refusal).removeprefix(f"{step.op.type}: ")
            for place, step in zip(places, steps, strict=True)
            if step.refusal
        },
        "missing": undeclared_operators(model.predict) | undeclared_operators(model.init),
        "notes": model.notes,
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
        show(f"{what:11}{listed or 'none'}")
    print(f"parameters {amount(facts['parameters'])} ({amount(facts['parameter_bytes'], 'B')})")
    unknown = any(op["flops"] is None for op in operators)
    print(f"flops      {amount(facts['flops'])}" + " of operators with known shapes" * unknown)
    print(f"blobs      {amount(facts['activation_bytes'], 'B')}, all together")
    if unknown and any("?" in shape for shape in facts["inputs"].values()):
        print("shapes of inputs are not known: give --shape NAME=1,3,224,224")
    if any(name in read for names in facts["unknown"].values() for name in names):
        first = next(iter(facts["unknown"]))
        show(f"some shapes are not known before a run: those after {first}")
    for place, problem in facts["refused"].items():
        show(f"refused    {place}: {problem}")
    for note in facts["notes"]:
        show(f"note: {note}")
    for kind, places in facts["missing"].items():
        show(f"missing    {kind}: {', '.join(places)}")
    return 0
