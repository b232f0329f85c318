# mypy: disable-error-code="misc, no-any-return"
"""Activations: Relu, Sigmoid, Tanh, Softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Int
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator, same_as
from caffe2.ops.shapes import canonical_axis, require_same_shape


def _gradient_of_output(Y: Spec, dY: Spec) -> Spec:
    require_same_shape("dY", dY, "Y", Y)
    return Y


def _matrix(X: Array, axis: int) -> Array:
    """X as rows and columns; legacy: all dimensions from `axis` on are columns."""
    rows = int(np.prod(X.shape[:axis], dtype=np.int64))
    columns = int(np.prod(X.shape[axis:], dtype=np.int64))
    return X.reshape(rows, columns)


@operator(
    "Relu",
    inputs="X",
    outputs="Y",
    types={"X": FLOAT},
    inplace=[(0, 0)],
    shape=same_as("X"),
)
class Relu:
    """Y = max(X, 0), element by element.  NaN stays NaN.

    X, Y: float tensors of one shape, any.
    """

    def reference(X: Array) -> Array:
        return np.maximum(X, 0)

    def gradient(op: GradientContext) -> Any:
        return op.make("ReluGradient", [op.output(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "ReluGradient",
    inputs="Y dY",
    outputs="dX",
    types={"Y": FLOAT, "dY": FLOAT},
    inplace=[(1, 0)],
    shape=_gradient_of_output,
)
class ReluGradient:
    """dX = dY where Y > 0, else 0: the gradient of Relu from its output Y.

    Y, dY, dX: float tensors of one shape.
    """

    def reference(Y: Array, dY: Array) -> Array:
        return np.where(Y > 0, dY, np.zeros_like(dY))


@operator(
    "Sigmoid",
    inputs="X",
    outputs="Y",
    types={"X": FLOAT},
    inplace=[(0, 0)],
    shape=same_as("X"),
)
class Sigmoid:
    """Y = 1 / (1 + exp(-X)), element by element.

    X, Y: float tensors of one shape, any.
    """

    def reference(X: Array) -> Array:
        # exp of a negative number only: no overflow.
        small = np.exp(-np.abs(X.astype(np.float64)))
        return np.where(X < 0, small / (1 + small), 1 / (1 + small)).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("SigmoidGradient", [op.output(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "SigmoidGradient",
    inputs="Y dY",
    outputs="dX",
    types={"Y": FLOAT, "dY": FLOAT},
    inplace=[(1, 0)],
    shape=_gradient_of_output,
)
class SigmoidGradient:
    """dX = dY * Y * (1 - Y): the gradient of Sigmoid from its output Y.

    Y, dY, dX: float tensors of one shape.
    """

    def reference(Y: Array, dY: Array) -> Array:
        return (dY.astype(np.float64) * Y * (1 - Y.astype(np.float64))).astype(dY.dtype)


@operator(
    "Tanh",
    inputs="input",
    outputs="output",
    types={"input": FLOAT},
    inplace=[(0, 0)],
    shape=same_as("input"),
)
class Tanh:
    """output = tanh(input), element by element.

    input, output: float tensors of one shape, any.
    """

    def reference(input: Array) -> Array:
        return np.tanh(input.astype(np.float64)).astype(input.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("TanhGradient", [op.output(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "TanhGradient",
    inputs="Y dY",
    outputs="dX",
    types={"Y": FLOAT, "dY": FLOAT},
    inplace=[(1, 0)],
    shape=_gradient_of_output,
)
class TanhGradient:
    """dX = dY * (1 - Y^2): the gradient of Tanh from its output Y.

    Y, dY, dX: float tensors of one shape.
    """

    def reference(Y: Array, dY: Array) -> Array:
        return (dY.astype(np.float64) * (1 - Y.astype(np.float64) ** 2)).astype(dY.dtype)


@operator("Softmax", inputs="X", outputs="Y", args={"axis": Int(1)}, types={"X": FLOAT})
class Softmax:
    """Y = exp(X) / sum(exp(X)) over each row; the row's largest value is subtracted first.

    X, Y: float tensors of one shape with more than `axis` dimensions.  X is seen as a matrix: the
    dimensions from `axis` on are one row, so with axis=1 a (N, C, H, W) tensor is normalized over
    all C * H * W values, not over C.
    axis: -rank <= axis < rank.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        canonical_axis(op.args.axis, len(X.shape))
        return X

    def reference(X: Array, op: OpView) -> Array:
        rows = _matrix(X, canonical_axis(op.args.axis, X.ndim)).astype(np.float64)
        if rows.size == 0:
            return X.copy()
        with np.errstate(invalid="ignore"):
            powers = np.exp(rows - rows.max(axis=1, keepdims=True))
        return (powers / powers.sum(axis=1, keepdims=True)).astype(X.dtype).reshape(X.shape)

    def gradient(op: GradientContext) -> Any:
        return op.make("SoftmaxGradient", [op.output(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "SoftmaxGradient",
    inputs="Y dY",
    outputs="dX",
    args={"axis": Int(1)},
    types={"Y": FLOAT, "dY": FLOAT},
)
class SoftmaxGradient:
    """dX = Y * (dY - sum(Y * dY)) over each row: the gradient of Softmax from its output Y.

    Y, dY, dX: float tensors of one shape; `axis` as for Softmax.
    """

    def shape(Y: Spec, dY: Spec, op: OpView) -> Spec:
        canonical_axis(op.args.axis, len(Y.shape))
        require_same_shape("dY", dY, "Y", Y)
        return Y

    def reference(Y: Array, dY: Array, op: OpView) -> Array:
        axis = canonical_axis(op.args.axis, Y.ndim)
        y = _matrix(Y, axis).astype(np.float64)
        dy = _matrix(dY, axis).astype(np.float64)
        dx = y * (dy - (y * dy).sum(axis=1, keepdims=True))
        return dx.astype(dY.dtype).reshape(Y.shape)
