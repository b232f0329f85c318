"""What commands share: models from files, values for inputs, tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from caffe2.graph.errors import UsageError
from caffe2.graph.files import load_message, load_net
from caffe2.graph.shapes import infer_shapes
from caffe2.ops.declaration import Spec
from caffe2.proto import caffe2_pb2

Array = npt.NDArray[Any]


class Model(NamedTuple):
    """A net that predicts, and the one that fills its parameters (empty where there is none)."""

    init: caffe2_pb2.NetDef
    predict: caffe2_pb2.NetDef

    @property
    def filled(self) -> list[str]:
        return list(dict.fromkeys(name for op in self.init.op for name in op.output))

    @property
    def stand_in(self) -> list[str]:
        """The first input, where all are filled: its value only stands for one that is given,
        unless that is several values."""
        declared = list(self.predict.external_input)
        if not set(declared) <= set(self.filled):
            return []
        given = {op.output[0] for op in self.init.op if op.output and _has_values(op)}
        return [name for name in declared[:1] if name not in given]

    @property
    def inputs(self) -> list[str]:
        """What is read and neither written before nor filled, and a filled one that stands for
        values that are given."""
        written, found = set(self.filled), dict.fromkeys(self.stand_in)
        for op in self.predict.op:
            found.update((name, None) for name in op.input if name not in written)
            written.update(op.output)
        return list(found)

    @property
    def outputs(self) -> list[str]:
        """The declared outputs; where none are, blobs that no operator reads."""
        read = {name for op in self.predict.op for name in op.input}
        last = [name for op in self.predict.op for name in op.output if name not in read]
        return list(self.predict.external_output) or list(dict.fromkeys(last))

    def known(self, given: Mapping[str, Spec]) -> dict[str, Spec]:
        """Shapes and types of what is filled and of what is given."""
        filled, _ = infer_shapes(self.init, {})
        return {n: spec for n, spec in filled.items() if n not in self.stand_in} | dict(given)

    def specs(self, given: Mapping[str, Spec]) -> dict[str, Spec]:
        """Shapes and types by blob, as far as they follow."""
        return infer_shapes(self.predict, self.known(given))[0]


def add_model(parser: argparse.ArgumentParser) -> None:
    """The files of a model."""
    parser.add_argument(
        "model",
        nargs="+",
        help="a predict net; or an init net and a predict net, in any order; or a ModelDef with "
        "both.  Binary or text, whatever their names",
    )


def load_model(paths: Sequence[str]) -> Model:
    """The nets of one or two files.  UsageError names a file that holds none."""
    if len(paths) > 2:
        raise UsageError(f"a model is one file or two, not {len(paths)}")
    if len(paths) == 2:
        first, second = map(load_net, paths)
        return (
            Model(second, first) if _fills(second) and not _fills(first) else Model(first, second)
        )
    try:
        return Model(caffe2_pb2.NetDef(), load_net(paths[0]))
    except UsageError:
        try:
            model = load_message(caffe2_pb2.ModelDef, paths[0])
        except UsageError:
            model = caffe2_pb2.ModelDef()
        if len(model.net) != 2 or not all(net.op for net in model.net):
            raise
        return Model(*model.net)


def _fills(net: caffe2_pb2.NetDef) -> bool:
    return not any(op.input for op in net.op)


def _has_values(op: caffe2_pb2.OperatorDef) -> bool:
    """Whether it is given more than one value."""
    values = [arg for arg in op.arg if arg.name == "values"]
    return any(len(arg.floats) + len(arg.ints) + len(arg.strings) > 1 for arg in values)


# ------------------------------------------------------------------- values


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """Shapes of inputs."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1,3,224,224[:TYPE]",
        help="the shape of an input, and its type (float32 unless given); may be repeated",
    )


