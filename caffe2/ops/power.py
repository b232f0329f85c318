# mypy: disable-error-code="misc, no-any-return"
"""Pow, and SumReduceLike, which sums its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Float, OperatorError
from caffe2.ops.broadcast import BROADCAST, legacy_shape, require_own_shapes, summed
from caffe2.ops.datatypes import DOUBLE, FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.mapping import each
from caffe2.ops.shapes import require_same_shape

_PLACE = {name: argument for name, argument in BROADCAST.items() if name != "broadcast"}


@operator(
    "Pow",
    inputs="X exponent?",
    outputs="Y",
    args={**BROADCAST, "exponent": Float()},
    types={"X": FLOAT, "exponent": FLOAT},
    inplace=[(0, 0), (1, 0)],
)
class Pow:
    """Y = X to the power of `exponent`, element by element; NaN where X < 0 and the exponent is no
    integer.

    X, Y: float tensors of one shape, any.
    exponent: an argument, one number for all; or an input, a float tensor with the shape of X.
    With broadcast=1 its shape is a part of that of X, as for Add.
    """

    def shape(X: Spec, exponent: Spec | None, op: OpView) -> Spec:
        if exponent is None:
            if op.args.exponent is None:
                raise OperatorError("", "has neither an input nor an argument 'exponent'")
            return X
        if op.args.broadcast:
            legacy_shape(X.shape, exponent.shape, op, "exponent")
        else:
            require_same_shape("exponent", exponent, "X", X)
        require_own_shapes(op, (X, exponent), (X,))
        return X

    def reference(X: Array, exponent: Array | None, op: OpView) -> Array:
        if exponent is None:
            return each(np.power, X, X, np.asarray(np.float32(op.args.exponent)))
        shape = exponent.shape
        if op.args.broadcast:
            shape = legacy_shape(X.shape, shape, op, "exponent")
        return each(np.power, X, X, exponent.reshape(shape))

    def gradient(op: GradientContext) -> Any:
        dX = op.input_grad(0)
        if len(op.inputs) == 1:
            less = op.args.exponent - 1
            return [
                op.make("Pow", [op.input(0)], [dX], exponent=less),
                op.make("Mul", [dX, op.grad(0)], [dX], copy_args=False),
                op.make("Scale", [dX], [dX], copy_args=False, scale=op.args.exponent),
            ]
        dE, broadcast = op.input_grad(1), op.args.broadcast
        place = {name: getattr(op.args, name) for name in _PLACE} if broadcast else {}
        along = {"broadcast": 1, **place} if broadcast else {}
        parts = f"{dE}_autogen_pre_red"
        steps = [
            op.make("ConstantFill", [op.input(1)], [dE], copy_args=False, value=1.0),
            op.make("Sub", [op.input(1), dE], [dE], copy_args=False),
            op.make("Pow", [op.input(0), dE], [dX], copy_args=False, **along),
            op.make("Mul", [dX, op.grad(0)], [dX], copy_args=False),
            op.make("Mul", [dX, op.input(1)], [dX], copy_args=False, **along),
            op.make("Log", [op.input(0)], [parts], copy_args=False),
            op.make("Mul", [parts, op.output(0)], [parts], copy_args=False),
            op.make("Mul", [parts, op.grad(0)], [parts if broadcast else dE], copy_args=False),
        ]
        if broadcast:
            steps.append(
                op.make("SumReduceLike", [parts, op.input(1)], [dE], copy_args=False, **place)
            )
        return steps


@operator(
    "SumReduceLike",
    inputs="A B",
    outputs="C",
    args=_PLACE,
    types={"A": FLOAT | DOUBLE},
)
class SumReduceLike:
    """C = A summed to the shape of B, which is a part of that of A, as with broadcast=1 of Add.

    A, C: float or double tensors of one type.  B: any tensor; its shape counts alone.
    axis, axis_str, order: as for Add.
    """

    def shape(A: Spec, B: Spec, op: OpView) -> Spec:
        legacy_shape(A.shape, B.shape, op)
        return Spec(B.shape, A.dtype)

    def reference(A: Array, B: Array, op: OpView) -> Array:
        aligned = legacy_shape(A.shape, B.shape, op)
        return summed(A.astype(np.float64), aligned, np.empty(B.shape, A.dtype))
