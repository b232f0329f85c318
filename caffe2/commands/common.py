"""What commands share: models from files, values for inputs, tables."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from caffe2.graph.errors import DamagedError, FileError, UsageError, printable
from caffe2.graph.files import load_message, load_net
from caffe2.graph.model import Model, unresolved
from caffe2.graph.nesting import reads
from caffe2.ops.declaration import TOUCHES, Spec
from caffe2.proto import caffe2_pb2

Array = npt.NDArray[Any]

_KINDS = "biufSUO"  # of types that blobs have; O for strings of any length


def add_model(parser: argparse.ArgumentParser) -> None:
    """The files of a model."""
    parser.add_argument(
        "model",
        nargs="+",
        help="a predict net; or an init net and a predict net, in any order; or a ModelDef with "
        "both.  Binary or text, whatever their names",
    )


def add_allow(parser: argparse.ArgumentParser) -> None:
    """`--allow`."""
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        choices=TOUCHES,
        help="what operators may touch; may be repeated",
    )


def load_model(paths: Sequence[str]) -> Model:
    """The nets of one or two files.  UsageError names a file that holds none, or is given twice."""
    if len(paths) > 2:
        raise UsageError(f"a model is one file or two, not {len(paths)}")
    if len(paths) == 2:
        first, second = map(load_net, paths)
        if os.path.samefile(*paths):
            raise UsageError(f"{paths[1]} is given twice; a model is an init net and a predict net")
        return (
            Model(second, first) if _fills(second) and not _fills(first) else Model(first, second)
        )
    try:
        return Model(caffe2_pb2.NetDef(), load_net(paths[0]))
    except UsageError:
        try:
            model = load_message(caffe2_pb2.ModelDef, paths[0])
        except DamagedError:
            raise
        except UsageError:
            model = caffe2_pb2.ModelDef()
        if len(model.net) != 2 or not all(net.op for net in model.net):
            raise
        return Model(*model.net)


def _fills(net: caffe2_pb2.NetDef) -> bool:
    """Whether a net needs nothing from outside."""
    return not unresolved(net, ())


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


def parse_shapes(items: Sequence[str], model: Model) -> dict[str, Spec]:
    """The shapes of `--shape`."""
    found = {}
    for item in items:
        name, _, text = item.rpartition("=")
        dims, _, kind = text.partition(":")
        try:
            shape = tuple(int(dim) for dim in dims.split(",") if dim)
            dtype = np.dtype(kind or "float32")
            name = name if dtype.kind in _KINDS else ""
        except (ValueError, TypeError):
            name = ""
        if not name or min(shape, default=0) < 0:
            raise UsageError(f"--shape {item}: NAME=1,3,224,224 or NAME=4:int32 is needed")
        found[name] = Spec(shape, dtype)
    _check_names(found, model)
    return found


def _readable(model: Model) -> set[str]:
    return {*model.inputs, *model.predict.external_input, *reads(model.predict)}


def _check_names(given: Iterable[str], model: Model) -> None:
    """Inputs are given by their names, and so may be what a net reads else."""
    there = _readable(model)
    for name in given:
        if name not in there:
            inputs = ", ".join(model.inputs) or "none"
            raise UsageError(f"the net reads no blob '{name}'; its inputs are {inputs}")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Values of inputs, or their shapes."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a .npy, .npz or image file; NAME may be left out for a net with one input, and for "
        ".npz, whose arrays are found by their names (those that the net does not read are left)",
    )
    parser.add_argument("--mean", default="0", help="subtracted from images: one number or three")
    parser.add_argument("--scale", type=float, default=1.0, help="images are multiplied by it then")
    parser.add_argument("--size", metavar="WxH", help="images are resized to it")
    parser.add_argument("--bgr", action="store_true", help="blue first, as nets from Caffe 1 want")
    add_shapes(parser)


def read_inputs(options: argparse.Namespace, model: Model) -> dict[str, Array]:
    """The values of `--input`; random ones, always the same, for `--shape`."""
    rng, found = np.random.default_rng(0), dict[str, Array]()
    for name, spec in parse_shapes(options.shape, model).items():
        if spec.dtype.kind == "f":
            found[name] = rng.random(spec.shape).astype(spec.dtype)
        else:
            found[name] = np.full(spec.shape, b"" if spec.dtype.hasobject else 0, spec.dtype)
    for item in options.input:
        name, _, path = item.rpartition("=")
        if path.endswith(".npz"):
            found |= {f"{name}{key}": value for key, value in read_arrays(path).items()}
            continue
        if not name:
            if len(model.inputs) != 1:
                raise UsageError(f"--input {item}: name one of {', '.join(model.inputs) or 'none'}")
            name = model.inputs[0]
        _check_names([name], model)
        found[name] = read_array(path) if path.endswith(".npy") else _image(path, options)
    for name in found.keys() & set(_readable(model)):
        if found[name].dtype.kind not in _KINDS:
            raise UsageError(f"input '{name}' holds {found[name].dtype}, which no blob takes")
    missing = [n for n in model.inputs if n not in found and n not in model.stand_in]
    if model.stand_in and not found:
        missing = model.stand_in
    if missing:
        raise UsageError(f"the net needs {', '.join(missing)}: give --input or --shape")
    return found


_NO_ARRAYS = (
    *(ValueError, TypeError, EOFError, SyntaxError, tokenize.TokenError),  # the header is Python
    *(zipfile.BadZipFile, zlib.error, NotImplementedError),
)


def read_array(path: str) -> Array:
    """The array of a .npy file."""
    try:
        return cast(Array, np.load(path, allow_pickle=False))
    except _NO_ARRAYS as error:
        raise FileError(path, f"holds no array: {error}") from None


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of a .npz file by name."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except _NO_ARRAYS as error:
        raise FileError(path, f"holds no arrays: {error}") from None


def _image(path: str, options: argparse.Namespace) -> Array:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise UsageError(
            f"{path}: images need Pillow (pip install pillow), or save a .npy"
        ) from None
    try:
        with Image.open(path) as file:
            image = file.convert("RGB")
    except UnidentifiedImageError:
        raise FileError(path, "is neither .npy nor .npz nor an image that Pillow reads") from None
    except Image.DecompressionBombError as error:
        raise FileError(path, f"is no image to read: {error}") from None
    except (OSError, ValueError, SyntaxError) as error:
        if isinstance(error, OSError) and error.filename:
            raise
        raise FileError(path, f"is a damaged image: {error}") from None
    if options.size:
        size = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", options.size)
        if not size:
            raise UsageError(f"--size {options.size}: WIDTHxHEIGHT is needed, such as 227x227")
        image = image.resize((int(size[1]), int(size[2])))
    pixels = np.asarray(image, np.float32)
    try:
        mean = np.float32(options.mean.split(","))
    except ValueError:
        mean = np.zeros(0, np.float32)
    if mean.size not in (1, 3):
        raise UsageError(f"--mean {options.mean}: one number or three are needed")
    if options.bgr:
        pixels = pixels[..., ::-1]
    pixels = (pixels - mean) * np.float32(options.scale)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


# ------------------------------------------------------------------- output


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="for programs")


def show_notes(command: str, notes: Iterable[str]) -> None:
    """Prints what is no error on the side."""
    for note in notes:
        print(printable(f"caffe2 {command}: note: {note}"), file=sys.stderr)


def show(*lines: str) -> None:
    """Prints lines."""
    for line in lines:
        print(printable(line))


def show_json(value: Any) -> None:
    """Prints a value as JSON."""
    print(json.dumps(value, indent=1))


def show_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], right: str = "") -> None:
    """Prints rows under headers; those of the headers named in `right` are flush right.  With rich
    where it is installed and a person reads."""
    texts = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
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
    shown = number
    for prefix in ["", "k", "M", "G", "T", "P", "E"]:
        if shown < 999.5:
            return f"{shown:.3g} {prefix}{unit}".rstrip()
        shown /= 1000
    return f"{number:.3g} {unit}".rstrip()


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file in one step."""
    from caffe2.graph.files import write_atomically

    write_atomically(Path(path), content)
