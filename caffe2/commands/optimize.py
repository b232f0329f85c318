"""A model made ready for inference."""

from __future__ import annotations

import argparse

from caffe2 import passes
from caffe2.commands.common import add_json, add_model, load_model, show_json
from caffe2.graph.errors import UsageError
from caffe2.graph.files import save_message
from caffe2.graph.nesting import touching_operators
from caffe2.proto import caffe2_pb2
from caffe2.runtime.inference import optimize_pair


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--output", "-o", required=True, help="file for both nets, a ModelDef")
    parser.add_argument(
        "--without", action="append", default=[], choices=list(passes.INFERENCE), help="may repeat"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    if not model.init.op:
        raise UsageError("optimize needs the parameters: give the init net, too")
    touching = touching_operators(model.init)
    if touching:
        raise UsageError(f"not run: {'; '.join(touching)}")
    init, predict, notes = optimize_pair(model.init, model.predict, options.without)
    save_message(caffe2_pb2.ModelDef(name=predict.name, net=[init, predict]), options.output)
    before, after = len(model.predict.op), len(predict.op)
    if options.json:
        show_json({"changes": notes, "before": before, "after": after})
    else:
        print("\n".join([*notes, f"{before} operators before, {after} after"]))
    return 0
