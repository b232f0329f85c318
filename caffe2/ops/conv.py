# mypy: disable-error-code="misc, no-any-return"
"""Convolution."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Bool, Float, Int, OperatorError, Str
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.geometry import Window, channels_first, ordered

_ARGS = {**geometry.window_arguments(), "group": Int(1, min=1), "no_bias": Bool(False)}


def _resolve(X: Spec, filter: Spec, args: SimpleNamespace) -> Window:
    """The window over X; OperatorError unless the filter fits X and the arguments."""
    spatial = geometry.spatial_shape(args, X)
    if len(filter.shape) != len(X.shape):
        problem = f"has shape {filter.shape}; X has {len(X.shape)} dimensions, {X.shape}"
        raise OperatorError("filter", problem)
    window = geometry.resolve_window(args, spatial)
    outputs, taken = filter.shape[0], geometry.channels(args, filter)
    if geometry.with_channels(args, outputs, taken, window.kernel) != filter.shape:
        raise OperatorError("filter", f"has shape {filter.shape}; the kernel is {window.kernel}")
    channels = geometry.channels(args, X)
    if taken * args.group != channels:
        raise OperatorError(
            "filter",
            f"has shape {filter.shape}, {taken} channels, for each of group={args.group} groups; "
            f"X has shape {X.shape}, {channels} channels",
        )
    if outputs == 0 or outputs % args.group:
        problem = f"gives {outputs} channels; a multiple of group={args.group} is needed"
        raise OperatorError("filter", problem)
    return window


def _grouped(filter: Array, args: SimpleNamespace) -> Array:
    """The filter in float64 as (group, outputs of a group, inputs of a group, kernel...)."""
    first = channels_first(args, filter).astype(np.float64)
    return first.reshape(args.group, -1, *first.shape[1:])


def _by_group(X: Array, group: int) -> Array:
    """(N, C, spatial...) as (N, group, C / group, points)."""
    inner = X.shape[1] // group
    return X.reshape(X.shape[0], group, inner, int(np.prod(X.shape[2:], dtype=np.int64)))


class _Conv:
    """Convolution (without flipping the filter: cross-correlation), with 1, 2, 3 or more spatial
    axes.

    Y[n, m, p] = bias[m] + sum over c, k of X[n, c, p * stride - pad + k * dilation] *
    filter[m, c, k], where elements of X outside the data count as 0.

    X: float (N, C, spatial...), or (N, spatial..., C) with order="NHWC".
    filter: float (M, C / group, kernel...), or (M, kernel..., C / group) with order="NHWC".
    bias: float (M,); 0 when left out.
    Y: float (N, M, output...), or (N, output..., M) with order="NHWC".
    group: channels are split in this many groups, which do not see each other.
    kernel: needed; for two axes kernel=3, kernels=[3, 3] or kernel_h=3 with kernel_w=3.  stride,
    pad, dilation and legacy_pad likewise; output = (input + pads - dilated kernel) / stride + 1.
    The C++ kernels take up to three spatial axes; engine="REFERENCE" takes any number.
    no_bias: only says that the gradient of no bias is wanted; a bias that is given is added.

    Windows of 3x3 and 5x5 are often computed tile by tile (Winograd's minimal filtering).  A NaN or
    an infinity in X then makes NaN of all of Y in its tile, up to 4 rows and columns away, where by
    the formula only the windows that hold it are lost; engine="DIRECT" follows the formula.
    """

    def shape(X: Spec, filter: Spec, bias: Spec | None, op: OpView) -> Spec:
        window = _resolve(X, filter, op.args)
        outputs = filter.shape[0]
        if bias is not None and bias.shape != (outputs,):
            problem = f"has shape {bias.shape}; ({outputs},) is needed, filter has {outputs} rows"
            raise OperatorError("bias", problem)
        shape = geometry.with_channels(op.args, X.shape[0], outputs, window.output)
        return Spec(shape, X.dtype)

    def reference(X: Array, filter: Array, bias: Array | None, op: OpView) -> Array:
        window = _resolve(Spec(X.shape, X.dtype), Spec(filter.shape, filter.dtype), op.args)
        padded = window.padded(channels_first(op.args, X), 0)
        weights = _grouped(filter, op.args)
        batch, outputs = X.shape[0], filter.shape[0]
        points = int(np.prod(window.output))
        y = np.zeros((batch, op.args.group, outputs // op.args.group, points))
        for element, met in window.positions():
            seen = _by_group(padded[met], op.args.group)
            y += np.einsum("gmc,ngcp->ngmp", weights[element], seen)
        y = y.reshape(batch, outputs, *window.output)
        if bias is not None:
            y += bias.reshape(-1, *(1 for _ in window.output))
        return ordered(op.args, y).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.grad(0)]
        if len(op.inputs) == 2:
            return op.make(
                f"{op.type}Gradient", inputs, [op.input_grad(1), op.input_grad(0)], no_bias=1
            )
        outputs = [op.input_grad(1), op.input_grad(2), op.input_grad(0)]
        if op.args.no_bias:
            return op.make(f"{op.type}Gradient", inputs, outputs, no_bias=0)
        return op.make(f"{op.type}Gradient", inputs, outputs)


class _ConvGradient:
    """The gradient of Conv.

    X, filter, arguments: as for Conv.  dY: float with the shape of Y of Conv.
    Outputs, floats with the shapes of filter, bias (M,) and X:
        filter_grad, bias_grad[, X_grad]  as a rule (at least two),
        filter_grad[, X_grad]             with no_bias=1.
    X_grad is computed only when named.
    """

    def shape(X: Spec, filter: Spec, dY: Spec, op: OpView) -> tuple[Spec, ...]:
        window = _resolve(X, filter, op.args)
        outputs = filter.shape[0]
        expected = geometry.with_channels(op.args, X.shape[0], outputs, window.output)
        if dY.shape != expected:
            raise OperatorError("dY", f"has shape {dY.shape}; {expected} is needed")
        least, most = (1, 2) if op.args.no_bias else (2, 3)
        if not least <= len(op.outputs) <= most:
            problem = f"has {len(op.outputs)} outputs; with no_bias={int(op.args.no_bias)} allowed"
            raise OperatorError("", f"{problem} are {least} or {most}")
        bias = () if op.args.no_bias else (Spec((outputs,), filter.dtype),)
        return filter, *bias, X

    def reference(X: Array, filter: Array, dY: Array, op: OpView) -> tuple[Array, ...]:
        window = _resolve(Spec(X.shape, X.dtype), Spec(filter.shape, filter.dtype), op.args)
        x = channels_first(op.args, X)
        padded = window.padded(x, 0)
        weights = _grouped(filter, op.args)
        dy = channels_first(op.args, dY).astype(np.float64)
        gradient = _by_group(dy, op.args.group)
        dw = np.zeros_like(weights)
        dx = np.zeros_like(padded)
        for element, met in window.positions():
            seen = _by_group(padded[met], op.args.group)
            dw[element] = np.einsum("ngmp,ngcp->gmc", gradient, seen)
            part = np.einsum("gmc,ngmp->ngcp", weights[element], gradient)
            dx[met] += part.reshape(*x.shape[:2], *window.output)
        dw = dw.reshape(channels_first(op.args, filter).shape)
        dw = ordered(op.args, dw).astype(filter.dtype)
        dx = ordered(op.args, window.cropped(dx, x.shape[2:])).astype(X.dtype)
        if op.args.no_bias:
            return dw, dx
        return dw, dy.sum(axis=(0, *range(2, dy.ndim))).astype(filter.dtype), dx


@operator(
    "ConvRelu",
    inputs="X filter bias?",
    outputs="Y",
    args=_ARGS,
    types={"X": FLOAT, "filter": FLOAT, "bias": FLOAT},
)
class ConvRelu:
    """Y = max(0, the convolution of X and filter + bias).

    Inputs, Y, arguments: as for Conv.
    """

    shape = _Conv.shape

    def reference(X: Array, filter: Array, bias: Array | None, op: OpView) -> Array:
        return np.maximum(_Conv.reference(X, filter, bias, op), 0)


@operator(
    "ExpandDepthwise",
    inputs="X expand_filter expand_bias filter bias project_filter? project_bias?",
    outputs="Y",
    args={
        **geometry.window_arguments(),
        "order": Str("NCHW", choices=("NCHW",)),
        "min": Float(-math.inf),
        "max": Float(math.inf),
        "filtered_min": Float(-math.inf),
        "filtered_max": Float(math.inf),
    },
    types=dict.fromkeys(
        ("X", "expand_filter", "expand_bias", "filter", "bias", "project_filter", "project_bias"),
        FLOAT,
    ),
)
class ExpandDepthwise:
    """A pointwise convolution, a depthwise one of its result and, if wanted, a pointwise one of
    that, as in the inverted residuals of MobileNetV2 (Sandler et al., 2018, arXiv 1801.04381): what
    is between them stays in the cache.

    Z = Conv(Clip(Conv(X, expand_filter, expand_bias), min, max), filter, bias, group=E), with
    kernel, stride, pad, dilation and legacy_pad as for Conv.  Y = Z, or
    Conv(Clip(Z, filtered_min, filtered_max), project_filter, project_bias).

    X: float (N, C, H, W).  expand_filter: float (E, C, 1, 1).  filter: float (E, 1, kernel...).
    expand_bias, bias: float (E,).  project_filter: float (K, E, 1, 1).  project_bias: float (K,).
    Y: float (N, E or K, output...).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        X: Spec,
        expand_filter: Spec,
        expand_bias: Spec,
        filter: Spec,
        bias: Spec,
        project_filter: Spec | None,
        project_bias: Spec | None,
        op: OpView,
    ) -> Spec:
        spatial = geometry.spatial_shape(op.args, X)
        if len(spatial) != 2:
            raise OperatorError("X", f"has shape {X.shape}; 4 dimensions are needed")
        window = geometry.resolve_window(op.args, spatial)
        channels = expanded = expand_filter.shape[0] if expand_filter.shape else 0
        needed = [
            ("expand_filter", expand_filter, (expanded, X.shape[1], 1, 1)),
            ("expand_bias", expand_bias, (expanded,)),
            ("filter", filter, (expanded, 1, *window.kernel)),
            ("bias", bias, (expanded,)),
        ]
        if project_filter is not None:
            if project_bias is None:
                raise OperatorError("project_filter", "is given without a bias")
            channels = project_filter.shape[0] if project_filter.shape else 0
            needed += [
                ("project_filter", project_filter, (channels, expanded, 1, 1)),
                ("project_bias", project_bias, (channels,)),
            ]
        for name, spec, shape in needed:
            if spec.shape != shape or not shape[0]:
                raise OperatorError(name, f"has shape {spec.shape}; {shape} is needed")
        return Spec((X.shape[0], channels, *window.output), X.dtype)

    def reference(
        X: Array,
        expand_filter: Array,
        expand_bias: Array,
        filter: Array,
        bias: Array,
        project_filter: Array | None,
        project_bias: Array | None,
        op: OpView,
    ) -> Array:
        def clip(x: Array, low: float, high: float) -> Array:
            x = np.where(x < low, low, x)  # NaN is no bound
            return np.where(x > high, high, x).astype(X.dtype)

        def pointwise(x: Array, weights: Array, offsets: Array) -> Array:
            sums = np.einsum("kc,nchw->nkhw", weights[:, :, 0, 0].astype(np.float64), x)
            return sums + offsets[:, None, None]

        window = geometry.resolve_window(op.args, X.shape[2:])
        expanded = clip(pointwise(X, expand_filter, expand_bias), op.args.min, op.args.max)
        padded = window.padded(expanded, 0)
        y = np.zeros((*expanded.shape[:2], *window.output))
        for element, met in window.positions():
            y += padded[met] * filter[:, 0][element][:, None, None]
        y += bias[:, None, None]
        if project_filter is not None and project_bias is not None:
            y = clip(y, op.args.filtered_min, op.args.filtered_max)
            y = pointwise(y, project_filter, project_bias)
        return y.astype(X.dtype)


# The names with a number of axes take what Conv takes.
for _axes in ("", "1D", "2D", "3D"):
    operator(
        f"Conv{_axes}",
        inputs="X filter bias?",
        outputs="Y",
        args=_ARGS,
        types={"X": FLOAT, "filter": FLOAT, "bias": FLOAT},
    )(_Conv)
    operator(
        f"Conv{_axes}Gradient",
        inputs="X filter dY",
        outputs="filter_grad bias_or_X_grad? X_grad?",
        args=_ARGS,
        types={"X": FLOAT, "filter": FLOAT, "dY": FLOAT},
    )(_ConvGradient)
