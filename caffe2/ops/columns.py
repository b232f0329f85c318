# mypy: disable-error-code="misc, no-any-return"
"""Operators that treat the rows or columns of a tensor differently, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import Float, Int, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INTS
from caffe2.ops.declaration import (
    GRADIENT_NOT_IMPLEMENTED,
    NO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
    same_as,
)
from caffe2.ops.mapping import each
from caffe2.ops.shapes import canonical_axis, require_rank, require_same_shape, split_at

_AXIS = {"axis": Int(1)}


def _columns(X: Spec, op: OpView) -> int:
    return split_at(X.shape, canonical_axis(op.args.axis, len(X.shape)))[1]


def _require_length(name: str, spec: Spec, length: int, what: str) -> None:
    if math.prod(spec.shape) != length:
        problem = f"has shape {spec.shape}; {length} elements are needed, one for each {what}"
        raise OperatorError(name, problem)


@operator(
    "ElementwiseLinear",
    inputs="X w b",
    outputs="Y",
    args=_AXIS,
    types={"X": FLOAT, "w": FLOAT, "b": FLOAT},
)
class ElementwiseLinear:
    """Y = X * w + b, each column with a weight and a bias of its own.

    X, Y: float tensors of one shape, seen as a matrix: the dimensions from `axis` on are columns.
    w, b: float vectors, one value for each column.
    axis: -rank <= axis < rank.
    """

    def shape(X: Spec, w: Spec, b: Spec, op: OpView) -> Spec:
        columns = _columns(X, op)
        for name, spec in (("w", w), ("b", b)):
            require_rank(name, spec, 1)
            _require_length(name, spec, columns, "column")
        return X

    def reference(X: Array, w: Array, b: Array) -> Array:
        x = X.reshape(-1, w.size) if w.size else X.reshape(0, 0)
        return each(lambda x, w, b: x * w + b, X, x, w, b).reshape(X.shape)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.grad(0), op.input(0), op.input(1)]
        outputs = [op.input_grad(index) for index in range(3)]
        return op.make("ElementwiseLinearGradient", inputs, outputs)


@operator(
    "ElementwiseLinearGradient",
    inputs="dY X w",
    outputs="dX dw db",
    args=_AXIS,
    types={"dY": FLOAT, "X": FLOAT, "w": FLOAT},
)
class ElementwiseLinearGradient:
    """dX = dY * w; dw = the sum of dY * X and db = the sum of dY over each column: the gradients of
    ElementwiseLinear.

    dY, X, dX: float tensors of one shape.  w, dw, db, axis: as for ElementwiseLinear.
    """

    def shape(dY: Spec, X: Spec, w: Spec, op: OpView) -> tuple[Spec, Spec, Spec]:
        require_same_shape("dY", dY, "X", X)
        require_rank("w", w, 1)
        _require_length("w", w, _columns(X, op), "column")
        return X, w, w

    def reference(dY: Array, X: Array, w: Array) -> tuple[Array, Array, Array]:
        shape = (-1, w.size) if w.size else (0, 0)
        dy, x = dY.reshape(shape).astype(np.float64), X.reshape(shape).astype(np.float64)
        found = ((dy * w).reshape(X.shape), (dy * x).sum(axis=0), dy.sum(axis=0))
        dX, dw, db = (array.astype(X.dtype) for array in found)
        return dX, dw, db


@operator(
    "RowMul",
    inputs="mat w",
    outputs="output",
    types={"mat": FLOAT, "w": FLOAT},
)
class RowMul:
    """output = mat with each row multiplied by a number of its own.

    mat, output: float tensors of one shape; a row is an index of the first dimension.
    w: float tensor with one element for each row.
    """

    def shape(mat: Spec, w: Spec) -> Spec:
        if not mat.shape:
            raise OperatorError("mat", "is a scalar; one dimension at least is needed")
        _require_length("w", w, mat.shape[0], "row")
        return mat

    def reference(mat: Array, w: Array) -> Array:
        return each(np.multiply, mat, mat, w.reshape(-1, *(1,) * (mat.ndim - 1)))

    def gradient(op: GradientContext) -> Any:
        parts = f"{op.input_grad(1)}before_aggregate"
        return [
            op.make("RowMul", [op.grad(0), op.input(1)], [op.input_grad(0)]),
            op.make("Mul", [op.grad(0), op.input(0)], [parts]),
            op.make("ReduceTailSum", [parts], [op.input_grad(1)]),
        ]


@operator("ReduceTailSum", inputs="mat", outputs="output", types={"mat": FLOAT})
class ReduceTailSum:
    """output = the sum of each row.

    mat: float tensor; a row is an index of its first dimension.  output: float vector.
    """

    def shape(mat: Spec) -> Spec:
        if not mat.shape:
            raise OperatorError("mat", "is a scalar; one dimension at least is needed")
        return Spec(mat.shape[:1], mat.dtype)

    def reference(mat: Array) -> Array:
        axes = tuple(range(1, mat.ndim))
        return mat.sum(axis=axes, dtype=np.float64).astype(mat.dtype)


@operator(
    "SquareRootDivide",
    inputs="data scale",
    outputs="output",
    types={"data": FLOAT, "scale": FLOAT | INTS},
    inplace=[(0, 0)],
)
class SquareRootDivide:
    """output = each row of data divided by the square root of its scale; a scale of 0 divides by 1.

    data, output: float tensors of one shape; a row is an index of the first dimension.
    scale: float, int32 or int64 vector, one value >= 0 for each row.
    """

    def shape(data: Spec, scale: Spec) -> Spec:
        require_rank("scale", scale, 1)
        if data.shape[:1] != scale.shape:
            raise OperatorError("scale", f"has shape {scale.shape}; data has {data.shape}")
        return data

    def reference(data: Array, scale: Array) -> Array:
        negative = np.flatnonzero(~(scale >= 0))
        if negative.size:
            place = int(negative[0])
            raise OperatorError("scale", f"is {scale[place]} at element {place}; 0 is the least")
        root = np.sqrt(np.where(scale == 0, 1, scale).astype(np.float64))
        return each(np.divide, data, data, root.reshape(-1, *(1,) * (data.ndim - 1)))

    def gradient(op: GradientContext) -> Any:
        return op.make("SquareRootDivide", [op.grad(0), op.input(1)], [op.input_grad(0)])


_LEAST = 1e-6


@operator(
    "BatchBoxCox",
    inputs="data lambda1 lambda2",
    outputs="output",
    args={"min_block_size": Int(256, min=0)},
    types=dict.fromkeys(("data", "lambda1", "lambda2"), FLOAT | DOUBLE),
    inplace=[(0, 0)],
)
class BatchBoxCox:
    """The Box-Cox transform (Box and Cox, 1964) of each column with parameters of its own:

    output = ((max(data + lambda2, 1e-6))^lambda1 - 1) / lambda1, or its logarithm for lambda1 = 0.

    data, output: float or double tensors of one shape, seen as a matrix: the dimensions from 1 on
    are columns.  lambda1, lambda2: of the same type, one value for each column.
    min_block_size: without meaning here.
    """

    gradient = GRADIENT_NOT_IMPLEMENTED

    def shape(data: Spec, lambda1: Spec, lambda2: Spec) -> Spec:
        if not data.shape:
            raise OperatorError("data", "is a scalar; one dimension at least is needed")
        columns = math.prod(data.shape[1:])
        for name, spec in (("lambda1", lambda1), ("lambda2", lambda2)):
            _require_length(name, spec, columns, "column")
            if spec.dtype != data.dtype:
                raise OperatorError(name, f"is {spec.dtype}; data is {data.dtype}")
        return data

    def reference(data: Array, lambda1: Array, lambda2: Array) -> Array:
        def transform(x: Array, first: Array, second: Array) -> Array:
            shifted = np.maximum(x + second, _LEAST)
            power = np.expm1(first * np.log(shifted)) / np.where(first == 0, 1, first)
            return np.where(first == 0, np.log(shifted), power)

        columns = (data.shape[0], lambda1.size)
        flat = (array.reshape(-1) for array in (lambda1, lambda2))
        return each(transform, data, data.reshape(columns), *flat).reshape(data.shape)


@operator("MakeTwoClass", inputs="X", outputs="Y", types={"X": FLOAT})
class MakeTwoClass:
    """Y = the probabilities 1 - X and X of two classes.

    X: float tensor.  Y: float, with a last dimension of 2 more.
    """

    def shape(X: Spec) -> Spec:
        return Spec((*X.shape, 2), X.dtype)

    def reference(X: Array) -> Array:
        return each(lambda x: np.stack([1 - x, x], axis=-1), X, X)

    def gradient(op: GradientContext) -> Any:
        return op.make("MakeTwoClassGradient", [op.grad(0)], [op.input_grad(0)])


@operator("MakeTwoClassGradient", inputs="dY", outputs="dX", types={"dY": FLOAT})
class MakeTwoClassGradient:
    """dX = dY[..., 1] - dY[..., 0]: the gradient of MakeTwoClass.

    dY: float tensor with a last dimension of 2.  dX: float, without it.
    """

    def shape(dY: Spec) -> Spec:
        if dY.shape[-1:] != (2,):
            raise OperatorError("dY", f"has shape {dY.shape}; the last dimension must be 2")
        return Spec(dY.shape[:-1], dY.dtype)

    def reference(dY: Array) -> Array:
        return each(lambda dy: dy[..., 1] - dy[..., 0], dY, dY)


@operator(
    "StumpFunc",
    inputs="X",
    outputs="Y",
    args={"threshold": Float(0.0), "low_value": Float(0.0), "high_value": Float(0.0)},
    types={"X": FLOAT},
    shape=same_as("X"),
)
class StumpFunc:
    """Y = low_value where X <= threshold, else high_value, element by element.

    X, Y: float tensors of one shape, any.
    """

    gradient = NO_GRADIENT

    def reference(X: Array, op: OpView) -> Array:
        low, high = np.float32(op.args.low_value), np.float32(op.args.high_value)
        return np.where(np.float32(op.args.threshold) >= X, low, high).astype(X.dtype)


@operator(
    "StumpFuncIndex",
    inputs="X",
    outputs="Index_Low Index_High",
    args={"threshold": Float(0.0)},
    types={"X": FLOAT},
)
class StumpFuncIndex:
    """Index_Low = where X <= threshold, Index_High = all other places.

    X: float tensor of any shape.  Index_Low, Index_High: int64 vectors of places in X, row by row,
    in rising order.
    """

    gradient = NO_GRADIENT

    def shape(X: Spec) -> tuple[None, None]:
        return None, None

    def reference(X: Array, op: OpView) -> tuple[Array, Array]:
        low = np.float32(op.args.threshold) >= X.reshape(-1)
        return np.flatnonzero(low).astype(np.int64), np.flatnonzero(~low).astype(np.int64)
