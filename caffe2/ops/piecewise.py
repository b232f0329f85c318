# mypy: disable-error-code="misc, no-any-return"
"""Functions made of straight lines, and histograms that find their own bins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, Floats, Int, OperatorError, Str
from caffe2.ops.datatypes import DOUBLE, FLOAT
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_same_types, size


def _pieces(bounds: int, slopes: int, intercepts: int, groups: int) -> int:
    """Lines of each group; OperatorError unless the numbers fit."""
    pieces = slopes // max(groups, 1)
    fits = groups > 0 and pieces > 0 and slopes == groups * pieces == intercepts
    if not fits or bounds != groups * (pieces + 1):
        raise OperatorError(
            "",
            f"has {bounds} bounds, {slopes} slopes and {intercepts} intercepts for {groups}"
            " columns; one bound more than slopes is needed for each",
        )
    return pieces


def _columns(predictions: Spec, args: SimpleNamespace) -> int:
    shape = predictions.shape
    if args.binary:
        if len(shape) not in (1, 2) or (len(shape) == 2 and shape[1] not in (1, 2)):
            problem = f"has shape {shape}; with binary=1 needed is (N,), (N, 1) or (N, 2)"
            raise OperatorError("predictions", problem)
        return 1
    if len(shape) != 2:
        raise OperatorError("predictions", f"has shape {shape}; 2 dimensions are needed")
    return shape[1]


@operator(
    "PiecewiseLinearTransform",
    inputs="predictions bounds? slopes? intercepts?",
    outputs="transforms",
    args={
        "bounds": Floats(),
        "slopes": Floats(),
        "intercepts": Floats(),
        "binary": Bool(False),
    },
    types={"predictions": FLOAT, "bounds": FLOAT, "slopes": FLOAT, "intercepts": FLOAT},
)
class PiecewiseLinearTransform:
    """transforms = slope * x + intercept, with those of the piece that x lies in; x is cut off at
    the outer bounds.

    predictions: float (N, columns); each column has its own pieces.
    bounds: pieces + 1 for each column, rising; slopes, intercepts: `pieces` for each column.  All
    three are either arguments or float inputs (of any shape).  bounds[i] < x <= bounds[i + 1] is
    piece i.
    binary: one function for the second column of (N, 2), the probability of yes; the first column
    is 1 minus the result; or for all of (N,) or (N, 1).
    transforms: float, shaped as predictions.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        predictions: Spec,
        bounds: Spec | None,
        slopes: Spec | None,
        intercepts: Spec | None,
        op: OpView,
    ) -> Spec:
        given = [op.args.bounds, op.args.slopes, op.args.intercepts]
        groups = _columns(predictions, op.args)
        if intercepts is None or bounds is None or slopes is None:
            if len(op.inputs) != 1 or not all(given):
                raise OperatorError("", "needs bounds, slopes and intercepts, all as arguments")
            _pieces(len(given[0]), len(given[1]), len(given[2]), groups)
            return predictions
        if any(given):
            raise OperatorError("", "has bounds, slopes or intercepts as arguments and as inputs")
        _pieces(size(bounds), size(slopes), size(intercepts), groups)
        return predictions

    def reference(
        predictions: Array,
        bounds: Array | None,
        slopes: Array | None,
        intercepts: Array | None,
        op: OpView,
    ) -> Array:
        args = op.args
        groups = _columns(Spec(predictions.shape, predictions.dtype), args)
        parts: tuple[Any, ...] = (bounds, slopes, intercepts)
        if bounds is None:
            given = (args.bounds, args.slopes, args.intercepts)
            parts = tuple(np.asarray(part, np.float32) for part in given)
        limits, slope, intercept = (_rows(part, groups) for part in parts)
        if not (limits[:, 1:] >= limits[:, :-1]).all():
            raise OperatorError("bounds", f"holds {limits.tolist()}; they must rise")
        found = predictions.copy()
        width = predictions.shape[1] if predictions.ndim == 2 else 1
        columns = found.reshape(len(predictions), width)
        if args.binary and columns.shape[1] == 2:
            columns[:, 1] = _transform(columns[:, 1], limits[0], slope[0], intercept[0])
            columns[:, 0] = 1 - columns[:, 1]
        else:
            for k in range(columns.shape[1]):
                columns[:, k] = _transform(columns[:, k], limits[k], slope[k], intercept[k])
        return found


