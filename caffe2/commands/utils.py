"""What `python -m caffe2.python.utils` does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from caffe2 import passes
from caffe2.graph.files import load_net, save_net
from caffe2.graph.model_file import save_model
from caffe2.runtime.inference import optimize_pair


def main(arguments: Sequence[str] | None = None) -> int:
    """The command `python -m caffe2.python.utils`."""
    parser = argparse.ArgumentParser(prog="python -m caffe2.python.utils")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("optimize_net", help="make a saved model ready for inference")
    command.add_argument("--init_model", required=True, help="the net that fills the parameters")
    command.add_argument("--predict_model", required=True, help="the net that predicts")
    command.add_argument(
        "--output_model", required=True, help="file for both nets, a ModelDef (init, predict)"
    )
    command.add_argument("--output_init", help="file for the new init net alone")
    command.add_argument("--output_predict", help="file for the new predict net alone")
    command.add_argument(
        "--fuse_bn_into_conv",
        action="store_true",
        help="only fold scales and shifts of channels into the layers before them",
    )
    options = parser.parse_args(arguments)
    without = set(passes.INFERENCE) - {"fold_affine"} if options.fuse_bn_into_conv else set()
    predict_net = load_net(options.predict_model)
    before = len(predict_net.op)
    init, predict, notes = optimize_pair(load_net(options.init_model), predict_net, without)
    save_model(init, predict, options.output_model)
    for net, path in ((init, options.output_init), (predict, options.output_predict)):
        if path:
            save_net(net, path)
    for note in notes:
        print(note)
    print(f"{before} operators before, {len(predict.op)} after")
    return 0
