# mypy: disable-error-code="misc, no-any-return"
"""The largest and smallest elements, and distinct ones: TopK, ArgMax, ArgMin, Unique."""

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
from caffe2.ops.shapes import canonical_axis, require_rank, require_same_shape, require_single

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