def _rows(part: Array, groups: int) -> Array:
    return np.asarray(part).reshape(groups, part.size // groups)


def _transform(x: Array, bounds: Array, slopes: Array, intercepts: Array) -> Array:
    cut = np.minimum(np.maximum(x, bounds[0]), bounds[-1])
    piece = np.clip(np.searchsorted(bounds, cut, side="left") - 1, 0, len(slopes) - 1)
    return slopes[piece] * cut + intercepts[piece]


@operator(
    "SelfBinningHistogram",
    inputs="X*",
    outputs="histogram_values histogram_counts",
    args={
        "num_bins": Int(0),
        "bin_spacing": Str("linear"),
        "logspacing_start": Float(1e-24),
        "logspace_start": Float(1e-24),
        "abs": Bool(False),
    },
    types={"X": FLOAT | DOUBLE},
)
class SelfBinningHistogram:
    """A histogram whose bins go from the smallest to the largest element.

    X: float or double, all of one type, any shapes, finite.
    num_bins: 1 at least.  bin_spacing: "linear" or "logarithmic".
    logspace_start: where logarithmic bins begin unless all is larger; what is smaller than the
    first bin counts there.
    abs: take absolute values.
    histogram_values: (num_bins + 1,), of the type of X: where the bins begin, and the end of the
    last one, which is 1e-4 of the range behind the largest element.
    histogram_counts: int64 (num_bins + 1,); the last one is 0.
    Where there is no range, as all elements are alike, they count in the first bin.
    logspacing_start: without effect, as in the original; scripts give it.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(*X: Spec, op: OpView) -> tuple[Spec, Spec]:
        require_same_types(X, op)
        if op.args.num_bins < 1:
            problem = f"is {op.args.num_bins}"
            text = "Number of bins must be greater than or equal to 1."
            raise OperatorError("argument 'num_bins'", f"{problem}. {text}")
        if op.args.bin_spacing not in ("linear", "logarithmic"):
            problem = f"is {op.args.bin_spacing!r}"
            text = "Bin spacing can be one of 'linear' or 'logarithmic'."
            raise OperatorError("argument 'bin_spacing'", f"{problem}. {text}")
        count = (op.args.num_bins + 1,)
        return Spec(count, X[0].dtype), Spec(count, np.dtype(np.int64))

    def reference(*X: Array, op: OpView) -> tuple[Array, Array]:
        bins, dtype = op.args.num_bins, X[0].dtype
        values = np.concatenate([x.reshape(-1) for x in X])
        counts = np.zeros(bins + 1, np.int64)
        if not values.size:
            return np.zeros(bins + 1, dtype), counts
        if not np.isfinite(values).all():
            raise OperatorError("X", "holds a number that is not finite")
        if op.args.abs:
            values = np.abs(values)
        low, high = float(values.min()), float(values.max())
        logarithmic = op.args.bin_spacing == "logarithmic"
        if logarithmic:
            low = max(low, float(np.float32(op.args.logspace_start)))
            high = max(low, high)
        end = high + (high - low) * 1e-4
        steps = np.arange(bins + 1) / bins
        edges = low * (end / low) ** steps if logarithmic else low + (end - low) * steps
        edges = edges.astype(dtype)
        edges[0], edges[-1] = low, end
        if edges[-1] <= values.max():
            counts[0] = values.size
        else:
            place = np.searchsorted(edges, values, side="right") - 1
            np.add.at(counts, np.maximum(place, 0), 1)
        return edges, counts
