# mypy: disable-error-code="misc, no-any-return"
"""Normalization over the batch, and the statistics of channels behind it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Argument, Bool, Float, Int, OperatorError, Str
from caffe2.ops.datatypes import FLOAT
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_same_shape

ORDER = Str("NCHW", choices=("NCHW", "NHWC", "nchw", "nhwc"))
_ARGS: dict[str, Argument] = {
    "is_test": Bool(False),
    "epsilon": Float(1e-5, min=1e-38),
    "momentum": Float(0.9, min=0, max=1),
    "num_batches": Int(1, min=1),
    "order": ORDER,
}


def channel_count(name: str, X: Spec, args: SimpleNamespace, least: int = 2) -> int:
    """The number of channels of X; OperatorError when it has fewer than `least` dimensions."""
    if len(X.shape) < least:
        problem = f"has shape {X.shape}; {least} dimensions at least are needed: batch, channels"
        raise OperatorError(name, problem)
    return geometry.channels(args, X)


def require_channels(channels: int, X: Spec, **per_channel: Spec | None) -> None:
    """OperatorError unless each of these has one value per channel."""
    for name, spec in per_channel.items():
        if spec is not None and spec.shape != (channels,):
            problem = f"has shape {spec.shape}; ({channels},) is needed, X has shape {X.shape}"
            raise OperatorError(name, problem)


def by_channel(args: SimpleNamespace, X: Array) -> Array:
    """X in float64 as (N, C, elements)."""
    first = geometry.channels_first(args, X).astype(np.float64)
    return first.reshape(*first.shape[:2], math.prod(first.shape[2:]))


def like_input(args: SimpleNamespace, values: Array, X: Array) -> Array:
    """The inverse of `by_channel`, in shape and type of X."""
    first = values.reshape(geometry.channels_first(args, X).shape)
    return np.ascontiguousarray(geometry.ordered(args, first)).astype(X.dtype)


def _column(values: Array) -> Array:
    return values.astype(np.float64)[:, np.newaxis]


@operator(
    "SpatialBN",
    inputs="X scale bias mean var sums? sumsq?",
    outputs="Y mean? var? saved_mean? saved_inv_std?",
    helpers=[1, 2, 3, 4],
    args=_ARGS,
    types=dict.fromkeys(("X", "scale", "bias", "mean", "var", "sums", "sumsq"), FLOAT),
    inplace=[(0, 0), (5, 3), (6, 4)],
    enforced_inplace=[(3, 1), (4, 2)],
)
class SpatialBN:
    """Batch normalization (Ioffe and Szegedy, 2015, arXiv 1502.03167) of each channel.

    is_test=1: Y = (X - mean) / sqrt(var + epsilon) * scale + bias; the only output.
    is_test=0, five outputs: the same with mean and variance of this batch.  The running mean and
    variance, updated in place, become momentum * old + (1 - momentum) * new; for the variance,
    new is the unbiased one (of a single element: 0).  saved_mean, saved_inv_std: mean and
    1 / sqrt(variance + epsilon) of the batch, which the gradient needs.  An empty batch leaves
    mean and var as they are and gives saved ones of 0.

    X, Y: float (N, C, ...), or (N, ..., C) with order="NHWC"; (N, C) for the output of FC.
    scale, bias, mean, var and all further ones: float (C,).
    num_batches > 1 (training): the batch was split; mean and variance are taken over all parts,
    whose sums of X and of X^2 for each channel, over all parts, are `sums` and `sumsq`.  The
    parts are of one size.  With num_batches=1 these two are not looked at.
    """

    def shape(
        X: Spec,
        scale: Spec,
        bias: Spec,
        mean: Spec,
        var: Spec,
        sums: Spec | None,
        sumsq: Spec | None,
        op: OpView,
    ) -> tuple[Spec, ...]:
        needed = 1 if op.args.is_test else 5
        if len(op.outputs) != needed:
            problem = f"has {len(op.outputs)} outputs; {needed} with is_test={int(op.args.is_test)}"
            raise OperatorError("", problem)
        channels = channel_count("X", X, op.args)
        require_channels(
            channels, X, scale=scale, bias=bias, mean=mean, var=var, sums=sums, sumsq=sumsq
        )
        _require_sums(op, "sums and sumsq")
        return (X, *[scale] * 4)

    def reference(
        X: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        var: Array,
        sums: Array | None,
        sumsq: Array | None,
        op: OpView,
    ) -> tuple[Array, ...]:
        args = op.args
        x = by_channel(args, X)
        count = x.shape[0] * x.shape[2]
        used, spread = mean.astype(np.float64), var.astype(np.float64)
        saved = np.zeros_like(scale)
        rest = (mean, var, saved, saved)
        if not args.is_test and count:
            if args.num_batches > 1 and sums is not None and sumsq is not None:
                count *= args.num_batches
                used = sums.astype(np.float64) / count
                spread = np.maximum(sumsq.astype(np.float64) / count - used**2, 0)
            else:
                used, spread = x.mean(axis=(0, 2)), x.var(axis=(0, 2))
            unbiased = spread * count / max(count - 1, 1)
            results = (
                args.momentum * mean + (1 - args.momentum) * used,
                args.momentum * var + (1 - args.momentum) * unbiased,
                used,
                1 / np.sqrt(spread + args.epsilon),
            )
            rest = tuple(result.astype(scale.dtype) for result in results)
        normal = (x - _column(used)) / np.sqrt(_column(spread) + args.epsilon)
        y = normal * _column(scale) + _column(bias)
        return (like_input(args, y, X), *rest)

    def gradient(op: GradientContext) -> Any:
        saved = [op.input(3), op.input(4)] if op.args.is_test else [op.output(3), op.output(4)]
        outputs = [op.input_grad(0), op.input_grad(1), op.input_grad(2)]
        inputs = [op.input(0), op.input(1), op.grad(0), *saved]
        if op.args.num_batches > 1:
            # Sums over all parts are expected under the names of the gradients.
            inputs += outputs[1:]
        return op.make("SpatialBNGradient", inputs, outputs)


def _require_sums(op: OpView, names: str) -> None:
    if op.args.num_batches > 1 and not op.args.is_test and len(op.inputs) != 7:
        problem = f"has {len(op.inputs)} inputs; with num_batches={op.args.num_batches} {names}"
        raise OperatorError("", f"{problem} are needed")
    if len(op.inputs) == 6:
        raise OperatorError("", f"has 6 inputs; {names} are given together or not at all")


_GRADIENT_INPUTS = (
    *("X", "scale", "dY", "saved_mean", "saved_inv_std"),
    *("scale_grad_sum", "bias_grad_sum"),
)


@operator(
    "SpatialBNGradient",
    inputs="X scale dY saved_mean saved_inv_std scale_grad_sum? bias_grad_sum?",
    outputs="dX scale_grad bias_grad",
    args=_ARGS,
    types=dict.fromkeys(
        (
            *("X", "scale", "dY", "saved_mean", "saved_inv_std"),
            *("scale_grad_sum", "bias_grad_sum"),
        ),
        FLOAT,
    ),
    inplace=[(5, 1), (6, 2)],
)
class SpatialBNGradient:
    """The gradient of SpatialBN.

    is_test=0: of the training form; saved_mean and saved_inv_std are its outputs.
    is_test=1: of the inference form; in their place stand the running mean and variance.
    (The original uses the training form here, too, which is wrong.)

    X, dY, dX: float (N, C, ...), or (N, ..., C) with order="NHWC".  All others: float (C,).
    num_batches > 1: scale_grad_sum and bias_grad_sum are the sums over all parts of the batch of
    what ChannelBackpropStats gives for one; scale_grad and bias_grad are these by num_batches (of
    an empty batch: 0).
    """

    def shape(
        X: Spec,
        scale: Spec,
        dY: Spec,
        saved_mean: Spec,
        saved_inv_std: Spec,
        scale_grad_sum: Spec | None,
        bias_grad_sum: Spec | None,
        op: OpView,
    ) -> tuple[Spec, Spec, Spec]:
        channels = channel_count("X", X, op.args)
        require_channels(
            channels,
            X,
            scale=scale,
            saved_mean=saved_mean,
            saved_inv_std=saved_inv_std,
            scale_grad_sum=scale_grad_sum,
            bias_grad_sum=bias_grad_sum,
        )
        require_same_shape("dY", dY, "X", X)
        _require_sums(op, "the sums of both gradients")
        return X, scale, scale

    def reference(
        X: Array,
        scale: Array,
        dY: Array,
        saved_mean: Array,
        saved_inv_std: Array,
        scale_grad_sum: Array | None,
        bias_grad_sum: Array | None,
        op: OpView,
    ) -> tuple[Array, Array, Array]:
        args = op.args
        x, dy = by_channel(args, X), by_channel(args, dY)
        inverse = saved_inv_std.astype(np.float64)
        if args.is_test:
            inverse = 1 / np.sqrt(inverse + args.epsilon)
        normal = (x - _column(saved_mean)) * _column(inverse)
        if args.num_batches > 1 and not args.is_test and X.size:
            assert scale_grad_sum is not None and bias_grad_sum is not None
            dscale = scale_grad_sum.astype(np.float64) / args.num_batches
            dbias = bias_grad_sum.astype(np.float64) / args.num_batches
        else:
            dscale, dbias = (dy * normal).sum(axis=(0, 2)), dy.sum(axis=(0, 2))
        dx = dy
        if not args.is_test:
            count = max(x.shape[0] * x.shape[2], 1)
            dx = dy - _column(dbias / count) - normal * _column(dscale / count)
        dx = dx * _column(scale) * _column(inverse)
        return like_input(args, dx, X), dscale.astype(scale.dtype), dbias.astype(scale.dtype)


def _stats_shape(X: Spec, op: OpView) -> tuple[Spec, Spec]:
    channels = channel_count("X", X, op.args)
    return Spec((channels,), X.dtype), Spec((channels,), X.dtype)


@operator(
    "ChannelStats",
    inputs="X",
    outputs="sum sumsq",
    args={"order": ORDER},
    types={"X": FLOAT},
    shape=_stats_shape,
)
class ChannelStats:
    """sum, sumsq = the sums of X and of X^2 over each channel, for SpatialBN with num_batches > 1.

    X: float (N, C, ...), or (N, ..., C) with order="NHWC".  sum, sumsq: float (C,).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(X: Array, op: OpView) -> tuple[Array, Array]:
        x = by_channel(op.args, X)
        return x.sum(axis=(0, 2)).astype(X.dtype), (x * x).sum(axis=(0, 2)).astype(X.dtype)


