# mypy: disable-error-code="misc, no-any-return"
"""Reductions over any axes: sums, means, maxima, minima and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Ints, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INTS, TypeSet
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import canonical_axis, require_same_types, size

AXES_ARGS = {"axes": Ints(), "keepdims": Bool(True)}


def reduced_axes(op: OpView, rank: int) -> tuple[int, ...]:
    """The axes of the argument `axes`, counted from the front; all when there are none."""
    named = {canonical_axis(axis, rank, "axes") for axis in op.args.axes}
    return tuple(sorted(named)) if op.args.axes else tuple(range(rank))


def kept_shape(X: Spec, op: OpView) -> tuple[int, ...]:
    """The shape of the result."""
    axes = reduced_axes(op, len(X.shape))
    ones = tuple(1 if axis in axes else dim for axis, dim in enumerate(X.shape))
    if op.args.keepdims:
        return ones
    return tuple(dim for axis, dim in enumerate(X.shape) if axis not in axes)


def widened(X: Array) -> Array:
    return X.astype(np.float64) if X.dtype.kind == "f" else X


def spread(Y: Array, like: Array, op: OpView) -> Array:
    """A result, shaped to be broadcast with what was reduced."""
    axes = reduced_axes(op, like.ndim)
    return Y.reshape([1 if axis in axes else dim for axis, dim in enumerate(like.shape)])


def count(X: Array, op: OpView) -> int:
    """How many elements are reduced to one; at least 1."""
    axes = reduced_axes(op, X.ndim)
    return max(1, int(np.prod([X.shape[axis] for axis in axes], dtype=np.int64)))


def limit(X: Array, largest: bool) -> Any:
    limits: Any = np.finfo(X.dtype) if X.dtype.kind == "f" else np.iinfo(X.dtype)
    return limits.max if largest else limits.min


def _max(X: Array, axes: tuple[int, ...], op: OpView) -> Array:
    if X.size == 0:
        return np.sum(X, axis=axes, keepdims=True) + limit(X, largest=False)
    return np.max(X, axis=axes, keepdims=True)


def _min(X: Array, axes: tuple[int, ...], op: OpView) -> Array:
    if X.size == 0:
        return np.sum(X, axis=axes, keepdims=True) + limit(X, largest=True)
    return np.min(X, axis=axes, keepdims=True)


def _sum(X: Array, axes: tuple[int, ...], op: OpView) -> Array:
    return np.sum(widened(X), axis=axes, keepdims=True)


def _declare(
    name: str, equation: str, types: TypeSet, compute: Any, gradient_doc: str, derivative: Any
) -> None:
    """`name` and its gradient; derivative(X, Y, op) is what dY is multiplied with."""
    type_text = "float or double" if types == FLOAT | DOUBLE else "float, double, int32 or int64"

    class Reduce:
        def shape(X: Spec, op: OpView) -> Spec:
            return Spec(kept_shape(X, op), X.dtype)

        def reference(X: Array, op: OpView) -> Array:
            found = compute(X, reduced_axes(op, X.ndim), op)
            return found.astype(X.dtype).reshape(kept_shape(Spec(X.shape, X.dtype), op))

        def gradient(op: GradientContext) -> Any:
            inputs = [op.grad(0), op.input(0), op.output(0)]
            return op.make(f"{name}Gradient", inputs, [op.input_grad(0)])

    class Gradient:
        def shape(dY: Spec, X: Spec, Y: Spec, op: OpView) -> Spec:
            require_same_types((dY, X, Y), op)
            expected = size(Spec(kept_shape(X, op), X.dtype))
            for subject, spec in (("dY", dY), ("Y", Y)):
                if size(spec) != expected:
                    problem = f"has shape {spec.shape}; {expected} elements are needed"
                    raise OperatorError(subject, problem)
            return X

        def reference(dY: Array, X: Array, Y: Array, op: OpView) -> Array:
            factor = derivative(widened(X), widened(spread(Y, X, op)), op)
            return np.asarray(spread(dY, X, op) * factor).astype(X.dtype)

    Reduce.__doc__ = f"""{equation}, over some axes.

    X: {type_text}, any shape.  Y: the same type.
    axes: which axes are reduced, negative ones counted from the back; all when there are none.
    keepdims: whether Y has them as dimensions of 1, or not at all.
    """
    Gradient.__doc__ = f"""dX = {gradient_doc}: the gradient of {name}.

    dY, Y: as many elements as the output of {name}, with or without the reduced axes.
    X, dX: {type_text}, one shape; dY and Y have their type.
    """
    operator(name, inputs="X", outputs="Y", args=AXES_ARGS, types={"X": types})(Reduce)
    operator(
        f"{name}Gradient",
        inputs="dY X Y",
        outputs="dX",
        args=AXES_ARGS,
        types={"dY": types, "X": types, "Y": types},
    )(Gradient)


_ALL = FLOAT | DOUBLE | INTS
_declare(
    "ReduceSum",
    "Y = the sum of X",
    _ALL,
    _sum,
    "dY, repeated",
    lambda X, Y, op: np.ones_like(X),
)
_declare(
    "ReduceMean",
    "Y = the mean of X (0 of no elements)",
    FLOAT | DOUBLE,
    lambda X, axes, op: _sum(X, axes, op) / count(X, op),
    "dY / (number of elements that were reduced to one), repeated",
    lambda X, Y, op: np.ones_like(X) / count(X, op),
)
_declare(
    "ReduceMax",
    "Y = the largest of X (the lowest finite number of no elements; NaN when there is one)",
    _ALL,
    _max,
    "dY where X = Y, else 0 (all of several largest ones count)",
    lambda X, Y, op: np.equal(X, Y),
)
_declare(
    "ReduceMin",
    "Y = the smallest of X (the largest finite number of no elements; NaN when there is one)",
    _ALL,
    _min,
    "dY where X = Y, else 0 (all of several smallest ones count)",
    lambda X, Y, op: np.equal(X, Y),
)
_declare(
    "ReduceL1",
    "Y = the sum of |X|",
    FLOAT | DOUBLE,
    lambda X, axes, op: _sum(np.abs(X), axes, op),
    "dY * sign(X)",
    lambda X, Y, op: np.sign(X),
)
_declare(
    "ReduceL2",
    "Y = sqrt(the sum of X^2)",
    FLOAT | DOUBLE,
    lambda X, axes, op: np.sqrt(_sum(widened(X) ** 2, axes, op)),
    "dY * X / Y, 0 where Y is 0",
    lambda X, Y, op: np.where(Y == 0, 0, X / np.where(Y == 0, 1, Y)),
)
