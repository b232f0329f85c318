"""The answers of a model."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np

from caffe2.commands.common import (
    Array,
    add_allow,
    add_inputs,
    add_json,
    add_model,
    load_model,
    read_inputs,
    shape_text,
    show,
    show_json,
    show_notes,
    show_table,
    write_bytes,
)
from caffe2.graph.errors import FileError, UsageError
from caffe2.graph.model import Model
from caffe2.ops.declaration import Spec
from caffe2.runtime.predictor import Predictor


def add(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_inputs(parser)
    parser.add_argument("--output", metavar="FILE.npz", help="where the outputs are written")
    parser.add_argument("--top", type=int, default=0, help="print the N largest values of a row")
    parser.add_argument("--labels", help="a file with a name per line, for --top")
    add_allow(parser)
    add_json(parser)


def predict(model: Model, inputs: dict[str, Array], allow: list[str]) -> dict[str, Array]:
    """The outputs by name."""
    net = type(model.predict)()
    net.CopyFrom(model.predict)
    net.external_output[:] = model.outputs
    net.external_input.extend(n for n in model.inputs if n not in model.predict.external_input)
    predictor = Predictor(model.init, net, allow=allow)
    known = {name: value for name, value in inputs.items() if name in predictor.inputs}
    return dict(zip(predictor.outputs, predictor.run(known), strict=True))


def run(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    if options.top < 0:
        raise UsageError(f"--top is 1 or more, not {options.top}")
    labels = _labels(options.labels) if options.labels else []
    outputs = predict(model, read_inputs(options, model), options.allow)
    if options.output:
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in outputs.items()}
        np.savez(buffer, **arrays)
        write_bytes(options.output, buffer.getvalue())
    top = {
        name: _top(value, options.top, labels)
        for name, value in outputs.items()
        if options.top and np.ndim(value) and np.asarray(value).dtype.kind in "fiub"
    }
    if options.json:
        shapes = {name: list(np.shape(value)) for name, value in outputs.items()}
        show_json({"outputs": shapes, "top": top, "notes": model.notes})
        return 0
    show_notes("run", model.notes)
    for name, value in outputs.items():
        array = np.asarray(value)
        show(f"{name}  {shape_text(Spec(array.shape, array.dtype))}")
        for number, row in enumerate(top.get(name, [])):
            print(f"row {number}")
            show_table(
                ["label", "value"], [[e["label"], f"{e['value']:.6g}"] for e in row], "value"
            )
    return 0


def _labels(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise FileError(path, f"holds no labels: {error}") from None


def _top(value: Array, count: int, labels: list[str]) -> list[list[dict[str, Any]]]:
    rows = value.reshape(len(value), -1)
    if labels and len(labels) < rows.shape[1]:
        raise UsageError(f"there are {len(labels)} labels for {rows.shape[1]} values")
    best = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")[:, :count]
    return [
        [{"label": labels[i] if labels else int(i), "value": float(row[i])} for i in order]
        for row, order in zip(rows, best, strict=True)
    ]
