"""A model made ready for inference."""

from __future__ import annotations

import argparse

import numpy as np

from caffe2 import passes
from caffe2.commands.common import (
    add_json,
    add_model,
    add_shapes,
    load_model,
    parse_shapes,
    show,
    show_json,
)
from caffe2.graph.errors import UsageError
from caffe2.graph.model import Model
from caffe2.graph.model_file import save_model
from caffe2.graph.nesting import touching_operators
from caffe2.runtime.inference import add_packed, optimize_pair


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--output", "-o", required=True, help="file for both nets, a ModelDef")
    parser.add_argument(
        "--without", action="append", default=[], choices=list(passes.INFERENCE), help="may repeat"
    )
    parser.add_argument(
        "--pack",
        action="store_true",
        help="store weights also as this processor's kernels read them, for inputs of --shape",
    )
    add_shapes(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    if not model.init.op:
        raise UsageError("optimize needs the parameters: give the init net, too")
    touching = touching_operators(model.init)
    if touching:
        raise UsageError(f"not run: {'; '.join(touching)}")
    init, predict, notes = optimize_pair(model.init, model.predict, options.without)
    if options.pack:
        specs = parse_shapes(options.shape, model)
        given = {name: np.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}
        missing = [name for name in Model(init, predict).inputs if name not in given]
        if missing:
            raise UsageError(f"--pack needs the shape of {', '.join(missing)}: give --shape")
        notes += add_packed(init, predict, given)
    save_model(init, predict, options.output)
    before, after = len(model.predict.op), len(predict.op)
    if options.json:
        show_json({"changes": notes, "before": before, "after": after})
    else:
        show(*notes, f"{before} operators before, {after} after")
    return 0
