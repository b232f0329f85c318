# mypy: disable-error-code="misc, no-any-return"
"""Local response normalization."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops.arguments import Argument, Float, Int, OperatorError
from caffe2.ops.batch_norm import ORDER, by_channel, channel_count, like_input
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_same_shape

_ARGS: dict[str, Argument] = {
    "size": Int(0, min=0),
    "alpha": Float(0.0),
    "beta": Float(0.0),
    "bias": Float(1.0),
    "order": ORDER,
}


def _resolve(X: Spec, args: SimpleNamespace) -> None:
    channel_count("X", X, args)
    if args.size == 0 and args.alpha != 0:
        raise OperatorError("argument 'size'", f"is 0; at least 1 is needed, alpha is {args.alpha}")


def _window_sums(x: Array, before: int, after: int) -> Array:
    """For each channel the sum over those from `before` ones before it to `after` ones behind."""
    before, after = min(before, x.shape[1]), min(after, x.shape[1])
    padded = np.pad(x, [(0, 0), (before, after), (0, 0)])
    total = np.zeros_like(x)
    for start in range(before + after + 1):
        total += padded[:, start : start + x.shape[1]]
    return total


def _scale(x: Array, args: SimpleNamespace) -> Array:
    if args.size == 0:
        return np.full_like(x, args.bias)
    squares = _window_sums(x * x, (args.size - 1) // 2, args.size // 2)
    return args.bias + args.alpha / args.size * squares


@operator("LRN", inputs="X", outputs="Y scale?", args=_ARGS, types={"X": FLOAT}, helpers=[1])
class LRN:
    """Y = X * scale^-beta, scale = bias + alpha / size * (sum of X^2 over `size` neighbouring
    channels) (Krizhevsky, Sutskever and Hinton, 2012, section 3.3).

    The neighbours of a channel are the (size - 1) / 2 before it, itself, and size / 2 behind it.
    X, Y, scale: float (N, C, ...), or (N, ..., C) with order="NHWC".
    size=0, the default, goes with alpha=0 alone: then scale = bias.
    """

    def shape(X: Spec, op: OpView) -> tuple[Spec, Spec]:
        _resolve(X, op.args)
        return X, X

    def reference(X: Array, op: OpView) -> tuple[Array, Array]:
        x = by_channel(op.args, X)
        scale = _scale(x, op.args)
        y = x * scale**-op.args.beta
        return like_input(op.args, y, X), like_input(op.args, scale, X)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.output(0), op.grad(0)]
        return op.make("LRNGradient", inputs, [op.input_grad(0)])


@operator(
    "LRNGradient",
    inputs="X Y dY",
    outputs="dX",
    args=_ARGS,
    types={"X": FLOAT, "Y": FLOAT, "dY": FLOAT},
)
class LRNGradient:
    """The gradient of LRN from its input X and output Y.

    X, Y, dY, dX: floats of one shape; arguments as for LRN.
    """

    def shape(X: Spec, Y: Spec, dY: Spec, op: OpView) -> Spec:
        _resolve(X, op.args)
        require_same_shape("Y", Y, "X", X)
        require_same_shape("dY", dY, "X", X)
        return X

    def reference(X: Array, Y: Array, dY: Array, op: OpView) -> Array:
        args = op.args
        x, y, dy = (by_channel(args, array) for array in (X, Y, dY))
        scale = _scale(x, args)
        dx = dy * scale**-args.beta
        if args.size:
            met = _window_sums(dy * y / scale, args.size // 2, (args.size - 1) // 2)
            dx -= 2 * args.alpha * args.beta / args.size * x * met
        return like_input(args, dx, X)
