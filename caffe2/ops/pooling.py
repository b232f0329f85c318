# mypy: disable-error-code="misc, no-any-return"
"""Pooling: the largest or the mean of each window."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Bool
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.geometry import Window, channels_first, ordered
from caffe2.ops.shapes import require_same_shape

_MAX_ARGS = geometry.window_arguments(max_dilation=1)
_AVERAGE_ARGS = {**_MAX_ARGS, "count_include_pad": Bool(False)}


def _resolve(X: Spec, args: SimpleNamespace) -> Window:
    spatial = geometry.spatial_shape(args, X)
    window = geometry.resolve_window(args, spatial)
    geometry.require_data_in_windows(window, spatial)
    return window


def _pool_shape(X: Spec, op: OpView) -> Spec:
    window = _resolve(X, op.args)
    channels = geometry.channels(op.args, X)
    return Spec(geometry.with_channels(op.args, X.shape[0], channels, window.output), X.dtype)


def _gradient_shape(X: Spec, Y: Spec, dY: Spec, op: OpView) -> Spec:
    expected = _pool_shape(X, op)
    require_same_shape("Y", Y, "pooled X", expected)
    require_same_shape("dY", dY, "pooled X", expected)
    return X


def _pool_gradient(op: GradientContext) -> Any:
    inputs = [op.input(0), op.output(0), op.grad(0)]
    return op.make(f"{op.type}Gradient", inputs, [op.input_grad(0)])


def _window(X: Array, op: OpView) -> Window:
    return _resolve(Spec(X.shape, X.dtype), op.args)


def _counts(window: Window, spatial: tuple[int, ...], op: OpView) -> Array:
    """How many elements each mean is taken over."""
    if op.args.count_include_pad:
        return np.full(window.output, float(np.prod(window.kernel, dtype=np.int64)))
    data = window.padded(np.ones((1, 1, *spatial)), 0)[0, 0]
    return sum((data[met] for _, met in window.positions()), np.zeros(window.output))


@operator("MaxPool", inputs="X", outputs="Y", args=_MAX_ARGS, types={"X": FLOAT}, shape=_pool_shape)
class MaxPool:
    """Y = the largest element of X in each window; padding is never the largest.

    X: float (N, C, spatial...), or (N, spatial..., C) with order="NHWC".
    Y: float with the spatial sizes (input + pads - kernel) / stride + 1.
    Pads are smaller than the kernel, there is no dilation.  kernel, stride, pad: one number for
    all spatial axes, or kernels, strides, pads, or kernel_h, kernel_w, ... for two axes;
    legacy_pad=3 rounds the output size up, as Caffe did; global_pooling=1 takes one window over
    all of X.  Whether a NaN in a window reaches Y is not specified.
    The C++ kernels take one or two spatial axes; engine="REFERENCE" takes any number.
    """

    gradient = _pool_gradient

    def reference(X: Array, op: OpView) -> Array:
        window = _window(X, op)
        x = channels_first(op.args, X)
        padded = window.padded(x, -np.inf)
        y = np.full((*x.shape[:2], *window.output), -np.inf)
        for _, met in window.positions():
            y = np.maximum(y, padded[met])
        return ordered(op.args, y).astype(X.dtype)


@operator(
    "MaxPoolGradient",
    inputs="X Y dY",
    outputs="dX",
    args=_MAX_ARGS,
    types={"X": FLOAT, "Y": FLOAT, "dY": FLOAT},
    shape=_gradient_shape,
)
class MaxPoolGradient:
    """dX = for each element, the sum of dY over the windows whose largest element it equals.

    The gradient of MaxPool.  Every element that ties for the largest receives the whole dY.

    X, Y: input and output of MaxPool; dY: float with the shape of Y; dX: float with that of X.
    """

    def reference(X: Array, Y: Array, dY: Array, op: OpView) -> Array:
        window = _window(X, op)
        x, y = channels_first(op.args, X), channels_first(op.args, Y).astype(np.float64)
        dy = channels_first(op.args, dY).astype(np.float64)
        padded = window.padded(x, -np.inf)
        dx = np.zeros_like(padded)
        for _, met in window.positions():
            dx[met] += np.where(padded[met] == y, dy, 0)
        return ordered(op.args, window.cropped(dx, x.shape[2:])).astype(X.dtype)


@operator(
    "AveragePool",
    inputs="X",
    outputs="Y",
    args=_AVERAGE_ARGS,
    types={"X": FLOAT},
    shape=_pool_shape,
)
class AveragePool:
    """Y = the mean of the elements of X in each window.

    The mean is over the elements that are data; with count_include_pad=1 the sum is divided by the
    size of the kernel, as if padding were zeros.

    Shapes and the other arguments: as for MaxPool.
    """

    gradient = _pool_gradient

    def reference(X: Array, op: OpView) -> Array:
        window = _window(X, op)
        x = channels_first(op.args, X)
        padded = window.padded(x, 0)
        y = np.zeros((*x.shape[:2], *window.output))
        for _, met in window.positions():
            y += padded[met]
        return ordered(op.args, y / _counts(window, x.shape[2:], op)).astype(X.dtype)


@operator(
    "AveragePoolGradient",
    inputs="X Y dY",
    outputs="dX",
    args=_AVERAGE_ARGS,
    types={"X": FLOAT, "Y": FLOAT, "dY": FLOAT},
    shape=_gradient_shape,
)
class AveragePoolGradient:
    """dX = for each element, the sum over its windows of dY / (elements the mean was over).

    The gradient of AveragePool.

    X, Y: input and output of AveragePool (only their shapes matter); dY: float with the shape of
    Y; dX: float with the shape of X.
    """

    def reference(X: Array, Y: Array, dY: Array, op: OpView) -> Array:
        window = _window(X, op)
        x = channels_first(op.args, X)
        dx = np.zeros_like(window.padded(x, 0))
        dy = channels_first(op.args, dY).astype(np.float64)
        share = dy / _counts(window, x.shape[2:], op)
        for _, met in window.positions():
            dx[met] += share
        return ordered(op.args, window.cropped(dx, x.shape[2:])).astype(X.dtype)
