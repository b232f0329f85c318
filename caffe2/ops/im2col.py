# mypy: disable-error-code="misc, no-any-return"
"""The matrix behind a convolution: Im2Col and Col2Im."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Argument, Int, OperatorError
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.geometry import Window, channels_first, ordered
from caffe2.ops.shapes import require_rank, size

_NAMES = [f"{name}{side}" for name in ("kernel", "stride", "dilation") for side in ("", "_h", "_w")]
_WINDOW = geometry.window_arguments()
_ARGS: dict[str, Argument] = {name: _WINDOW[name] for name in (*_NAMES, "pad", "order")}
_ARGS["kernel"] = Int(min=1)


def _resolve(name: str, X: Spec, args: SimpleNamespace) -> Window:
    require_rank(name, X, 4)
    spatial = geometry.spatial_shape(args, X)
    rest = {key: argument.default for key, argument in _WINDOW.items() if key not in _ARGS}
    return geometry.resolve_window(SimpleNamespace(**{**rest, **vars(args)}), spatial)


def _columns_shape(X: Spec, window: Window, args: SimpleNamespace) -> tuple[int, ...]:
    rows = geometry.channels(args, X) * math.prod(window.kernel)
    return geometry.with_channels(args, X.shape[0], rows, window.output)


@operator("Im2Col", inputs="X", outputs="Y", args=_ARGS, types={"X": FLOAT})
class Im2Col:
    """Y = what each place of a convolution's window sees, for every position of the window.

    X: float (N, C, H, W), or (N, H, W, C) with order="NHWC".
    Y: float (N, C * kernel_h * kernel_w, output...), the channel outermost; with order="NHWC"
    (N, output..., kernel_h * kernel_w * C), the channel innermost.
    kernel (or kernel_h and kernel_w; stride and dilation likewise) and pad: as for Conv.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        return Spec(_columns_shape(X, _resolve("X", X, op.args), op.args), X.dtype)

    def reference(X: Array, op: OpView) -> Array:
        spec = Spec(X.shape, X.dtype)
        window = _resolve("X", spec, op.args)
        padded = window.padded(channels_first(op.args, X), 0)
        seen = np.stack([padded[met] for _, met in window.positions()])
        # (places, N, C, output...): channels go before the places, or behind them.
        order = (1, 0, 2, 3, 4) if geometry.channels_last(op.args) else (1, 2, 0, 3, 4)
        rows = geometry.channels(op.args, spec) * math.prod(window.kernel)
        columns = seen.transpose(order).reshape(X.shape[0], rows, *window.output)
        return np.ascontiguousarray(ordered(op.args, columns)).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("Col2Im", [op.grad(0), op.input(0)], [op.input_grad(0)])


@operator(
    "Col2Im", inputs="columns X", outputs="Y", args=_ARGS, types={"columns": FLOAT, "X": FLOAT}
)
class Col2Im:
    """Y = for each element of a picture the sum of all that Im2Col made of it.

    columns: float with as many elements as Im2Col gives for X.  Y: float with the shape of X, of
    which nothing else matters.
    """

    def shape(columns: Spec, X: Spec, op: OpView) -> Spec:
        expected = _columns_shape(X, _resolve("X", X, op.args), op.args)
        if size(columns) != math.prod(expected):
            problem = f"has shape {columns.shape}; {expected} is needed, X has shape {X.shape}"
            raise OperatorError("columns", problem)
        return X

    def reference(columns: Array, X: Array, op: OpView) -> Array:
        spec = Spec(X.shape, X.dtype)
        window = _resolve("X", spec, op.args)
        shape = _columns_shape(spec, window, op.args)
        rows = channels_first(op.args, columns.reshape(shape)).astype(np.float64)
        places, channels = math.prod(window.kernel), geometry.channels(op.args, spec)
        last = geometry.channels_last(op.args)
        inner = (places, channels) if last else (channels, places)
        seen = rows.reshape(X.shape[0], *inner, *window.output)
        seen = seen.swapaxes(0, 1) if last else seen.transpose(2, 0, 1, 3, 4)
        x = channels_first(op.args, X)
        total = np.zeros_like(window.padded(x, 0))
        for index, (_, met) in enumerate(window.positions()):
            total[met] += seen[index]
        return np.ascontiguousarray(ordered(op.args, window.cropped(total, x.shape[2:]))).astype(
            X.dtype
        )

    def gradient(op: GradientContext) -> Any:
        return op.make("Im2Col", [op.grad(0)], [op.input_grad(0)])
