# mypy: disable-error-code="misc, no-any-return"
"""Pooling: the largest, the mean or the p-norm of each window."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Bool, Float
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.geometry import Window, channels_first, ordered
from caffe2.ops.shapes import require_same_shape

_MAX_ARGS = geometry.window_arguments(max_dilation=1)
_AVERAGE_ARGS = {**_MAX_ARGS, "count_include_pad": Bool(False)}
_LP_ARGS = {**_MAX_ARGS, "p": Float(2.0, min=1e-3)}


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


class _MaxPool:
    """Y = the largest element of X in each window; padding is never the largest.

    X: float (N, C, spatial...), or (N, spatial..., C) with order="NHWC".
    Y: float with the spatial sizes (input + pads - kernel) / stride + 1.
    Pads are smaller than the kernel, there is no dilation.  kernel, stride, pad: one number for
    all spatial axes, or kernels, strides, pads, or kernel_h, kernel_w, ... for two axes;
    legacy_pad=3 rounds the output size up, as Caffe did; global_pooling=1 takes one window over
    all of X.  Whether a NaN in a window reaches Y is not specified.
    The C++ kernels take up to three spatial axes; engine="REFERENCE" takes any number.
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


class _MaxPoolGradient:
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


class _AveragePool:
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


class _AveragePoolGradient:
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


class _LpPool:
    """Y = (sum of |X|^p over each window)^(1 / p).

    Shapes and the other arguments: as for MaxPool, but with one or two spatial axes.
    """

    gradient = _pool_gradient

    def reference(X: Array, op: OpView) -> Array:
        window = _window(X, op)
        padded = np.abs(window.padded(channels_first(op.args, X), 0)) ** op.args.p
        sums = sum(padded[met] for _, met in window.positions())
        return ordered(op.args, sums ** (1 / op.args.p)).astype(X.dtype)


class _LpPoolGradient:
    """dX = for each element, the sum over its windows of dY * X * |X|^(p - 2) / Y^(p - 1).

    The gradient of LpPool; 0 where X is 0.

    X, Y: input and output of LpPool; dY: float with the shape of Y; dX: float with that of X.
    """

    def reference(X: Array, Y: Array, dY: Array, op: OpView) -> Array:
        window, p = _window(X, op), op.args.p
        x, y = channels_first(op.args, X), channels_first(op.args, Y).astype(np.float64)
        dy = channels_first(op.args, dY).astype(np.float64)
        padded = window.padded(x, 0)
        dx = np.zeros_like(padded)
        with np.errstate(divide="ignore", invalid="ignore"):
            for _, met in window.positions():
                each = padded[met]
                part = dy * np.sign(each) * (np.abs(each) / y) ** (p - 1)
                dx[met] += np.where((each == 0) | (y == 0), 0, part)
        return ordered(op.args, window.cropped(dx, x.shape[2:])).astype(X.dtype)


def _declare(name: str, args: Any, body: type, gradient: type) -> None:
    types = {"X": FLOAT, "Y": FLOAT, "dY": FLOAT}
    operator(
        name,
        inputs="X",
        outputs="Y",
        args=args,
        types={"X": FLOAT},
        shape=_pool_shape,
    )(body)
    operator(
        f"{name}Gradient",
        inputs="X Y dY",
        outputs="dX",
        args=args,
        types=types,
        shape=_gradient_shape,
    )(gradient)


# The names with a number of axes take what the plain one takes.
for _axes in ("", "1D", "2D", "3D"):
    _declare(f"MaxPool{_axes}", _MAX_ARGS, _MaxPool, _MaxPoolGradient)
    _declare(f"AveragePool{_axes}", _AVERAGE_ARGS, _AveragePool, _AveragePoolGradient)
_declare("LpPool", _LP_ARGS, _LpPool, _LpPoolGradient)
