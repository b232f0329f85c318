# mypy: disable-error-code="misc, no-any-return"
"""How values are spread: Histogram, AccumulateHistogram, Quantile, Percentile, BisectPercentile."""

from __future__ import annotations

import itertools

import numpy as np

from caffe2.ops.arguments import Bool, Float, Floats, Int, Ints, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT32, DataType, dtype_of
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank, require_same_types

_INT64 = dtype_of(DataType.INT64)


@operator(
    "Histogram",
    inputs="X*",
    outputs="histogram",
    args={"bin_edges": Floats(required=True)},
    types={"X": FLOAT | DOUBLE},
)
class Histogram:
    """How many elements of all inputs lie in each bin, bin_edges[i] <= x < bin_edges[i + 1].

    X: floats or doubles, all of one type, any shapes.  bin_edges: at least two, increasing.
    histogram: int64, one less than there are edges.  What lies in no bin, NaN too, is not counted.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(*X: Spec, op: OpView) -> Spec:
        require_same_types(X, op)
        edges = op.args.bin_edges
        if len(edges) < 2 or not all(a < b for a, b in itertools.pairwise(edges)):
            raise OperatorError("argument 'bin_edges'", f"is {edges}; needed are increasing edges")
        return Spec((len(edges) - 1,), _INT64)

    def reference(*X: Array, op: OpView) -> Array:
        edges = np.asarray(op.args.bin_edges, np.float32).astype(np.float64)
        counts = np.zeros(edges.size - 1, np.int64)
        for x in X:
            bins = np.searchsorted(edges, x.reshape(-1).astype(np.float64), side="right") - 1
            inside = (bins >= 0) & (bins < counts.size)
            counts += np.bincount(bins[inside], minlength=counts.size)
        return counts


@operator(
    "AccumulateHistogram",
    inputs="X",
    outputs="CurHist AccHist",
    args={
        "lower_bound": Float(0.0),
        "upper_bound": Float(1.0),
        "num_buckets": Int(1, min=1, max=2**24),
    },
    types={"X": FLOAT},
    kind="stateful",
)
class AccumulateHistogram:
    """How many elements are below lower_bound, in each of num_buckets buckets of equal width, and
    at or above upper_bound: in this run, and in all runs of the operator so far.

    X: float, any shape; NaN is not counted.  CurHist, AccHist: int64 (num_buckets + 2,).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(X: Spec, op: OpView) -> tuple[Spec, Spec]:
        spec = Spec((op.args.num_buckets + 2,), _INT64)
        return spec, spec

    def reference(X: Array, op: OpView) -> tuple[Array, Array]:
        lower, upper = np.float32(op.args.lower_bound), np.float32(op.args.upper_bound)
        buckets = op.args.num_buckets
        x = X[~np.isnan(X)]
        inside = x[(x >= lower) & (x < upper)]
        # In float32: which side of an edge an element is on depends on it.
        width = (upper - lower) / np.float32(buckets)
        places = np.clip(np.floor((inside - lower) / width), 0, buckets - 1).astype(np.int64)
        below = np.count_nonzero(x < lower)
        above = np.count_nonzero((x >= upper) & ~(x < lower))
        counts = np.asarray([below, *np.bincount(places, minlength=buckets), above], np.int64)
        return counts, counts.copy()


