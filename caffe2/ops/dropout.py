# mypy: disable-error-code="misc, no-any-return"
"""Dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Argument, Bool, Float, OperatorError
from caffe2.ops.datatypes import BOOL, FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_same_size

# The largest float below 1: with ratio = 1 nothing would be left to scale.
_ARGS: dict[str, Argument] = {
    "ratio": Float(0.5, min=0, max=1 - 2**-24),
    "is_test": Bool(False),
}


def _kept(values: Array, mask: Array, op: OpView) -> Array:
    return np.asarray(values * mask / values.dtype.type(1 - op.args.ratio))


@operator(
    "Dropout",
    inputs="X",
    outputs="Y mask?",
    helpers=[1],
    args=_ARGS,
    types={"X": FLOAT},
    inplace=[(0, 0)],
    kind="random",
)
class Dropout:
    """Y = X * mask / (1 - ratio), where each element of mask is 0 with probability `ratio`
    (Srivastava et al., 2014: "Dropout: a simple way to prevent neural networks from overfitting").

    X, Y: float of any shape; mask: bool of that shape, needed unless is_test.
    ratio: 0 <= ratio < 1.  is_test=1: Y = X, and a mask that is named has only ones.
    """

    def shape(X: Spec, op: OpView) -> tuple[Spec, Spec]:
        if not op.args.is_test and len(op.outputs) < 2:
            raise OperatorError("", "has 1 output; with is_test=0 there is the mask, too")
        return X, Spec(X.shape, np.dtype(np.bool_))

    def reference(X: Array, op: OpView) -> tuple[Array, Array]:
        if op.args.is_test:
            return X, np.ones(X.shape, np.bool_)
        mask = np.asarray(op.rng.random(X.shape) >= op.args.ratio)
        return _kept(X, mask, op), mask

    def gradient(op: GradientContext) -> Any:
        mask = [] if op.args.is_test else [op.output(1)]
        return op.make("DropoutGrad", [op.grad(0), *mask], [op.input_grad(0)])


@operator(
    "DropoutGrad",
    inputs="dY mask?",
    outputs="dX",
    args=_ARGS,
    types={"dY": FLOAT, "mask": BOOL},
    inplace=[(0, 0)],
)
class DropoutGrad:
    """dX = dY * mask / (1 - ratio): the gradient of Dropout; with is_test=1, dX = dY.

    dY, dX: float of any shape; mask: bool with as many elements, needed unless is_test.
    """

    def shape(dY: Spec, mask: Spec | None, op: OpView) -> Spec:
        if op.args.is_test:
            return dY
        if mask is None:
            raise OperatorError("mask", "is missing; it is needed with is_test=0")
        require_same_size("mask", mask, "dY", dY)
        return dY

    def reference(dY: Array, mask: Array | None, op: OpView) -> Array:
        if op.args.is_test or mask is None:
            return dY
        return _kept(dY, mask.reshape(dY.shape), op)
