# mypy: disable-error-code="misc, no-any-return"
"""Distances and products of rows: DotProduct, CosineSimilarity, L1Distance, SquaredL2Distance,
and the product of rows of different lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, OperatorError
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_same_shape, require_same_size, split_at

# No norm counts as less than its root.
_SMALLEST = 1e-12


def _rows(X: Array) -> Array:
    """X as a matrix in float64, a row for each element of the first dimension."""
    rows = X.shape[0] if X.ndim else 1
    columns = int(np.prod(X.shape[1:], dtype=np.int64))
    return X.astype(np.float64).reshape(rows, columns)


def _norms(x: Array) -> Array:
    """The norm of each row, as a column."""
    return np.sqrt(np.maximum((x * x).sum(axis=1, keepdims=True), _SMALLEST))


def _cosine(x: Array, y: Array) -> Array:
    return (x * y).sum(axis=1, keepdims=True) / (_norms(x) * _norms(y))


def _cosine_gradient(x: Array, y: Array) -> tuple[Array, Array]:
    product, nx, ny = (x * y).sum(axis=1, keepdims=True), _norms(x), _norms(y)
    return (
        y / (nx * ny) - x * product / (nx**3 * ny),
        x / (nx * ny) - y * product / (nx * ny**3),
    )


def _declare(name: str, equation: str, compute: Any, gradient_doc: str, derivative: Any) -> None:
    """`name` and its gradient; derivative(x, y) is what dZ is multiplied with for X and Y."""

    class Distance:
        __doc__ = f"""{equation} for each row.

    X, Y: float of one shape (N, ...), or scalars (N = 1).  Z: float (N,).
    """

        def shape(X: Spec, Y: Spec) -> Spec:
            require_same_shape("Y", Y, "X", X)
            return Spec(X.shape[:1] or (1,), X.dtype)

        def reference(X: Array, Y: Array) -> Array:
            return compute(_rows(X), _rows(Y)).astype(X.dtype).reshape(-1)

        def gradient(op: GradientContext) -> Any:
            inputs = [op.input(0), op.input(1), op.grad(0)]
            return op.make(f"{name}Gradient", inputs, [op.input_grad(0), op.input_grad(1)])

    class Gradient:
        __doc__ = f"""{gradient_doc}: the gradient of {name}.

    X, Y: as there.  dZ: float (N,).  dX, dY: float, like X.
    """

        def shape(X: Spec, Y: Spec, dZ: Spec) -> tuple[Spec, Spec]:
            require_same_shape("Y", Y, "X", X)
            require_same_size("dZ", dZ, "the result", Spec(X.shape[:1], X.dtype))
            return X, Y

        def reference(X: Array, Y: Array, dZ: Array) -> tuple[Array, Array]:
            dx, dy = derivative(_rows(X), _rows(Y))
            dz = dZ.astype(np.float64).reshape(-1, 1)
            return (
                (dz * dx).astype(X.dtype).reshape(X.shape),
                (dz * dy).astype(X.dtype).reshape(X.shape),
            )

    types = {"X": FLOAT, "Y": FLOAT}
    operator(name, inputs="X Y", outputs="Z", types=types)(Distance)
    operator(f"{name}Gradient", inputs="X Y dZ", outputs="dX dY", types={**types, "dZ": FLOAT})(
        Gradient
    )


_declare(
    "DotProduct",
    "Z = sum(X * Y)",
    lambda x, y: (x * y).sum(axis=1),
    "dX = dZ * Y, dY = dZ * X",
    lambda x, y: (y, x),
)
_declare(
    "SquaredL2Distance",
    "Z = sum((X - Y)^2) / 2",
    lambda x, y: ((x - y) ** 2).sum(axis=1) / 2,
    "dX = dZ * (X - Y), dY = -dX",
    lambda x, y: (x - y, y - x),
)
_declare(
    "L1Distance",
    "Z = sum(|X - Y|)",
    lambda x, y: np.abs(x - y).sum(axis=1),
    "dX = dZ * sign(X - Y), dY = -dX",
    lambda x, y: (np.sign(x - y), np.sign(y - x)),
)
_declare(
    "CosineSimilarity",
    "Z = sum(X * Y) / (|X| |Y|), with norms of at least 1e-6,",
    _cosine,
    "dX = dZ * (Y / (|X| |Y|) - X * sum(X * Y) / (|X|^3 |Y|)), dY likewise",
    _cosine_gradient,
)


_PADDING = {"pad_value": Float(0.0), "replicate": Bool(False)}


def _check_padded(X: Spec, Y: Spec, op: OpView) -> None:
    if not X.shape or len(X.shape) != len(Y.shape) or X.shape[0] != Y.shape[0]:
        problem = (
            f"has shape {Y.shape}; equally many dimensions and rows as in {X.shape} are needed"
        )
        raise OperatorError("Y", problem)
    small, large = sorted((split_at(X.shape, 1)[1], split_at(Y.shape, 1)[1]))
    if op.args.replicate and large % max(small, 1) + (small == 0 < large):
        problem = f"is 1; rows of {large} elements are no multiple of rows of {small}"
        raise OperatorError("argument 'replicate'", problem)


def _fill(rows: Array, columns: int, op: OpView) -> Array:
    """Rows of at least so many columns: replicated, or padded."""
    missing = columns - rows.shape[1]
    if missing <= 0:
        return rows
    if op.args.replicate:
        return np.tile(rows, columns // rows.shape[1])
    return np.pad(rows, ((0, 0), (0, missing)), constant_values=op.args.pad_value)


def _padded_pair(X: Array, Y: Array, op: OpView) -> tuple[Array, Array]:
    x, y = _rows(X), _rows(Y)
    return _fill(x, y.shape[1], op), _fill(y, x.shape[1], op)


@operator(
    "DotProductWithPadding",
    inputs="X Y",
    outputs="Z",
    args=_PADDING,
    types={"X": FLOAT, "Y": FLOAT},
)
class DotProductWithPadding:
    """Z = sum(X * Y) for each row, where the shorter rows are filled up with `pad_value`.

    X: float (N, ...).  Y: float (N, ...) with as many dimensions as X.  Z: float (N,).
    replicate: the shorter row is repeated instead; the longer one must be a multiple of it.
    """

    def shape(X: Spec, Y: Spec, op: OpView) -> Spec:
        _check_padded(X, Y, op)
        return Spec(X.shape[:1], X.dtype)

    def reference(X: Array, Y: Array, op: OpView) -> Array:
        x, y = _padded_pair(X, Y, op)
        return (x * y).sum(axis=1).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.grad(0)]
        outputs = [op.input_grad(0), op.input_grad(1)]
        return op.make("DotProductWithPaddingGradient", inputs, outputs)


@operator(
    "DotProductWithPaddingGradient",
    inputs="X Y dZ",
    outputs="dX dY",
    args=_PADDING,
    types={"X": FLOAT, "Y": FLOAT, "dZ": FLOAT},
)
class DotProductWithPaddingGradient:
    """dX = dZ * Y, dY = dZ * X with rows filled up: the gradient of DotProductWithPadding.

    X, Y: as there.  dZ: float (N,).  dX, dY: float with the shapes of X and Y.
    """

    def shape(X: Spec, Y: Spec, dZ: Spec, op: OpView) -> tuple[Spec, Spec]:
        _check_padded(X, Y, op)
        require_same_size("dZ", dZ, "the result", Spec(X.shape[:1], X.dtype))
        return X, Y

    def reference(X: Array, Y: Array, dZ: Array, op: OpView) -> tuple[Array, Array]:
        x, y = _padded_pair(X, Y, op)
        dz = dZ.astype(np.float64).reshape(-1, 1)

        def gradient(own: Array, other: Array) -> Array:
            columns = split_at(own.shape, 1)[1]
            d = dz * other
            if op.args.replicate and columns:
                d = d.reshape(len(d), d.shape[1] // columns, columns).sum(axis=1)
            return d[:, :columns].astype(own.dtype).reshape(own.shape)

        return gradient(X, y), gradient(Y, x)