@operator(
    "Quantile",
    inputs="X*",
    outputs="quantile_value",
    args={
        "quantile": Float(required=True, min=0, max=1),
        "abs": Bool(True),
        "tol": Float(1e-3, min=0),
    },
    types={"X": FLOAT | DOUBLE},
)
class Quantile:
    """A value that ceil(quantile * N) of all N elements do not exceed, found by halving between the
    least and the largest one until it is met, or the ends low and high are as close as
    high - low <= tol * (|low| + |high|); then it is high.

    X: floats or doubles, all of one type, any shapes; at least one element, all finite.
    abs: of the absolute values.
    quantile_value: (1,), of the type of X.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(*X: Spec, op: OpView) -> Spec:
        require_same_types(X, op)
        return Spec((1,), X[0].dtype)

    def reference(*X: Array, op: OpView) -> Array:
        x = np.concatenate([each.reshape(-1) for each in X])
        if not x.size or not np.isfinite(x).all():
            raise OperatorError("X", "has no element, or one that is not finite")
        if op.args.abs:
            x = np.abs(x)
        wanted = int(np.ceil(np.float32(op.args.quantile) * np.float32(x.size)))
        tol = x.dtype.type(np.float32(op.args.tol))
        return np.asarray([_quantile(x, wanted, tol)], x.dtype)


def _quantile(x: Array, wanted: int, tol: float) -> float:
    """In the type of x: whether the middle is one of its values is a matter of rounding."""
    low, high = x.min(), x.max()
    if np.count_nonzero(x <= low) >= wanted:
        return low
    while high - low > tol * (abs(low) + abs(high)):
        middle = low / 2 + high / 2
        if middle in (low, high):
            break
        count = np.count_nonzero(x <= middle)
        if count == wanted:
            return middle
        if count > wanted:
            high = middle
        else:
            low = middle
    return high


def _check_increasing(name: str, raw: Array, lengths: Array) -> None:
    """OperatorError unless the lengths sum up to the samples and those of each feature increase
    or stay."""
    if (lengths < 0).any() or lengths.sum() != raw.size:
        raise OperatorError(name, f"holds {lengths.tolist()}; samples there are {raw.size}")
    ends = np.cumsum(lengths)
    for begin, end in zip(ends - lengths, ends, strict=True):
        part = raw[begin:end]
        if not (part[1:] >= part[:-1]).all() or np.isnan(part).any():
            problem = f"gives samples {part.tolist()} to a feature; they must not decrease"
            raise OperatorError(name, problem)


@operator(
    "Percentile",
    inputs="original_values value_to_pct lengths",
    outputs="percentile_values",
    types={"original_values": FLOAT, "value_to_pct": FLOAT, "lengths": INT32},
)
class Percentile:
    """The percentile of each value, from samples (value, percentile) of its feature.

    That of the first sample with this value; between two samples what lies on the line between
    them; 0 below all samples and for NaN, 1 above all and for a feature without samples.

    original_values: float (N, D).
    value_to_pct: float (M, 2), the samples of one feature after the other, their values not
        decreasing.  lengths: int32 (D,), the number of samples of each feature, M in all.
    percentile_values: float (N, D).
    """

    gradient = NO_GRADIENT

    def shape(original_values: Spec, value_to_pct: Spec, lengths: Spec) -> Spec:
        require_rank("original_values", original_values, 2)
        require_rank("value_to_pct", value_to_pct, 2)
        if value_to_pct.shape[1] != 2:
            problem = f"has shape {value_to_pct.shape}; 2 columns are needed"
            raise OperatorError("value_to_pct", problem)
        if lengths.shape != original_values.shape[1:]:
            problem = f"has shape {lengths.shape}; {original_values.shape[1:]} is needed"
            raise OperatorError("lengths", problem)
        return original_values

    def reference(original_values: Array, value_to_pct: Array, lengths: Array) -> Array:
        raw, pct = value_to_pct[:, 0], value_to_pct[:, 1].astype(np.float64)
        _check_increasing("lengths", raw, lengths)
        begins = np.cumsum(lengths) - lengths
        out = np.empty_like(original_values)
        for (row, feature), x in np.ndenumerate(original_values):
            begin, count = int(begins[feature]), int(lengths[feature])
            k = begin + int(np.count_nonzero(raw[begin : begin + count] < x))
            if k == begin + count:
                out[row, feature] = 1
            elif raw[k] == x:
                out[row, feature] = pct[k]
            elif k == begin:
                out[row, feature] = 0
            else:
                out[row, feature] = _between(x, raw[k - 1], raw[k], pct[k - 1], pct[k])
        return out


def _between(x: float, x0: float, x1: float, y0: float, y1: float) -> float:
    """The line through (x0, y0) and (x1, y1) at x."""
    return float(y0 + (float(x) - float(x0)) / (float(x1) - float(x0)) * (y1 - y0))


@operator(
    "BisectPercentile",
    inputs="raw_values",
    outputs="percentile",
    args={
        "percentile_raw": Floats(required=True),
        "percentile_mapping": Floats(required=True),
        "percentile_lower": Floats(required=True),
        "percentile_upper": Floats(required=True),
        "lengths": Ints(min=1, required=True),
    },
    types={"raw_values": FLOAT},
)
class BisectPercentile:
    """The percentile of each value, from samples of its feature that are given as arguments.

    percentile_mapping of the last sample with this value; between two samples what lies on the
    line from percentile_upper of the one below to percentile_lower of the one above; 0 below all
    samples, 1 above all; NaN for NaN.

    raw_values: float (N, D).  percentile: float (N, D).
    percentile_raw: the samples of one feature after the other, not decreasing.
    lengths: the number of samples of each of the D features.
    """

    gradient = NO_GRADIENT

    def shape(raw_values: Spec, op: OpView) -> Spec:
        require_rank("raw_values", raw_values, 2)
        raw, lengths = np.asarray(op.args.percentile_raw), np.asarray(op.args.lengths)
        for name in ("percentile_mapping", "percentile_lower", "percentile_upper"):
            count = len(getattr(op.args, name))
            if count != raw.size:
                problem = f"has {count} values; percentile_raw has {raw.size}"
                raise OperatorError(f"argument '{name}'", problem)
        _check_increasing("argument 'lengths'", raw, lengths)
        if raw_values.shape[1] != lengths.size:
            problem = f"has shape {raw_values.shape}; {lengths.size} columns are needed"
            raise OperatorError("raw_values", problem)
        return raw_values

    def reference(raw_values: Array, op: OpView) -> Array:
        raw, mapping, lower, upper = (
            np.asarray(getattr(op.args, f"percentile_{name}"), np.float32).astype(np.float64)
            for name in ("raw", "mapping", "lower", "upper")
        )
        lengths = np.asarray(op.args.lengths)
        begins = np.cumsum(lengths) - lengths
        out = np.empty_like(raw_values)
        for (row, feature), x in np.ndenumerate(raw_values):
            begin, end = int(begins[feature]), int(begins[feature] + lengths[feature])
            k = begin + int(np.count_nonzero(raw[begin:end] <= x))
            if np.isnan(x):
                out[row, feature] = x
            elif k > begin and raw[k - 1] == x:
                out[row, feature] = mapping[k - 1]
            elif k in (begin, end):
                out[row, feature] = k == end
            else:
                out[row, feature] = _between(x, raw[k - 1], raw[k], upper[k - 1], lower[k])
        return out
