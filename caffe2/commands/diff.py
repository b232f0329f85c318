"""Where two models differ: in their operators, or in what they compute."""

from __future__ import annotations

import argparse
import difflib
from typing import Any

import numpy as np

from caffe2._native import EngineError
from caffe2.commands.common import (
    Array,
    add_inputs,
    add_json,
    load_model,
    read_arrays,
    read_inputs,
    show,
    show_json,
)
from caffe2.graph.errors import UsageError
from caffe2.graph.model import Model
from caffe2.graph.nesting import touching_operators
from caffe2.graph.printer import net_text
from caffe2.runtime.engine import new_workspace
from caffe2.runtime.feeding import feed


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", help="files of a model, separated by commas; or an .npz of a run")
    parser.add_argument("second", help="the same, to compare with")
    parser.add_argument(
        "--run", action="store_true", help="run both and name the first blob where numbers part"
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-4,
        help="share of a blob's range that is no difference",
    )
    add_inputs(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    if options.first.endswith(".npz") and options.second.endswith(".npz"):
        found = _parting(read_arrays(options.first), read_arrays(options.second), options.tolerance)
        return _tell_parting(found, options.json)
    models = [load_model(name.split(",")) for name in (options.first, options.second)]
    if options.run:
        inputs = read_inputs(options, models[0])
        runs = [_blobs(model, inputs) for model in models]
        found = _parting(runs[0], runs[1], options.tolerance)
        return _tell_parting(found, options.json)
    first, second = (
        (net_text(model.init) + net_text(model.predict)).splitlines() for model in models
    )
    lines = difflib.unified_diff(
        first, second, fromfile=options.first, tofile=options.second, n=1, lineterm=""
    )
    changes = list(lines)
    if options.json:
        show_json({"differences": changes})
    elif changes:
        show(*changes)
    return 1 if changes else 0


def _blobs(model: Model, inputs: dict[str, Array]) -> dict[str, Array]:
    """All tensors after a run, in the order in which they were written."""
    touching = [*touching_operators(model.init), *touching_operators(model.predict)]
    if touching:
        raise UsageError(f"not run: {'; '.join(touching)}")
    workspace = new_workspace()
    workspace.random_seed = 1  # both models draw the same numbers
    if model.init.op:
        workspace.run_net_once(model.init.SerializeToString())
    for name, value in inputs.items():
        feed(workspace, name, value)
    workspace.run_net_once(model.predict.SerializeToString())
    names = dict.fromkeys(name for op in model.predict.op for name in op.output)
    values = {name: _value(workspace, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _value(workspace: Any, name: str) -> Array | None:
    """The numbers of a tensor, or those that an Int8 tensor is stored as."""
    if workspace.tensor_spec(name) is not None:
        return np.asarray(workspace.fetch(name))
    try:
        return np.asarray(workspace.fetch_int8(name)[0])
    except EngineError:
        return None


def _parting(
    first: dict[str, Array], second: dict[str, Array], tolerance: float
) -> dict[str, Any] | None:
    """The first blob of both runs that is not the same, and how; None for none."""
    common = [name for name in first if name in second]
    if not common:
        raise UsageError("the two have no blob in common")
    for name in common:
        a, b = first[name], second[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            return {"blob": name, "problem": f"{a.shape} {a.dtype} and {b.shape} {b.dtype}"}
        if a.dtype.kind not in "fiub":
            if not np.array_equal(a, b):
                return {"blob": name, "problem": "other values"}
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(invalid="ignore"):
            apart = np.nan_to_num(np.abs(x - y), nan=np.inf)
        apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0, apart)
        allowed = tolerance * np.abs(x[np.isfinite(x)]).max(initial=0)
        if apart.max(initial=0) > allowed:
            place = tuple(int(i) for i in np.unravel_index(apart.argmax(), a.shape))
            found = f"{x[place]:.7g} and {y[place]:.7g} at {list(place)}, where they differ most"
            return {"blob": name, "problem": found}
    return None


def _tell_parting(found: dict[str, Any] | None, as_json: bool) -> int:
    if as_json:
        show_json({"first": found})
    elif found:
        show(f"{found['blob']}: {found['problem']}")
    else:
        print("no difference")
    return 1 if found else 0
