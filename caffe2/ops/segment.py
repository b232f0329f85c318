# mypy: disable-error-code="misc, no-any-return"
"""Reductions over segments of rows, and their gradients: a table of reducers and of segments.

The names are made of parts: `Sparse` (which rows of the data are meant is an input), what says the
segments (`Lengths`, `SortedSegment`, `UnsortedSegment`), and the reducer (`Sum`, `Mean`, ...).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from caffe2.ops.arguments import Argument, Bool, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, FLOAT16, INT32, INTS, TypeSet
from caffe2.ops.declaration import (
    Array,
    GradientContext,
    GradientSlice,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_dimensions, require_rank

_Rule = Callable[[Mapping[str, Any], OpView], Any]
_FLOAT = np.dtype(np.float32)
_LENGTHS, _IDS = "LENGTHS", "SEGMENT_IDS"
_ABOUT = {
    "Lengths": "LENGTHS: int32, 1-d, the number of rows of each segment; they sum to all rows.",
    "SortedSegment": "SEGMENT_IDS: int32, the segment of each row: 0 first, then the same or one"
    " more.",
    "UnsortedSegment": "SEGMENT_IDS: int32, the segment of each row, in any order.",
}
_EMPTY = "A segment without rows gives 0."


def _named(rule: _Rule, names: Sequence[str]) -> Callable[..., Any]:
    """A rule that takes its inputs as a mapping, as one that takes them by these names."""

    def named(*values: Any, op: OpView) -> Any:
        return rule(dict(zip(names, values, strict=True)), op)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in (*names, "op")]
    named.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return named


def _declare(
    name: str,
    doc: str,
    inputs: Sequence[str],
    outputs: str,
    shape: _Rule,
    reference: _Rule,
    gradient: Callable[[GradientContext], Any] | None = None,
    args: Mapping[str, Argument] | None = None,
    **types: TypeSet,
) -> None:
    known = {"INDICES": INTS, _LENGTHS: INT32, _IDS: INT32}
    known |= dict.fromkeys(("DATA", "SCALARS", "WEIGHT", "X", "Y", "dY"), FLOAT)
    rules: dict[str, Any] = {
        "__doc__": doc,
        "shape": _named(shape, inputs),
        "reference": _named(reference, inputs),
    }
    if gradient:
        rules["gradient"] = gradient
    operator(
        name,
        inputs=" ".join(inputs),
        outputs=outputs,
        args=args,
        types={key: types.get(key, known[key]) for key in inputs if key in types or key in known},
    )(type(name, (), rules))


# Segments


def _segment_ids(
    kind: str, x: Mapping[str, Any], rows: int | None, count: int
) -> tuple[Array, int]:
    """The segment of each row and the number of segments (`count` of unsorted ones, if >= 0)."""
    name = _LENGTHS if kind == "Lengths" else _IDS
    values = x[name].astype(np.int64)
    if kind == "Lengths":
        if values.size and values.min() < 0:
            raise OperatorError(name, f"holds {values.min()}; lengths are not negative")
        if rows is not None and values.sum() != rows:
            raise OperatorError(name, f"sums to {values.sum()}; there are {rows} rows")
        return np.repeat(np.arange(values.size), values), values.size
    if kind == "SortedSegment":
        steps = np.diff(values, prepend=-1)
        if values.size and (steps[0] != 1 or steps.min() < 0 or steps.max() > 1):
            raise OperatorError(name, "does not begin with 0 or is not sorted without gaps")
        return values, int(values.max(initial=-1)) + 1
    most = int(values.max(initial=-1)) + 1
    count = most if count < 0 else count
    if values.size and (values.min() < 0 or most > count):
        problem = f"holds {values.min()} to {values.max()}; there are {count} segments"
        raise OperatorError(name, problem)
    return values, count


def _check_rows(kind: str, x: Mapping[str, Spec], rows: int | None) -> int | None:
    """The number of segments as far as shapes say it."""
    if kind == "Lengths":
        require_rank(_LENGTHS, x[_LENGTHS], 1)
        return x[_LENGTHS].shape[0]
    require_rank(_IDS, x[_IDS], 1)
    if rows is not None and x[_IDS].shape != (rows,):
        raise OperatorError(_IDS, f"has shape {x[_IDS].shape}; there are {rows} rows")
    return None


def _require_shape(name: str, spec: Spec, shape: tuple[int, ...]) -> None:
    if spec.shape != shape:
        raise OperatorError(name, f"has shape {spec.shape}; needed is {shape}")


# Reductions


def _reduce(reducer: str, rows: Array, ids: Array, count: int) -> Array:
    """One row per segment from all rows, in float64; 0 for a segment without rows."""
    result = np.zeros((count, *rows.shape[1:]), dtype=np.float64)
    sizes = np.bincount(ids, minlength=count).reshape(-1, *[1] * (rows.ndim - 1))
    if reducer in ("Max", "LogSumExp", "LogMeanExp"):
        largest = np.full_like(result, -np.inf)
        np.maximum.at(largest, ids, rows)
        largest[sizes.reshape(-1) == 0] = 0
        if reducer == "Max":
            return largest
        np.add.at(result, ids, np.exp(rows - largest[ids]))
        result[sizes.reshape(-1) == 0] = 1
        return largest + np.log(result / (np.maximum(sizes, 1) if reducer == "LogMeanExp" else 1))
    np.add.at(result, ids, rows)
    return result / np.maximum(sizes, 1) if reducer == "Mean" else result


def _declare_reduction(kind: str, reducer: str, sparse: bool, name: str = "") -> None:
    name = name or f"{'Sparse' * sparse}{kind}{reducer}"
    weights = {"WeightedSum": ["SCALARS"], "PositionalWeightedSum": ["WEIGHT"]}.get(reducer, [])
    segments = _LENGTHS if kind == "Lengths" else _IDS
    inputs = ["DATA", *weights, *["INDICES"] * sparse, segments]
    positional = reducer == "PositionalWeightedSum"
    args: dict[str, Argument] = {}
    if reducer == "WeightedSum":
        args["grad_on_weights"] = Bool(False)
    if kind == "UnsortedSegment":
        args["num_segments"] = Int(-1, min=-1)

    def shape(x: Mapping[str, Spec], op: OpView) -> Spec | None:
        require_dimensions("DATA", x["DATA"], 1)
        if sparse:
            require_rank("INDICES", x["INDICES"], 1)
        rows = x["INDICES" if sparse else "DATA"].shape[0]
        count = _check_rows(kind, x, rows)
        if reducer == "WeightedSum":
            _require_shape("SCALARS", x["SCALARS"], (rows,))
        if positional:
            require_rank("WEIGHT", x["WEIGHT"], 1)
        if kind == "UnsortedSegment" and op.args.num_segments >= 0:
            count = op.args.num_segments
        return None if count is None else Spec((count, *x["DATA"].shape[1:]), _FLOAT)

    def reference(x: Mapping[str, Array], op: OpView) -> Array:
        data = x["DATA"]
        dtype = np.float32 if data.dtype == np.float16 else data.dtype
        if sparse:
            indices = x["INDICES"]
            if indices.size and not (indices.min() >= 0 and indices.max() < len(data)):
                problem = f"holds {indices.min()} to {indices.max()}; there are {len(data)} rows"
                raise OperatorError("INDICES", problem)
            data = data[indices]
        count = op.args.num_segments if kind == "UnsortedSegment" else -1
        ids, count = _segment_ids(kind, x, len(data), count)
        data = data.astype(np.float64)
        if weights:
            factors = x[weights[0]]
            if positional:
                starts = np.searchsorted(ids, ids)
                places = np.arange(len(ids)) - starts
                if places.max(initial=-1) >= len(factors):
                    problem = f"has {len(factors)} values; a segment has {places.max() + 1} rows"
                    raise OperatorError("WEIGHT", problem)
                factors = factors[places]
            data = data * factors.reshape(-1, *[1] * (data.ndim - 1))
        return _reduce(reducer, data, ids, count).astype(dtype)

    def gradient(op: GradientContext) -> Any:
        values = f"{op.input_grad(0)}_values" if sparse else op.input_grad(0)
        last = len(inputs) - 1
        if sparse:
            op.set_input_grad(0, GradientSlice(op.input(last - 1), values))
        more = [op.input(last - 1)] if sparse else [op.input(0)]
        front = [op.input(1)] if weights else []
        made = [*front, op.grad(0), op.input(last)]
        inside = "IndicesInGradient"
        if name.startswith("SortedSegmentRange"):
            made = [op.input(0), op.output(0), op.grad(0), op.input(1)]
            return op.make(f"{name}Gradient", made, [values])
        if reducer == "Max":
            type = "LengthsMaxWithMainInputAndForwardOutputGradient"
            return op.make(type, [op.output(0), *made, op.input(0)], [values])
        if weights and op.args.grad_on_weights:
            if kind != "Lengths":
                problem = "is set; only the operators with lengths have a gradient of weights"
                raise OperatorError("argument 'grad_on_weights'", problem)
            type = f"{name}WithMainInputGradient"
            type = type.replace("WeightedSum", f"{inside}WeightedSum") if sparse else type
            made += [op.input(0), *more] if sparse else [op.input(0)]
            return op.make(type, made, [values, op.input_grad(1)])
        if kind == "Lengths" and (sparse or not weights):
            type = name.replace("Lengths", f"Lengths{inside}") + "Gradient"
            return op.make(type, [*made, *more], [values])
        return op.make(f"{kind}{reducer}Gradient", made, [values])

    _declare(
        name,
        _about(reducer, kind, sparse),
        inputs,
        "OUTPUT" if not positional else "output",
        shape,
        reference,
        None if positional else gradient,
        args,
        DATA=FLOAT | FLOAT16 if sparse and kind == "Lengths" else FLOAT,
    )


_WHAT = {
    "Sum": "the sum",
    "Mean": "the mean",
    "Max": "the largest, element by element,",
    "WeightedSum": "the sum, each row times its weight,",
    "PositionalWeightedSum": "the sum, row i of a segment times weight i,",
    "LogSumExp": "the log of the sum of exp",
    "LogMeanExp": "the log of the mean of exp",
}


def _about(reducer: str, kind: str, sparse: bool) -> str:
    lines = [f"OUTPUT[k] = {_WHAT[reducer]} of the rows of segment k.", ""]
    if sparse and kind == "Lengths":
        lines.append("DATA: float or float16, (rows of the table, ...).")
    else:
        lines.append("DATA: float, at least 1-d; its rows go along the first dimension.")
    if sparse:
        lines.append("INDICES: int32 or int64, 1-d, which row of DATA each row is; in range.")
    lines.append(_ABOUT[kind])
    if reducer == "WeightedSum":
        lines.append(
            "SCALARS: float, one for each row.  grad_on_weights: they get a gradient, too."
        )
    if reducer == "PositionalWeightedSum":
        lines.append("WEIGHT: float, 1-d, at least as long as the longest segment.")
    if kind == "UnsortedSegment":
        lines.append("num_segments: how many there are; -1: as many as the largest id says.")
    if reducer == "Max":
        lines.append("In the gradient every row that is equal to the largest takes all of it.")
    lines.append(f"OUTPUT: float (segments, ...).  {_EMPTY}")
    return "\n".join(lines)


# Gradients


def _declare_spread(name: str, kind: str, reducer: str, like: str = "") -> None:
    """The gradient of a reduction from that of its output; `like` has as many rows as dX."""
    weights = ["SCALARS"] if reducer == "WeightedSum" else []
    segments = _LENGTHS if kind == "Lengths" else _IDS
    inputs = [*weights, "dY", segments, *[like] * bool(like)]

    def rows_of(x: Mapping[str, Any]) -> int | None:
        if like:
            return x[like].shape[0]
        return x["SCALARS"].shape[0] if weights else None

    def shape(x: Mapping[str, Spec], op: OpView) -> Spec | None:
        require_dimensions("dY", x["dY"], 1)
        if weights:
            require_rank("SCALARS", x["SCALARS"], 1)
        if like:
            require_dimensions(like, x[like], 1)
        rows = rows_of(x)
        if weights and like:
            _require_shape("SCALARS", x["SCALARS"], (x[like].shape[0],))
        count = _check_rows(kind, x, rows)
        if count is not None:
            _require_shape("dY", x["dY"], (count, *x["dY"].shape[1:]))
        if kind != "Lengths":
            rows = x[_IDS].shape[0]
        return None if rows is None else Spec((rows, *x["dY"].shape[1:]), _FLOAT)

    def reference(x: Mapping[str, Array], op: OpView) -> Array:
        dY = x["dY"]
        ids, count = _segment_ids(kind, x, rows_of(x), len(dY))
        _require_shape("dY", Spec(dY.shape, dY.dtype), (count, *dY.shape[1:]))
        factors = np.ones(len(ids)) if not weights else x["SCALARS"]
        if reducer == "Mean":
            factors = 1 / np.bincount(ids, minlength=count)[ids]
        return (dY[ids] * factors.reshape(-1, *[1] * (dY.ndim - 1))).astype(dY.dtype)

    factor = {"Mean": " / its rows", "WeightedSum": " * SCALARS[j]"}.get(reducer, "")
    doc = f"""dX[j] = dY[segment of row j]{factor}.

    The gradient of {_WHAT[reducer].rstrip(",")} over segments, for each row.
    dY: float (segments, ...).  dX: float (rows, ...).
    {_ABOUT[kind]}
    """
    if weights:
        doc += "SCALARS: float, one for each row.\n"
    if like:
        doc += f"{like}: any type; as many rows as dX, else not looked at.\n"
    _declare(name, inspect.cleandoc(doc), inputs, "dX", shape, reference)


def _declare_weighted(name: str, sparse: bool) -> None:
    """The gradients of a weighted sum for the rows and for the weights."""

    def shape(x: Mapping[str, Spec], op: OpView) -> tuple[Spec, Spec]:
        require_dimensions("DATA", x["DATA"], 1)
        if sparse:
            require_rank("INDICES", x["INDICES"], 1)
        rows = x["INDICES" if sparse else "DATA"].shape[0]
        _require_shape("SCALARS", x["SCALARS"], (rows,))
        _check_rows("Lengths", x, rows)
        _require_shape("dY", x["dY"], (*x[_LENGTHS].shape, *x["DATA"].shape[1:]))
        return Spec((rows, *x["DATA"].shape[1:]), _FLOAT), Spec((rows,), _FLOAT)

    def reference(x: Mapping[str, Array], op: OpView) -> tuple[Array, Array]:
        data, dY, weights = x["DATA"], x["dY"], x["SCALARS"]
        if sparse:
            indices = x["INDICES"]
            if indices.size and not (indices.min() >= 0 and indices.max() < len(data)):
                problem = f"holds {indices.min()} to {indices.max()}; there are {len(data)} rows"
                raise OperatorError("INDICES", problem)
            data = data[indices]
        ids, _ = _segment_ids("Lengths", x, len(data), -1)
        grads = dY[ids].reshape(len(ids), -1).astype(np.float64)
        dX = (grads * weights[:, None]).reshape(data.shape).astype(dY.dtype)
        dW = (grads * data.reshape(len(ids), -1)).sum(axis=1).astype(dY.dtype)
        return dX, dW

    doc = f"""dX[j] = dY[segment of row j] * SCALARS[j], dSCALARS[j] = dY[...] . row j.

    The gradients of a weighted sum over segments.
    dY: float (segments, ...).  SCALARS: float, one for each row.  DATA: float.
    {"INDICES: int32 or int64, which row of DATA each row is." * sparse}
    {_ABOUT["Lengths"]}
    dX: float (rows, ...).  dSCALARS: float (rows).
    """
    inputs = ["SCALARS", "dY", _LENGTHS, "DATA", *["INDICES"] * sparse]
    _declare(name, inspect.cleandoc(doc), inputs, "dX dSCALARS", shape, reference)


def _declare_forward(name: str, kind: str, reducer: str, inputs: Sequence[str]) -> None:
    """Gradients that look at X and Y."""

    def shape(x: Mapping[str, Spec], op: OpView) -> Spec:
        require_dimensions("X", x["X"], 1)
        count = _check_rows(kind, x, x["X"].shape[0])
        require_dimensions("Y", x["Y"], 1)
        wanted = x["Y"].shape[0] if count is None else count
        rows = (wanted, *x["X"].shape[1:])
        _require_shape("Y", x["Y"], rows)
        # In the step of a recurrent net, dY has dimensions of size 1 besides.
        gradient = x["dY"].shape
        if gradient[:1] != (wanted,) or math.prod(gradient) != math.prod(rows):
            _require_shape("dY", x["dY"], rows)
        return x["X"]

    def reference(x: Mapping[str, Array], op: OpView) -> Array:
        X, Y = x["X"], x["Y"]
        dY = x["dY"].reshape(Y.shape)
        ids, count = _segment_ids(kind, x, len(X), -1)
        _require_shape("Y", Spec(Y.shape, Y.dtype), (count, *X.shape[1:]))
        sizes = np.bincount(ids, minlength=count)[ids].reshape(-1, *[1] * (X.ndim - 1))
        slope = np.ones(X.shape)
        if reducer == "Max":
            slope = Y[ids] == X
        elif reducer.startswith("Log"):
            slope = np.exp(X.astype(np.float64) - Y[ids])
        if "Mean" in reducer:
            slope = slope / sizes
        return (dY[ids] * slope).astype(X.dtype)

    doc = f"""dX from the gradient dY of {_WHAT[reducer].rstrip(",")} over segments.

    X, dX: float (rows, ...), the reduced rows.  Y, dY: float (segments, ...).
    {_ABOUT[kind]}
    """
    if reducer == "Max":
        doc += "Every row that is equal to the largest takes all of the gradient.\n"
    _declare(name, inspect.cleandoc(doc), inputs, "dX", shape, reference)


_REDUCERS = ("Sum", "Mean", "WeightedSum")
for _kind in _ABOUT:
    for _sparse in (False, True):
        for _reducer in _REDUCERS:
            _declare_reduction(_kind, _reducer, _sparse)
            _declare_spread(f"{'Sparse' * _sparse}{_kind}{_reducer}Gradient", _kind, _reducer)
_declare_reduction("Lengths", "Max", False)
_declare_reduction("Lengths", "PositionalWeightedSum", True)
for _reducer in _REDUCERS:
    _inside = f"LengthsIndicesInGradient{_reducer}Gradient"
    _declare_spread(f"Sparse{_inside}", "Lengths", _reducer, "INDICES")
    if _reducer != "WeightedSum":
        _declare_spread(_inside, "Lengths", _reducer, "DATA")
_declare_weighted("LengthsWeightedSumWithMainInputGradient", False)
_declare_weighted("SparseLengthsWeightedSumWithMainInputGradient", True)
_declare_weighted("SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient", True)
_declare_forward(
    "LengthsMaxWithMainInputAndForwardOutputGradient", "Lengths", "Max", ("Y", "dY", _LENGTHS, "X")
)
for _reducer in ("Sum", "Mean", "Max", "LogSumExp", "LogMeanExp"):
    _range = f"SortedSegmentRange{_reducer}"
    _declare_reduction("SortedSegment", _reducer, False, _range)
    _declare_forward(f"{_range}Gradient", "SortedSegment", _reducer, ("X", "Y", "dY", _IDS))