@operator(
    "ChannelBackpropStats",
    inputs="X mean inv_std output_grad",
    outputs="scale_grad bias_grad",
    args={"order": ORDER},
    types={"X": FLOAT, "mean": FLOAT, "inv_std": FLOAT, "output_grad": FLOAT},
)
class ChannelBackpropStats:
    """The gradients of scale and bias of SpatialBN for one part of a batch.

    scale_grad = sum of output_grad * (X - mean) * inv_std, bias_grad = sum of output_grad, over
    each channel.  X, output_grad: float (N, C, ...), or (N, ..., C) with order="NHWC"; all others:
    float (C,).  (The original takes "NHWC" and computes as for "NCHW".)
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        X: Spec, mean: Spec, inv_std: Spec, output_grad: Spec, op: OpView
    ) -> tuple[Spec, ...]:
        channels = channel_count("X", X, op.args)
        require_channels(channels, X, mean=mean, inv_std=inv_std)
        require_same_shape("output_grad", output_grad, "X", X)
        return mean, mean

    def reference(
        X: Array, mean: Array, inv_std: Array, output_grad: Array, op: OpView
    ) -> tuple[Array, Array]:
        x, dy = by_channel(op.args, X), by_channel(op.args, output_grad)
        scale = (dy * (x - _column(mean)) * _column(inv_std)).sum(axis=(0, 2))
        return scale.astype(X.dtype), dy.sum(axis=(0, 2)).astype(X.dtype)


@operator(
    "BatchMoments",
    inputs="X",
    outputs="mu var",
    args={"order": ORDER},
    types={"X": FLOAT},
)
class BatchMoments:
    """mu, var = the means of X and of X^2 over each channel.

    X: float (N, C, ...), or (N, ..., C) with order="NHWC", at least one element for each channel.
    mu, var: float (C,).  Mind that var is the second moment, not the variance.
    """

    def shape(X: Spec, op: OpView) -> tuple[Spec, Spec]:
        if 0 in X.shape:
            raise OperatorError("X", f"has shape {X.shape}; it must not be empty")
        return _stats_shape(X, op)

    def reference(X: Array, op: OpView) -> tuple[Array, Array]:
        x = by_channel(op.args, X)
        return x.mean(axis=(0, 2)).astype(X.dtype), (x * x).mean(axis=(0, 2)).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.grad(0), op.grad(1), op.input(0)]
        return op.make("BatchMomentsGradient", inputs, [op.input_grad(0)])


@operator(
    "BatchMomentsGradient",
    inputs="dmu dvar X",
    outputs="dX",
    args={"order": ORDER},
    types={"dmu": FLOAT, "dvar": FLOAT, "X": FLOAT},
)
class BatchMomentsGradient:
    """dX = (dmu + 2 * X * dvar) / (elements of a channel): the gradient of BatchMoments.

    X, dX: float (N, C, ...), or (N, ..., C) with order="NHWC".  dmu, dvar: float (C,).
    """

    def shape(dmu: Spec, dvar: Spec, X: Spec, op: OpView) -> Spec:
        channels = channel_count("X", X, op.args)
        require_channels(channels, X, dmu=dmu, dvar=dvar)
        return X

    def reference(dmu: Array, dvar: Array, X: Array, op: OpView) -> Array:
        x = by_channel(op.args, X)
        dx = (_column(dmu) + 2 * x * _column(dvar)) / max(x.shape[0] * x.shape[2], 1)
        return like_input(op.args, dx, X)


_AFFINE_ARGS: dict[str, Argument] = {"order": ORDER, "is_learnable": Bool(False)}


@operator(
    "AffineChannel",
    inputs="X scale bias",
    outputs="Y",
    args=_AFFINE_ARGS,
    types={"X": FLOAT, "scale": FLOAT, "bias": FLOAT},
    inplace=[(0, 0)],
)
class AffineChannel:
    """Y = X * scale + bias, channel by channel: a frozen SpatialBN.

    X, Y: float (N, C, ...), or (N, ..., C) with order="NHWC".  scale, bias: float (C,).
    is_learnable: whether scale and bias get gradients, too; then Y cannot overwrite X.
    """

    def shape(X: Spec, scale: Spec, bias: Spec, op: OpView) -> Spec:
        if op.args.is_learnable and op.input(0) == op.output(0):
            raise OperatorError("Y", "cannot overwrite X with is_learnable=1")
        require_channels(channel_count("X", X, op.args), X, scale=scale, bias=bias)
        return X

    def reference(X: Array, scale: Array, bias: Array, op: OpView) -> Array:
        y = by_channel(op.args, X) * _column(scale) + _column(bias)
        return like_input(op.args, y, X)

    def gradient(op: GradientContext) -> Any:
        if op.args.is_learnable:
            outputs = [op.input_grad(index) for index in range(3)]
            inputs = [op.grad(0), op.input(0), op.input(1)]
            return op.make("AffineChannelGradient", inputs, outputs)
        return op.make("AffineChannelGradient", [op.grad(0), op.input(1)], [op.input_grad(0)])


@operator(
    "AffineChannelGradient",
    inputs="dY scale_or_X scale?",
    outputs="dX scale_grad? bias_grad?",
    args=_AFFINE_ARGS,
    types={"dY": FLOAT, "scale_or_X": FLOAT, "scale": FLOAT},
    inplace=[(0, 0)],
)
class AffineChannelGradient:
    """The gradient of AffineChannel: dX = dY * scale, and with is_learnable=1 those of scale and
    bias.

    Inputs (dY, scale) and output dX; with is_learnable=1 (dY, X, scale) and all three outputs.
    """

    def shape(dY: Spec, scale_or_X: Spec, scale: Spec | None, op: OpView) -> tuple[Spec, ...]:
        needed = (3, 3) if op.args.is_learnable else (2, 1)
        if (len(op.inputs), len(op.outputs)) != needed:
            problem = f"has {len(op.inputs)} inputs and {len(op.outputs)} outputs; with "
            problem += (
                f"is_learnable={int(op.args.is_learnable)} it has {needed[0]} and {needed[1]}"
            )
            raise OperatorError("", problem)
        channels = channel_count("dY", dY, op.args)
        if scale is None:
            require_channels(channels, dY, scale_or_X=scale_or_X)
            return (dY,)
        require_channels(channels, dY, scale=scale)
        require_same_shape("scale_or_X", scale_or_X, "dY", dY)
        return dY, scale, scale

    def reference(
        dY: Array, scale_or_X: Array, scale: Array | None, op: OpView
    ) -> tuple[Array, ...]:
        dy = by_channel(op.args, dY)
        if scale is None:
            return (like_input(op.args, dy * _column(scale_or_X), dY),)
        products = dy * by_channel(op.args, scale_or_X)
        return (
            like_input(op.args, dy * _column(scale), dY),
            products.sum(axis=(0, 2)).astype(dY.dtype),
            dy.sum(axis=(0, 2)).astype(dY.dtype),
        )
