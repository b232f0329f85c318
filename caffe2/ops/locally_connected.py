# mypy: disable-error-code="misc, no-any-return"
"""Locally connected layers: convolution with a filter of its own for each place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Bool, Int, OperatorError
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.geometry import Window, channels_first, ordered

_ARGS = {**geometry.window_arguments(), "group": Int(1, min=1), "no_bias": Bool(False)}


def _resolve(X: Spec, filter: Spec, args: SimpleNamespace) -> tuple[Window, int]:
    """The window over X and the number of output channels; OperatorError unless filter fits."""
    spatial = geometry.spatial_shape(args, X)
    window = geometry.resolve_window(args, spatial)
    rank, channels = len(spatial), geometry.channels(args, X)
    outputs = filter.shape[rank] if len(filter.shape) > rank else 0
    taken = channels // args.group
    inner = (*window.kernel, taken) if geometry.channels_last(args) else (taken, *window.kernel)
    needed = (*window.output, outputs, *inner)
    if filter.shape != needed:
        raise OperatorError("filter", f"has shape {filter.shape}; {needed} is needed")
    if channels % args.group or outputs % args.group or not outputs:
        problem = f"is {args.group}; there are {channels} input and {outputs} output channels"
        raise OperatorError("argument 'group'", problem)
    return window, outputs


def _weights(filter: Array, rank: int, args: SimpleNamespace) -> Array:
    """In float64 as (places, group, outputs of a group, inputs of a group, kernel...)."""
    first = np.moveaxis(filter, -1, rank + 1) if geometry.channels_last(args) else filter
    places = int(np.prod(first.shape[:rank], dtype=np.int64))
    outputs = first.shape[rank] // args.group
    wide = first.astype(np.float64)
    return wide.reshape(places, args.group, outputs, *first.shape[rank + 1 :])


def _by_group(X: Array, group: int) -> Array:
    """(N, C, spatial...) as (N, group, C / group, places)."""
    inner = X.shape[1] // group
    return X.reshape(X.shape[0], group, inner, int(np.prod(X.shape[2:], dtype=np.int64)))


class _LC:
    """A locally connected layer: Conv with a filter of its own, and a bias, for each output place.

    X: float (N, C, spatial...), or (N, spatial..., C) with order="NHWC".
    filter: float (output..., M, C / group, kernel...), or (output..., M, kernel..., C / group) with
    order="NHWC".
    bias: float (output..., M); 0 when left out.
    Y: float (N, M, output...), or (N, output..., M) with order="NHWC".
    The other arguments: as for Conv.
    """

    def shape(X: Spec, filter: Spec, bias: Spec | None, op: OpView) -> Spec:
        window, outputs = _resolve(X, filter, op.args)
        if bias is not None and bias.shape != (*window.output, outputs):
            problem = f"has shape {bias.shape}; {(*window.output, outputs)} is needed"
            raise OperatorError("bias", problem)
        shape = geometry.with_channels(op.args, X.shape[0], outputs, window.output)
        return Spec(shape, X.dtype)

    def reference(X: Array, filter: Array, bias: Array | None, op: OpView) -> Array:
        window, outputs = _resolve(
            Spec(X.shape, X.dtype), Spec(filter.shape, filter.dtype), op.args
        )
        padded = window.padded(channels_first(op.args, X), 0)
        weights = _weights(filter, len(window.output), op.args)
        y = np.zeros((X.shape[0], *weights.shape[1:3], weights.shape[0]))
        for element, met in window.positions():
            y += np.einsum("pgmc,ngcp->ngmp", weights[element], _by_group(padded[met], y.shape[1]))
        y = y.reshape(X.shape[0], outputs, *window.output)
        if bias is not None:
            y += np.moveaxis(bias, -1, 0)
        return ordered(op.args, y).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.grad(0)]
        if len(op.inputs) == 2:
            return op.make(
                f"{op.type}Gradient", inputs, [op.input_grad(1), op.input_grad(0)], no_bias=1
            )
        outputs = [op.input_grad(1), op.input_grad(2), op.input_grad(0)]
        return op.make(f"{op.type}Gradient", inputs, outputs)


class _LCGradient:
    """The gradient of LC.

    X, filter, arguments: as for LC.  dY: float with the shape of Y of LC.
    Outputs, floats with the shapes of filter, bias and X:
        filter_grad, bias_grad[, X_grad]  as a rule (at least two),
        filter_grad[, X_grad]             with no_bias=1.
    """

    def shape(X: Spec, filter: Spec, dY: Spec, op: OpView) -> tuple[Spec, ...]:
        window, outputs = _resolve(X, filter, op.args)
        expected = geometry.with_channels(op.args, X.shape[0], outputs, window.output)
        if dY.shape != expected:
            raise OperatorError("dY", f"has shape {dY.shape}; {expected} is needed")
        least, most = (1, 2) if op.args.no_bias else (2, 3)
        if not least <= len(op.outputs) <= most:
            problem = f"has {len(op.outputs)} outputs; with no_bias={int(op.args.no_bias)} allowed"
            raise OperatorError("", f"{problem} are {least} or {most}")
        bias = () if op.args.no_bias else (Spec((*window.output, outputs), filter.dtype),)
        return filter, *bias, X

    def reference(X: Array, filter: Array, dY: Array, op: OpView) -> tuple[Array, ...]:
        args = op.args
        window, outputs = _resolve(Spec(X.shape, X.dtype), Spec(filter.shape, filter.dtype), args)
        rank = len(window.output)
        x = channels_first(args, X)
        padded = window.padded(x, 0)
        weights = _weights(filter, rank, args)
        dy = channels_first(args, dY).astype(np.float64)
        each = _by_group(dy, args.group)
        dw, dx = np.zeros_like(weights), np.zeros_like(padded)
        for element, met in window.positions():
            seen = _by_group(padded[met], args.group)
            dw[element] = np.einsum("ngmp,ngcp->pgmc", each, seen)
            part = np.einsum("pgmc,ngmp->ngcp", weights[element], each)
            dx[met] += part.reshape(*x.shape[:2], *window.output)
        dw = dw.reshape(*window.output, outputs, x.shape[1] // args.group, *window.kernel)
        if geometry.channels_last(args):
            dw = np.moveaxis(dw, rank + 1, -1)
        found = (dw.astype(filter.dtype),)
        dx = ordered(args, window.cropped(dx, x.shape[2:])).astype(X.dtype)
        if args.no_bias:
            return *found, dx
        return *found, np.moveaxis(dy.sum(axis=0), 0, -1).astype(filter.dtype), dx


for _axes in ("", "1D", "2D", "3D"):
    operator(
        f"LC{_axes}",
        inputs="X filter bias?",
        outputs="Y",
        args=_ARGS,
        types={"X": FLOAT, "filter": FLOAT, "bias": FLOAT},
    )(_LC)
    operator(
        f"LC{_axes}Gradient",
        inputs="X filter dY",
        outputs="filter_grad bias_or_X_grad? X_grad?",
        args=_ARGS,
        types={"X": FLOAT, "filter": FLOAT, "dY": FLOAT},
    )(_LCGradient)
