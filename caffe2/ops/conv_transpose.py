# mypy: disable-error-code="misc, no-any-return"
"""Transposed convolution."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import INT32_MAX, Argument, Bool, Int, Ints, OperatorError
from caffe2.ops.batch_norm import ORDER
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.geometry import channels_first, ordered
from caffe2.ops.shapes import require_rank, require_same_shape

_WINDOW = geometry.window_arguments()
TRANSPOSE_ARGS: dict[str, Argument] = {
    **{name: _WINDOW[name] for name in _WINDOW if name.startswith(("kernel", "stride", "pad"))},
    "kernel": Int(min=1),
    "adj": Int(0, min=0),
    "adj_h": Int(min=0),
    "adj_w": Int(min=0),
    "adjs": Ints(min=0),
    "order": ORDER,
    "group": Int(1, min=1),
    "no_bias": Bool(False),
}


@dataclass(frozen=True)
class _Window:
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    head: tuple[int, ...]
    output: tuple[int, ...]
    adj: tuple[int, ...]

    def reach(self, spatial: tuple[int, ...]) -> list[int]:
        """The sizes before the pads are cut off."""
        each = zip(spatial, self.stride, self.kernel, self.adj, strict=True)
        return [(size - 1) * stride + kernel + adj for size, stride, kernel, adj in each]

    def positions(self, spatial: tuple[int, ...]) -> Any:
        """For each element of the kernel the places it meets, one for each input element."""
        for place in itertools.product(*map(range, self.kernel)):
            each = zip(place, spatial, self.stride, strict=True)
            met = (slice(at, at + (size - 1) * step + 1, step) for at, size, step in each)
            yield (..., *place), (..., *met)

    def inner(self) -> tuple[Any, ...]:
        """What is left when the pads are cut off."""
        each = zip(self.head, self.output, strict=True)
        return (..., *(slice(head, head + size) for head, size in each))


def _resolve(X: Spec, filter: Spec, args: SimpleNamespace) -> _Window:
    require_rank("X", X, 4)
    require_rank("filter", filter, 4)
    spatial = geometry.spatial_shape(args, X)
    kernel = geometry.per_axis(args, "kernel", 2)
    stride, adj = geometry.per_axis(args, "stride", 2), geometry.per_axis(args, "adj", 2)
    head, tail = geometry.pads(args, 2)
    for axis in range(2):
        if adj[axis] >= stride[axis]:
            problem = f"is {adj[axis]}; less than the stride ({stride[axis]}) is allowed"
            raise OperatorError("argument 'adj'", problem)
    channels, outputs = geometry.channels(args, X), geometry.channels(args, filter)
    if geometry.with_channels(args, channels, outputs, kernel) != filter.shape or outputs == 0:
        problem = f"has shape {filter.shape}; the kernel is {kernel}"
        raise OperatorError("filter", f"{problem}, X has {channels} channels")
    if channels % args.group:
        problem = f"is {args.group}; X has {channels} channels, which must be a multiple"
        raise OperatorError("argument 'group'", problem)
    window = _Window(kernel, stride, head, (0, 0), adj)
    output = tuple(
        reach - before - behind
        for reach, before, behind in zip(window.reach(spatial), head, tail, strict=True)
    )
    if min(output) < 1 or max(output) > INT32_MAX:
        problem = f"has shape {X.shape}; with pads {head} before and {tail} behind the data the "
        raise OperatorError("X", f"{problem}output would be {output[0]} x {output[1]}")
    return _Window(kernel, stride, head, output, adj)


def _grouped(values: Array, group: int) -> Array:
    """(M, ...) in float64 as (group, M / group, ...)."""
    inner = values.shape[0] // group
    return values.astype(np.float64).reshape(group, inner, *values.shape[1:])


def _pixels(values: Array, group: int) -> Array:
    """(N, C, H, W) in float64 as (N, group, C / group, H, W)."""
    inner = values.shape[1] // group
    return values.astype(np.float64).reshape(values.shape[0], group, inner, *values.shape[2:])


def _output_shape(X: Spec, filter: Spec, window: _Window, args: SimpleNamespace) -> tuple[int, ...]:
    outputs = geometry.channels(args, filter) * args.group
    return geometry.with_channels(args, X.shape[0], outputs, window.output)


@operator(
    "ConvTranspose",
    inputs="X filter bias?",
    outputs="Y",
    args=TRANSPOSE_ARGS,
    types={"X": FLOAT, "filter": FLOAT, "bias": FLOAT},
)
class ConvTranspose:
    """Y = bias + what a convolution with this filter, strides and pads would give X as the
    gradient of its input: each element of X adds the filter, times itself, to Y.

    X: float (N, M, H, W), or (N, H, W, M) with order="NHWC".
    filter: float (M, C / group, kernel...), or (M, kernel..., C / group) with order="NHWC".
    bias: float (C,); 0 when left out.
    Y: float (N, C, ...), or (N, ..., C), with (size - 1) * stride + kernel + adj - pads elements
    along each axis.
    kernel, stride, pad: one number for both axes, or kernels, strides, pads, or kernel_h, ...;
    adj likewise: elements more behind the data, less than the stride.
    group: channels are split in this many groups, which do not see each other.
    """

    def shape(X: Spec, filter: Spec, bias: Spec | None, op: OpView) -> Spec:
        window = _resolve(X, filter, op.args)
        outputs = geometry.channels(op.args, filter) * op.args.group
        if bias is not None and bias.shape != (outputs,):
            problem = f"has shape {bias.shape}; ({outputs},) is needed, filter has {filter.shape}"
            raise OperatorError("bias", problem)
        return Spec(_output_shape(X, filter, window, op.args), X.dtype)

    def reference(X: Array, filter: Array, bias: Array | None, op: OpView) -> Array:
        args = op.args
        window = _resolve(Spec(X.shape, X.dtype), Spec(filter.shape, filter.dtype), args)
        x = _pixels(channels_first(args, X), args.group)
        weights = _grouped(channels_first(args, filter), args.group)
        spatial = x.shape[3:]
        y = np.zeros((*x.shape[:2], weights.shape[2], *window.reach(spatial)))
        for element, met in window.positions(spatial):
            y[met] += np.einsum("gmc,ngmhw->ngchw", weights[element], x)
        y = y[window.inner()].reshape(X.shape[0], weights.shape[2] * args.group, *window.output)
        if bias is not None:
            y = y + bias.reshape(-1, 1, 1)
        return np.ascontiguousarray(ordered(args, y)).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.grad(0)]
        type = "ConvTransposeGradient"
        if len(op.inputs) == 2:
            return op.make(type, inputs, [op.input_grad(1), op.input_grad(0)], no_bias=1)
        outputs = [op.input_grad(1), op.input_grad(2), op.input_grad(0)]
        if op.args.no_bias:
            return op.make(type, inputs, outputs, no_bias=0)
        return op.make(type, inputs, outputs)


@operator(
    "ConvTransposeGradient",
    inputs="X filter dY",
    outputs="filter_grad bias_or_X_grad? X_grad?",
    args=TRANSPOSE_ARGS,
    types={"X": FLOAT, "filter": FLOAT, "dY": FLOAT},
)
class ConvTransposeGradient:
    """The gradient of ConvTranspose.

    X, filter, arguments: as for ConvTranspose.  dY: float with the shape of its Y.
    Outputs, floats with the shapes of filter, bias (C,) and X:
        filter_grad, bias_grad[, X_grad]  as a rule (at least two),
        filter_grad[, X_grad]             with no_bias=1.
    """

    def shape(X: Spec, filter: Spec, dY: Spec, op: OpView) -> tuple[Spec, ...]:
        window = _resolve(X, filter, op.args)
        expected = Spec(_output_shape(X, filter, window, op.args), X.dtype)
        require_same_shape("dY", dY, "the output", expected)
        least, most = (1, 2) if op.args.no_bias else (2, 3)
        if not least <= len(op.outputs) <= most:
            problem = f"has {len(op.outputs)} outputs; with no_bias={int(op.args.no_bias)} allowed"
            raise OperatorError("", f"{problem} are {least} or {most}")
        outputs = geometry.channels(op.args, filter) * op.args.group
        bias = () if op.args.no_bias else (Spec((outputs,), filter.dtype),)
        return filter, *bias, X

    def reference(X: Array, filter: Array, dY: Array, op: OpView) -> tuple[Array, ...]:
        args = op.args
        window = _resolve(Spec(X.shape, X.dtype), Spec(filter.shape, filter.dtype), args)
        x = _pixels(channels_first(args, X), args.group)
        first = channels_first(args, filter)
        weights = _grouped(first, args.group)
        spatial = x.shape[3:]
        dy = channels_first(args, dY).astype(np.float64)
        whole = np.zeros((*x.shape[:2], weights.shape[2], *window.reach(spatial)))
        whole[window.inner()] = _pixels(dy, args.group)
        dw, dx = np.zeros_like(weights), np.zeros_like(x)
        for element, met in window.positions(spatial):
            dw[element] = np.einsum("ngmhw,ngchw->gmc", x, whole[met])
            dx += np.einsum("gmc,ngchw->ngmhw", weights[element], whole[met])
        found = (
            np.ascontiguousarray(ordered(args, dw.reshape(first.shape))).astype(filter.dtype),
            np.ascontiguousarray(ordered(args, dx.reshape(channels_first(args, X).shape))).astype(
                X.dtype
            ),
        )
        if args.no_bias:
            return found
        return found[0], dy.sum(axis=(0, 2, 3)).astype(filter.dtype), found[1]
