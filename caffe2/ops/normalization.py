# mypy: disable-error-code="misc, no-any-return"
"""Normalization of single rows: over the axes of a layer, over groups of channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops import geometry
from caffe2.ops.arguments import Argument, Bool, Float, Int, OperatorError
from caffe2.ops.batch_norm import ORDER, channel_count, require_channels
from caffe2.ops.datatypes import DOUBLE, FLOAT
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import (
    canonical_axis,
    require_same_shape,
    require_same_types,
    size,
    split_at,
)

# Layers


def _rows(name: str, X: Spec, op: OpView) -> tuple[tuple[int, ...], int]:
    """The dimensions before `axis`, and how many elements each row behind them has."""
    axis = canonical_axis(op.args.axis, len(X.shape))
    return X.shape[:axis], split_at(X.shape, axis)[1]


def _require_row(columns: int, X: Spec, **inputs: Spec | None) -> None:
    for name, spec in inputs.items():
        if spec is not None and size(spec) != columns:
            problem = (
                f"has shape {spec.shape}; {columns} elements are needed, X has shape {X.shape}"
            )
            raise OperatorError(name, problem)


def _as_rows(X: Array, op: OpView) -> Array:
    rows = split_at(X.shape, canonical_axis(op.args.axis, X.ndim))
    return X.astype(np.float64).reshape(rows)


def _row_gradient(slope: Array, normal: Array, inverse: Array, centered: bool) -> Array:
    """The gradient of rows x from that of their normal form: slope."""
    count = max(slope.shape[1], 1)
    along = normal * ((slope * normal).sum(axis=1, keepdims=True) / count)
    mean = slope.sum(axis=1, keepdims=True) / count if centered else 0
    return (slope - mean - along) * inverse


_LAYER_ARGS: dict[str, Argument] = {
    "axis": Int(1),
    "epsilon": Float(1e-5, min=0),
    "elementwise_affine": Bool(False),
}


def _require_affine(op: OpView, inputs: int, outputs: int) -> None:
    if op.args.elementwise_affine and (len(op.inputs), len(op.outputs)) != (inputs, outputs):
        raise OperatorError(
            "",
            f"has {len(op.inputs)} inputs and {len(op.outputs)} outputs; with "
            f"elementwise_affine=1 it has {inputs} and {outputs}",
        )


@operator(
    "LayerNorm",
    inputs="X gamma? beta?",
    outputs="Y mean std",
    helpers=[1, 2],
    args=_LAYER_ARGS,
    types={"X": FLOAT, "gamma": FLOAT, "beta": FLOAT},
)
class LayerNorm:
    """Y = (X - mean) / std for each row of X, with std = sqrt(variance + epsilon) (Ba, Kiros and
    Hinton, 2016, arXiv 1607.06450).

    X, Y: float; a row is what lies behind `axis`.  mean, std: float with the dimensions before
    `axis` and a 1.  elementwise_affine=1: Y = normal form * gamma + beta, whose elements belong to
    those of a row; with 0 these inputs are not looked at.
    """

    def shape(X: Spec, gamma: Spec | None, beta: Spec | None, op: OpView) -> tuple[Spec, ...]:
        _require_affine(op, 3, 3)
        outer, columns = _rows("X", X, op)
        if op.args.elementwise_affine:
            _require_row(columns, X, gamma=gamma, beta=beta)
        moment = Spec((*outer, 1), X.dtype)
        return X, moment, moment

    def reference(
        X: Array, gamma: Array | None, beta: Array | None, op: OpView
    ) -> tuple[Array, ...]:
        x = _as_rows(X, op)
        count = max(x.shape[1], 1)
        mean = x.sum(axis=1, keepdims=True) / count
        std = np.sqrt(((x - mean) ** 2).sum(axis=1, keepdims=True) / count + op.args.epsilon)
        y = (x - mean) / std
        if op.args.elementwise_affine and gamma is not None and beta is not None:
            y = y * gamma.reshape(-1) + beta.reshape(-1)
        outer = (*X.shape[: canonical_axis(op.args.axis, X.ndim)], 1)
        moments = (mean.reshape(outer).astype(X.dtype), std.reshape(outer).astype(X.dtype))
        return (y.reshape(X.shape).astype(X.dtype), *moments)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.grad(0), op.output(0), op.output(1), op.output(2), op.input(0)]
        outputs = [op.input_grad(0)]
        if op.args.elementwise_affine:
            inputs.append(op.input(1))
            outputs += [op.input_grad(1), op.input_grad(2)]
        return op.make("LayerNormGradient", inputs, outputs)


@operator(
    "LayerNormGradient",
    inputs="dY Y mean std X gamma?",
    outputs="dX dgamma? dbeta?",
    args=_LAYER_ARGS,
    types=dict.fromkeys(("dY", "Y", "mean", "std", "X", "gamma"), FLOAT),
)
class LayerNormGradient:
    """The gradient of LayerNorm from its input, mean and std (Y is not looked at).

    dX: float with the shape of X; with elementwise_affine=1 also dgamma and dbeta with that of
    gamma.
    """

    def shape(
        dY: Spec, Y: Spec, mean: Spec, std: Spec, X: Spec, gamma: Spec | None, op: OpView
    ) -> tuple[Spec, ...]:
        _require_affine(op, 6, 3)
        if not op.args.elementwise_affine and len(op.outputs) > 1:
            raise OperatorError("", "has more than 1 output; that needs elementwise_affine=1")
        outer, columns = _rows("X", X, op)
        require_same_shape("dY", dY, "X", X)
        _require_row(math.prod(outer), X, mean=mean, std=std)
        if not op.args.elementwise_affine or gamma is None:
            return (X,)
        _require_row(columns, X, gamma=gamma)
        return X, gamma, gamma

    def reference(
        dY: Array, Y: Array, mean: Array, std: Array, X: Array, gamma: Array | None, op: OpView
    ) -> tuple[Array, ...]:
        x, dy = _as_rows(X, op), _as_rows(dY, op)
        inverse = 1 / std.astype(np.float64).reshape(-1, 1)
        normal = (x - mean.reshape(-1, 1)) * inverse
        if not op.args.elementwise_affine or gamma is None:
            dx = _row_gradient(dy, normal, inverse, True)
            return (dx.reshape(X.shape).astype(X.dtype),)
        dx = _row_gradient(dy * gamma.reshape(-1), normal, inverse, True)
        rest = ((dy * normal).sum(axis=0), dy.sum(axis=0))
        affine = (values.reshape(gamma.shape).astype(X.dtype) for values in rest)
        return (dx.reshape(X.shape).astype(X.dtype), *affine)


_RMS_ARGS: dict[str, Argument] = {"axis": Int(1), "eps": Float(1e-5, min=0)}


@operator(
    "RMSNorm",
    inputs="X gamma beta",
    outputs="Y rrms",
    helpers=[1],
    args=_RMS_ARGS,
    types=dict.fromkeys(("X", "gamma", "beta"), FLOAT | DOUBLE),
)
class RMSNorm:
    """Y = X * rrms * gamma + beta for each row of X, with rrms = 1 / sqrt(mean of X^2 + eps)
    (Zhang and Sennrich, 2019, arXiv 1910.07467).

    X, Y: float or double; a row is what lies behind `axis`.  gamma, beta: of this type, with as
    many elements as a row.  rrms: of this type, with the dimensions before `axis`.
    """

    def shape(X: Spec, gamma: Spec, beta: Spec, op: OpView) -> tuple[Spec, Spec]:
        require_same_types((X, gamma, beta), op)
        outer, columns = _rows("X", X, op)
        _require_row(columns, X, gamma=gamma, beta=beta)
        return X, Spec(outer, X.dtype)

    def reference(X: Array, gamma: Array, beta: Array, op: OpView) -> tuple[Array, Array]:
        x = _as_rows(X, op)
        squares = (x * x).sum(axis=1, keepdims=True) / max(x.shape[1], 1)
        rrms = 1 / np.sqrt(squares + op.args.eps)
        y = x * rrms * gamma.reshape(-1) + beta.reshape(-1)
        outer = X.shape[: canonical_axis(op.args.axis, X.ndim)]
        return y.reshape(X.shape).astype(X.dtype), rrms.reshape(outer).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.grad(0), op.input(0), op.input(1), op.output(1)]
        return op.make("RMSNormGradient", inputs, [op.input_grad(i) for i in range(3)])


@operator(
    "RMSNormGradient",
    inputs="dY X gamma rrms",
    outputs="dX dgamma dbeta",
    args=_RMS_ARGS,
    types=dict.fromkeys(("dY", "X", "gamma", "rrms"), FLOAT | DOUBLE),
)
class RMSNormGradient:
    """The gradient of RMSNorm.

    X, gamma, rrms: as for RMSNorm; dY: with the shape of X.  All have the type of X.
    dX: with the shape of X; dgamma, dbeta: with the shape of gamma.
    """

    def shape(dY: Spec, X: Spec, gamma: Spec, rrms: Spec, op: OpView) -> tuple[Spec, ...]:
        require_same_types((dY, X, gamma, rrms), op)
        outer, columns = _rows("X", X, op)
        require_same_shape("dY", dY, "X", X)
        _require_row(columns, X, gamma=gamma)
        _require_row(math.prod(outer), X, rrms=rrms)
        return X, gamma, gamma

    def reference(dY: Array, X: Array, gamma: Array, rrms: Array, op: OpView) -> tuple[Array, ...]:
        x, dy = _as_rows(X, op), _as_rows(dY, op)
        inverse = rrms.astype(np.float64).reshape(-1, 1)
        normal = x * inverse
        dx = _row_gradient(dy * gamma.reshape(-1), normal, inverse, False)
        rest = ((dy * normal).sum(axis=0), dy.sum(axis=0))
        affine = (values.reshape(gamma.shape).astype(X.dtype) for values in rest)
        return (dx.reshape(X.shape).astype(X.dtype), *affine)


# Groups of channels


def _groups(channels: int, group: int) -> int:
    if channels % group:
        problem = f"is {group}; X has {channels} channels, which must be a multiple"
        raise OperatorError("argument 'group'", problem)
    return group


def _by_group(X: Array, group: int, op: OpView) -> Array:
    """X in float64 as (N, group, elements)."""
    first = geometry.channels_first(op.args, X).astype(np.float64)
    return first.reshape(X.shape[0], group, math.prod(first.shape[1:]) // group)


def _channel_wise(values: Array, X: Array, op: OpView) -> Array:
    """(C,) so that it can be multiplied with X, channels first."""
    return values.astype(np.float64).reshape(-1, *(1,) * (X.ndim - 2))


def _normalize(
    X: Array, scale: Array, bias: Array, group: int, op: OpView
) -> tuple[Array, Array, Array]:
    x = _by_group(X, group, op)
    mean = x.mean(axis=2, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axis=2, keepdims=True) + op.args.epsilon)
    first = ((x - mean) * inverse).reshape(geometry.channels_first(op.args, X).shape)
    y = first * _channel_wise(scale, X, op) + _channel_wise(bias, X, op)
    moments = (value[:, :, 0].astype(X.dtype) for value in (mean, inverse))
    return (geometry.ordered(op.args, y).astype(X.dtype), *moments)


def _normalize_gradient(
    X: Array, scale: Array, dY: Array, mean: Array, inverse: Array, group: int, op: OpView
) -> tuple[Array, Array, Array]:
    shape = geometry.channels_first(op.args, X).shape
    x, dy = _by_group(X, group, op), geometry.channels_first(op.args, dY).astype(np.float64)
    rstd = inverse.astype(np.float64)[:, :, np.newaxis]
    normal = (x - mean[:, :, np.newaxis]) * rstd
    slope = (dy * _channel_wise(scale, X, op)).reshape(normal.shape)
    along = normal * (slope * normal).mean(axis=2, keepdims=True)
    dx = ((slope - slope.mean(axis=2, keepdims=True) - along) * rstd).reshape(shape)
    axes = (0, *range(2, X.ndim))
    dscale = (dy * normal.reshape(shape)).sum(axis=axes).astype(X.dtype)
    return geometry.ordered(op.args, dx).astype(X.dtype), dscale, dy.sum(axis=axes).astype(X.dtype)


def _picture_channels(X: Spec, op: OpView) -> int:
    channels = channel_count("X", X, op.args)
    if 0 in X.shape[1:]:
        raise OperatorError("X", f"has shape {X.shape}; only the batch may be empty")
    return channels


_INSTANCE_ARGS: dict[str, Argument] = {"epsilon": Float(1e-5, min=0), "order": ORDER}


@operator(
    "InstanceNorm",
    inputs="X scale bias",
    outputs="Y saved_mean? saved_inv_std?",
    helpers=[1, 2],
    args=_INSTANCE_ARGS,
    types={"X": FLOAT, "scale": FLOAT, "bias": FLOAT},
    inplace=[(0, 0)],
)
class InstanceNorm:
    """Y = (X - mean) / sqrt(variance + epsilon) * scale + bias, each channel of each picture for
    itself (Ulyanov, Vedaldi and Lempitsky, 2016, arXiv 1607.08022).

    X, Y: float (N, C, ...), or (N, ..., C) with order="NHWC".  scale, bias: float (C,).
    saved_mean, saved_inv_std: float (N, C), the mean and 1 / sqrt(variance + epsilon).
    """

    def shape(X: Spec, scale: Spec, bias: Spec, op: OpView) -> tuple[Spec, ...]:
        channels = _picture_channels(X, op)
        require_channels(channels, X, scale=scale, bias=bias)
        moment = Spec((X.shape[0], channels), X.dtype)
        return X, moment, moment

    def reference(X: Array, scale: Array, bias: Array, op: OpView) -> tuple[Array, ...]:
        return _normalize(X, scale, bias, scale.size, op)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.input(2), op.grad(0), *op.outputs[1:]]
        return op.make("InstanceNormGradient", inputs, [op.input_grad(i) for i in range(3)])


@operator(
    "InstanceNormGradient",
    inputs="X scale bias dY saved_mean? saved_inv_std?",
    outputs="dX dscale dbias",
    args=_INSTANCE_ARGS,
    types=dict.fromkeys(("X", "scale", "bias", "dY", "saved_mean", "saved_inv_std"), FLOAT),
)
class InstanceNormGradient:
    """The gradient of InstanceNorm.  What of saved_mean and saved_inv_std is missing is computed.

    X, scale, bias and the saved ones: as for InstanceNorm; dY: float with the shape of X.
    dX: with the shape of X; dscale, dbias: float (C,).
    """

    def shape(
        X: Spec,
        scale: Spec,
        bias: Spec,
        dY: Spec,
        saved_mean: Spec | None,
        saved_inv_std: Spec | None,
        op: OpView,
    ) -> tuple[Spec, ...]:
        channels = _picture_channels(X, op)
        require_channels(channels, X, scale=scale, bias=bias)
        require_same_shape("dY", dY, "X", X)
        moment = Spec((X.shape[0], channels), X.dtype)
        for name, spec in (("saved_mean", saved_mean), ("saved_inv_std", saved_inv_std)):
            if spec is not None:
                require_same_shape(name, spec, "each channel of each picture", moment)
        return X, scale, scale

    def reference(
        X: Array,
        scale: Array,
        bias: Array,
        dY: Array,
        saved_mean: Array | None,
        saved_inv_std: Array | None,
        op: OpView,
    ) -> tuple[Array, ...]:
        _, mean, inverse = _normalize(X, scale, bias, scale.size, op)
        mean = mean if saved_mean is None else saved_mean
        inverse = inverse if saved_inv_std is None else saved_inv_std
        return _normalize_gradient(X, scale, dY, mean, inverse, scale.size, op)


_GROUP_ARGS: dict[str, Argument] = {
    "group": Int(32, min=1),
    "epsilon": Float(1e-5, min=0),
    "order": ORDER,
}


@operator(
    "GroupNorm",
    inputs="X gamma beta",
    outputs="Y mean? inv_std?",
    helpers=[1, 2],
    args=_GROUP_ARGS,
    types={"X": FLOAT, "gamma": FLOAT, "beta": FLOAT},
)
class GroupNorm:
    """Y = (X - mean) / sqrt(variance + epsilon) * gamma + beta, with moments over each of `group`
    groups of neighbouring channels of each picture (Wu and He, 2018, arXiv 1803.08494).

    X, Y: float (N, C, ...), or (N, ..., C) with order="NHWC".  gamma, beta: float (C,).
    mean, inv_std: float (N, group), the mean and 1 / sqrt(variance + epsilon); the gradient needs
    them.
    """

    def shape(X: Spec, gamma: Spec, beta: Spec, op: OpView) -> tuple[Spec, ...]:
        channels = _picture_channels(X, op)
        require_channels(channels, X, gamma=gamma, beta=beta)
        if len(op.outputs) == 2:
            raise OperatorError("", "has 2 outputs; 1 or 3 are needed")
        moment = Spec((X.shape[0], _groups(channels, op.args.group)), X.dtype)
        return X, moment, moment

    def reference(X: Array, gamma: Array, beta: Array, op: OpView) -> tuple[Array, ...]:
        return _normalize(X, gamma, beta, op.args.group, op)

    def gradient(op: GradientContext) -> Any:
        if len(op.outputs) != 3:
            raise OperatorError("", f"has {len(op.outputs)} outputs; its gradient needs all 3")
        inputs = [op.grad(0), *(op.input(i) for i in range(3)), op.output(1), op.output(2)]
        return op.make("GroupNormGradient", inputs, [op.input_grad(i) for i in range(3)])


@operator(
    "GroupNormGradient",
    inputs="dY X gamma beta mean inv_std",
    outputs="dX dgamma dbeta",
    args=_GROUP_ARGS,
    types=dict.fromkeys(("dY", "X", "gamma", "beta", "mean", "inv_std"), FLOAT),
)
class GroupNormGradient:
    """The gradient of GroupNorm.

    X, gamma, beta, mean, inv_std: as for GroupNorm; dY: float with the shape of X.
    dX: float with the shape of X; dgamma, dbeta: float (C,).
    """

    def shape(
        dY: Spec, X: Spec, gamma: Spec, beta: Spec, mean: Spec, inv_std: Spec, op: OpView
    ) -> tuple[Spec, ...]:
        channels = _picture_channels(X, op)
        require_channels(channels, X, gamma=gamma, beta=beta)
        require_same_shape("dY", dY, "X", X)
        moment = Spec((X.shape[0], _groups(channels, op.args.group)), X.dtype)
        for name, spec in (("mean", mean), ("inv_std", inv_std)):
            require_same_shape(name, spec, "each group of each picture", moment)
        return X, gamma, gamma

    def reference(
        dY: Array, X: Array, gamma: Array, beta: Array, mean: Array, inv_std: Array, op: OpView
    ) -> tuple[Array, ...]:
        return _normalize_gradient(X, gamma, dY, mean, inv_std, op.args.group, op)
