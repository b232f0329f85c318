"""A picture of a net."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from typing import Any

from caffe2.commands.common import add_model, load_model, write_bytes
from caffe2.graph import drawing
from caffe2.graph.errors import UsageError
from caffe2.graph.svg import to_svg


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--parameters", action="store_true", help="in SVG: also blobs that are no first input"
    )
    parser.add_argument(
        "--output",
        "-o",
        required=True,
        help="FILE.svg, FILE.dot, or FILE.png (needs librsvg or Graphviz)",
    )


def run(options: argparse.Namespace) -> int:
    net = load_model(options.model).predict
    kind = options.output.rpartition(".")[2].lower()
    if kind == "svg":
        content = to_svg(net, options.parameters).encode()
    elif kind == "dot":
        content = drawing.to_dot(net, rankdir="TB").encode()
    elif kind == "png":
        content = _png(net, options.parameters)
    else:
        raise UsageError(f"{options.output}: pictures end in .svg, .dot or .png")
    write_bytes(options.output, content)
    return 0


def _png(net: Any, parameters: bool) -> bytes:
    """The SVG as librsvg draws it, or without it the operators as Graphviz does."""
    program = shutil.which("rsvg-convert")
    if program:
        picture = to_svg(net, parameters).encode()
        command = [program, "--unlimited"]
        drawn = subprocess.run(command, input=picture, capture_output=True, check=False)
        if drawn.returncode == 0:
            return drawn.stdout
    try:
        graph: Any = drawing.GetPydotGraphMinimal(net, rankdir="TB")
        return bytes(graph.create_png())
    except (ImportError, FileNotFoundError) as error:
        problem = f"PNG needs the program rsvg-convert, or pydot and Graphviz ({error})"
        raise UsageError(f"{problem}; .svg needs none of them") from None