def parse_shapes(items: Sequence[str]) -> dict[str, Spec]:
    """The shapes of `--shape`."""
    found = {}
    for item in items:
        name, _, text = item.rpartition("=")
        dims, _, kind = text.partition(":")
        try:
            shape = tuple(int(dim) for dim in dims.split(",") if dim)
            dtype = np.dtype(kind or "float32")
        except (ValueError, TypeError):
            name = ""
        if not name or min(shape, default=0) < 0:
            raise UsageError(f"--shape {item}: NAME=1,3,224,224 or NAME=4:int32 is needed")
        found[name] = Spec(shape, dtype)
    return found


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Values of inputs, or their shapes."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a .npy, .npz or image file; NAME may be left out for a net with one input, and for "
        ".npz, whose arrays are found by their names",
    )
    parser.add_argument("--mean", default="0", help="subtracted from images: one number or three")
    parser.add_argument("--scale", type=float, default=1.0, help="images are multiplied by it then")
    parser.add_argument("--size", metavar="WxH", help="images are resized to it")
    parser.add_argument("--bgr", action="store_true", help="blue first, as nets from Caffe 1 want")
    add_shapes(parser)


def read_inputs(options: argparse.Namespace, model: Model) -> dict[str, Array]:
    """The values of `--input`; random ones, always the same, for `--shape`."""
    rng, found = np.random.default_rng(0), dict[str, Array]()
    for name, spec in parse_shapes(options.shape).items():
        if spec.dtype.kind == "f":
            found[name] = rng.random(spec.shape).astype(spec.dtype)
        else:
            found[name] = np.zeros(spec.shape, spec.dtype)
    for item in options.input:
        name, _, path = item.rpartition("=")
        if path.endswith(".npz"):
            with np.load(path, allow_pickle=False) as archive:
                found |= {f"{name}{key}": archive[key] for key in archive.files}
            continue
        if not name:
            if len(model.inputs) != 1:
                raise UsageError(f"--input {item}: name one of {', '.join(model.inputs) or 'none'}")
            name = model.inputs[0]
        is_array = path.endswith(".npy")
        found[name] = np.load(path, allow_pickle=False) if is_array else _image(path, options)
    missing = [n for n in model.inputs if n not in found and n not in model.stand_in]
    if model.stand_in and not found:
        missing = model.stand_in
    if missing:
        raise UsageError(f"the net needs {', '.join(missing)}: give --input or --shape")
    return found


def _image(path: str, options: argparse.Namespace) -> Array:
    try:
        from PIL import Image
    except ImportError:
        raise UsageError(
            f"{path}: images need Pillow (pip install pillow), or save a .npy"
        ) from None
    with Image.open(path) as file:
        image = file.convert("RGB")
        if options.size:
            width, _, height = options.size.partition("x")
            image = image.resize((int(width), int(height)))
        pixels = np.asarray(image, np.float32)
    if options.bgr:
        pixels = pixels[..., ::-1]
    pixels = (pixels - np.float32(options.mean.split(","))) * np.float32(options.scale)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


# ------------------------------------------------------------------- output


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="for programs")


def show_json(value: Any) -> None:
    """Prints a value as JSON."""
    print(json.dumps(value, indent=1))


def show_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], right: str = "") -> None:
    """Prints rows under headers; those of the headers named in `right` are flush right.  With rich
    where it is installed and a person reads."""
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    flush = ["right" if header in right.split() else "left" for header in headers]
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
        except ImportError:
            pass
        else:
            table = Table(box=None, header_style="bold")
            for header, side in zip(headers, flush, strict=True):
                table.add_column(header, justify="right" if side == "right" else "left")
            for row in texts:
                table.add_row(*row)
            Console().print(table, markup=False)
            return
    widths = [max(map(len, column)) for column in zip(headers, *texts, strict=True)]
    for row in (list(headers), *texts):
        cells = [
            cell.rjust(width) if side == "right" else cell.ljust(width)
            for cell, width, side in zip(row, widths, flush, strict=True)
        ]
        print("  ".join(cells).rstrip())


def shape_text(spec: Spec | None) -> str:
    """`1x3x224x224 float32`; "?" when not known."""
    if spec is None:
        return "?"
    return f"{'x'.join(map(str, spec.shape)) or 'scalar'} {spec.dtype.name}"


def amount(number: float, unit: str = "") -> str:
    """`1.2 M`."""
    prefixes = ["", "k", "M", "G", "T"]
    while number >= 1000 and len(prefixes) > 1:
        number /= 1000
        prefixes.pop(0)
    return f"{number:.3g} {prefixes[0]}{unit}".rstrip()


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file in one step."""
    from caffe2.graph.files import write_atomically

    write_atomically(Path(path), content)
