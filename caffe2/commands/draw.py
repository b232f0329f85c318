"""A picture of a net."""

from __future__ import annotations

import argparse
from typing import Any

from caffe2.commands.common import add_model, load_model, write_bytes
from caffe2.graph import drawing
from caffe2.graph.errors import UsageError
from caffe2.graph.svg import to_svg


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--output", "-o", required=True, help="FILE.svg, FILE.dot, or FILE.png (needs Graphviz)"
    )


def run(options: argparse.Namespace) -> int:
    net = load_model(options.model).predict
    kind = options.output.rpartition(".")[2].lower()
    if kind == "svg":
        content = to_svg(net).encode()
    elif kind == "dot":
        content = drawing.to_dot(net, rankdir="TB").encode()
    elif kind == "png":
        content = _png(net)
    else:
        raise UsageError(f"{options.output}: pictures end in .svg, .dot or .png")
    write_bytes(options.output, content)
    return 0


def _png(net: Any) -> bytes:
    try:
        graph: Any = drawing.GetPydotGraphMinimal(net, rankdir="TB")
        return bytes(graph.create_png())
    except (ImportError, FileNotFoundError) as error:
        raise UsageError(f"PNG needs pydot and Graphviz ({error}); .svg needs neither") from None
