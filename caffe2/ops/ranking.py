# mypy: disable-error-code="misc, no-any-return"
"""The largest and smallest elements, and distinct ones: TopK, FlexibleTopK, ArgMax, Unique, ..."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Int, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT64, INTS
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import (
    canonical_axis,
    require_dimensions,
    require_rank,
    require_same_shape,
    require_single,
    size,
)

_INT64 = np.dtype(np.int64)
_TOP_ARGS = {"k": Int(-1), "axis": Int(-1)}


def _top_count(op: OpView, k: Array | None) -> int:
    count = op.args.k if k is None else int(k.reshape(()))
    if count < 1:
        raise OperatorError("argument 'k'" if k is None else "k", f"is {count}; it is at least 1")
    return count


@operator(
    "TopK",
    inputs="X k?",
    outputs="Values Indices Flattened_indices?",
    args=_TOP_ARGS,
    types={"X": FLOAT, "k": INT64},
)
class TopK:
    """Values = the k largest elements of X along an axis, the largest first.

    X: float, at least 1-d.  k: at least 1, the argument or an int64 input with one element.
    Values, Indices (int64): the shape of X with k along the axis; of equal elements the first
    comes first, and NaN last.  Where X has fewer than k, the rest is 0 with index -1.
    Flattened_indices: int64, 1-d, the places of the values in X seen as 1-d, and -1 for the rest.
    """

    def shape(X: Spec, k: Spec | None, op: OpView) -> tuple[Spec | None, ...]:
        axis = canonical_axis(op.args.axis, len(X.shape))
        if k is not None:
            require_single("k", k)
            return None, None, None
        shape = (*X.shape[:axis], _top_count(op, None), *X.shape[axis + 1 :])
        flat = Spec((math.prod(shape),), _INT64)
        return Spec(shape, X.dtype), Spec(shape, _INT64), flat

    def reference(X: Array, k: Array | None, op: OpView) -> tuple[Array, Array, Array]:
        axis = canonical_axis(op.args.axis, X.ndim)
        count, size = _top_count(op, k), X.shape[axis]
        found = min(count, size)
        order = np.argsort(-X, axis=axis, kind="stable").take(range(found), axis=axis)
        values = np.take_along_axis(X, order, axis=axis)
        places = np.arange(X.size).reshape(X.shape)
        flat = np.take_along_axis(places, order, axis=axis)
        rest = [(0, count - found if place == axis else 0) for place in range(X.ndim)]
        return (
            np.pad(values, rest),
            np.pad(order, rest, constant_values=-1).astype(_INT64),
            np.pad(flat, rest, constant_values=-1).reshape(-1).astype(_INT64),
        )

    def gradient(op: GradientContext) -> Any:
        inputs = [op.grad(0), op.output(1), op.input(0)]
        return op.make("TopKGradient", inputs, [op.input_grad(0)])


@operator(
    "TopKGradient",
    inputs="dValues Indices X",
    outputs="dX",
    args=_TOP_ARGS,
    types={"dValues": FLOAT, "Indices": INT64},
)
class TopKGradient:
    """dX = dValues where TopK took its values, and zero elsewhere.

    dValues: float.  Indices: int64, the shape of dValues, -1 <= i < size of the axis; -1 is left
    out.  X: any type; dX: float with the shape of X.
    """

    def shape(dValues: Spec, Indices: Spec, X: Spec, op: OpView) -> Spec:
        require_same_shape("Indices", Indices, "dValues", dValues)
        axis = canonical_axis(op.args.axis, len(X.shape))
        others = X.shape[:axis], X.shape[axis + 1 :]
        if len(dValues.shape) != len(X.shape) or others != (
            dValues.shape[:axis],
            dValues.shape[axis + 1 :],
        ):
            raise OperatorError("dValues", f"has shape {dValues.shape}; X has {X.shape}")
        return Spec(X.shape, dValues.dtype)

    def reference(dValues: Array, Indices: Array, X: Array, op: OpView) -> Array:
        axis = canonical_axis(op.args.axis, X.ndim)
        size = X.shape[axis]
        if Indices.size and not (Indices.min() >= -1 and Indices.max() < size):
            problem = f"holds {Indices.min()} to {Indices.max()}; allowed is [-1, {size})"
            raise OperatorError("Indices", problem)
        padded = list(X.shape)
        padded[axis] += 1  # where those go that are left out
        rows = np.zeros(padded, dtype=dValues.dtype)
        np.put_along_axis(rows, np.where(Indices < 0, size, Indices), dValues, axis=axis)
        return rows.take(range(size), axis=axis)


def _counts(X: Spec, K: Spec) -> None:
    require_dimensions("X", X, 1)
    if size(K) != math.prod(X.shape[:-1]):
        problem = f"has shape {K.shape}; needed is one value for each row of X, {X.shape}"
        raise OperatorError("K", problem)


def _require_counts(K: Array, columns: int) -> list[int]:
    if K.size and not (K.min() >= 1 and K.max() <= columns):
        problem = f"holds {K.min()} to {K.max()}; allowed is 1 <= k <= {columns}"
        raise OperatorError("K", problem)
    return [int(count) for count in K.reshape(-1)]


@operator(
    "FlexibleTopK",
    inputs="X K",
    outputs="Values Indices",
    types={"X": FLOAT, "K": INT64},
)
class FlexibleTopK:
    """Values = the K[r] largest elements of each row r of X, the largest first, row after row.

    X: float, at least 1-d; a row lies along the last dimension.
    K: int64, one for each row, 1 <= k <= elements of a row.
    Values: float, 1-d.  Indices: int64, 1-d, their places in the row; of equal elements the first
    comes first, and NaN last.
    """

    def shape(X: Spec, K: Spec) -> tuple[None, None]:
        _counts(X, K)
        return None, None

    def reference(X: Array, K: Array) -> tuple[Array, Array]:
        rows = X.reshape(K.size, X.shape[-1])
        counts = _require_counts(K, X.shape[-1])
        orders = [
            np.argsort(-row, kind="stable")[:count] for row, count in zip(rows, counts, strict=True)
        ]
        values = [row[order] for row, order in zip(rows, orders, strict=True)]
        indices = np.concatenate([np.zeros(0, _INT64), *orders]).astype(_INT64)
        return np.concatenate([rows[:0].reshape(-1), *values]), indices

    def gradient(op: GradientContext) -> Any:
        made = [op.input(0), op.input(1), op.grad(0), op.output(1)]
        return op.make("FlexibleTopKGradient", made, [op.input_grad(0)])


@operator(
    "FlexibleTopKGradient",
    inputs="X K dValues Indices",
    outputs="dX",
    types={"K": INT64, "dValues": FLOAT, "Indices": INT64},
)
class FlexibleTopKGradient:
    """dX = dValues where FlexibleTopK took its values, and 0 elsewhere.

    X: any type.  K, Indices: as FlexibleTopK takes and gives them.  dValues: float, 1-d, as many
    as K sums to.  dX: float with the shape of X.
    """

    def shape(X: Spec, K: Spec, dValues: Spec, Indices: Spec) -> Spec:
        _counts(X, K)
        require_rank("dValues", dValues, 1)
        require_same_shape("Indices", Indices, "dValues", dValues)
        return Spec(X.shape, dValues.dtype)

    def reference(X: Array, K: Array, dValues: Array, Indices: Array) -> Array:
        columns = X.shape[-1]
        counts = _require_counts(K, columns)
        if sum(counts) != len(dValues):
            raise OperatorError("dValues", f"has {len(dValues)} values; K sums to {sum(counts)}")
        if Indices.size and not (Indices.min() >= 0 and Indices.max() < columns):
            problem = f"holds {Indices.min()} to {Indices.max()}; rows have {columns} elements"
            raise OperatorError("Indices", problem)
        dX = np.zeros((K.size, columns), dtype=dValues.dtype)
        dX[np.repeat(np.arange(K.size), counts), Indices] = dValues
        return dX.reshape(X.shape)


def _declare_arg(name: str, what: str) -> None:
    best = np.argmax if name == "ArgMax" else np.argmin

    class Arg:
        gradient = SHOULD_NOT_DO_GRADIENT

        def shape(X: Spec, op: OpView) -> Spec:
            axis = canonical_axis(op.args.axis, len(X.shape))
            rows = math.prod(X.shape[:axis] + X.shape[axis + 1 :])
            if X.shape[axis] == 0 and rows > 0:
                raise OperatorError("X", f"has shape {X.shape}; axis {axis} has no elements")
            one = [1] if op.args.keepdims else []
            return Spec((*X.shape[:axis], *one, *X.shape[axis + 1 :]), _INT64)

        def reference(X: Array, op: OpView) -> Array:
            axis = canonical_axis(op.args.axis, X.ndim)
            if X.size == 0:
                one = [1] if op.args.keepdims else []
                return np.zeros((*X.shape[:axis], *one, *X.shape[axis + 1 :]), _INT64)
            return np.asarray(best(X, axis=axis, keepdims=op.args.keepdims), dtype=_INT64)

    Arg.__doc__ = f"""Indices = the place of the {what} element along an axis.

    X: float, double, int32 or int64, at least 1-d.  axis: negative from the end.
    Indices: int64, the shape of X with 1 along the axis, or without it when keepdims is False; of
    equal elements the first, and of NaNs the first before all else.
    """
    operator(
        name,
        inputs="X",
        outputs="Indices",
        args={"axis": Int(-1), "keepdims": Bool(True)},
        types={"X": FLOAT | DOUBLE | INTS},
    )(Arg)


_declare_arg("ArgMax", "largest")
_declare_arg("ArgMin", "smallest")


@operator(
    "Unique",
    inputs="indices",
    outputs="unique_indices remapping?",
    types={"indices": INTS},
)
class Unique:
    """unique_indices = the distinct numbers, in ascending order.

    indices: int32 or int64, 1-d.  unique_indices: the same type.
    remapping: int32 with the shape of indices, the place of each number in unique_indices.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(indices: Spec) -> tuple[None, Spec]:
        require_rank("indices", indices, 1)
        return None, Spec(indices.shape, np.dtype(np.int32))

    def reference(indices: Array) -> tuple[Array, Array]:
        unique, remapping = np.unique(indices, return_inverse=True)
        return unique, remapping.reshape(-1).astype(np.int32)
