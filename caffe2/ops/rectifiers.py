# mypy: disable-error-code="misc, no-any-return"
"""Activations: relatives of Relu and Sigmoid, smooth ones, and Clip."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, Int, OperatorError, Str
from caffe2.ops.datatypes import DOUBLE, FLOAT
from caffe2.ops.declaration import (
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.mapping import Gradient, function
from caffe2.ops.shapes import canonical_axis, require_same_shape

_LARGEST = float(np.finfo(np.float32).max)


def _sigmoid(x: Array) -> Array:
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _normal(x: Array) -> Array:
    """How much of the normal distribution lies below x."""
    return (1 + _erf(x / math.sqrt(2))) / 2


def _clipped(x: Array, min: float, max: float) -> Array:
    y = np.where(x < min, min, x)
    return np.where(y > max, max, y)


function(
    "Clip",
    "Y = min(max(X, min), max), element by element.\n\n"
    "min, max: by default the least and the largest float; NaN is no bound.\n"
    "Where min > max, Y is max.",
    _clipped,
    Gradient(
        "Y dY",
        "dY where min < Y < max, else 0",
        lambda y, dy, min, max: np.where((y > min) & (y < max), dy, 0),
        [(1, 0)],
    ),
    args={"min": Float(-_LARGEST), "max": Float(_LARGEST)},
)
function(
    "LeakyRelu",
    "Y = X where X >= 0, else alpha * X, element by element (Maas et al., 2013).",
    lambda x, alpha: np.where(x < 0, alpha * x, x),
    Gradient(
        "Y dY",
        "dY where Y >= 0, else alpha * dY",
        lambda y, dy, alpha: np.where(y < 0, alpha * dy, dy),
        [(1, 0)],
    ),
    args={"alpha": Float(0.01)},
)
function(
    "ThresholdedRelu",
    "Y = X where X > alpha, else 0, element by element (Konda et al., 2014, arXiv 1402.3337).",
    lambda x, alpha: np.where(x > alpha, x, 0),
    Gradient(
        "Y dY",
        "dY where Y is not 0, else 0",
        lambda y, dy, alpha: np.where(y != 0, dy, 0),
        [(1, 0)],
    ),
    args={"alpha": Float(1.0)},
)
function(
    "ReluN",
    "Y = min(max(X, 0), n), element by element.",
    lambda x, n: np.clip(x, 0, n),
    Gradient(
        "Y dY",
        "dY where 0 < Y < n, else 0",
        lambda y, dy, n: np.where((y > 0) & (y < n), dy, 0),
        [(1, 0)],
    ),
    args={"n": Float(6.0, min=float(np.finfo(np.float32).tiny))},
)
function(
    "HardSigmoid",
    "Y = min(max(alpha * X + beta, 0), 1), element by element.",
    lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    Gradient(
        "Y dY",
        "alpha * dY where 0 < Y < 1, else 0",
        lambda y, dy, alpha, beta: np.where((y > 0) & (y < 1), alpha * dy, 0),
        [(1, 0)],
    ),
    args={"alpha": Float(0.2), "beta": Float(0.5)},
)
function(
    "Elu",
    "Y = X where X >= 0, else alpha * (e^X - 1), element by element\n"
    "    (Clevert et al., 2015, arXiv 1511.07289).\n\n"
    "alpha: not negative, or the gradient, which is computed from Y, is wrong.",
    lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x),
    Gradient(
        "Y dY",
        "dY where Y >= 0, else dY * (Y + alpha)",
        lambda y, dy, alpha: np.where(y < 0, dy * (y + alpha), dy),
        [(1, 0)],
    ),
    args={"alpha": Float(1.0)},
)
function(
    "Selu",
    "Y = scale * (X where X >= 0, else alpha * (e^X - 1)), element by element\n"
    "    (Klambauer et al., 2017, arXiv 1706.02515).",
    lambda x, alpha, scale: scale * np.where(x < 0, alpha * np.expm1(x), x),
    Gradient(
        "Y dY",
        "scale * dY where Y > 0, else dY * (Y + alpha * scale)",
        lambda y, dy, alpha, scale: np.where(y > 0, scale * dy, dy * (y + alpha * scale)),
        [(1, 0)],
    ),
    args={
        "alpha": Float(1.6732632423543772848170429916717),
        "scale": Float(1.0507009873554804934193349852946),
    },
)
function(
    "Softplus",
    "Y = ln(1 + e^X), element by element.",
    _softplus,
    Gradient("Y dY", "dY * (1 - e^-Y)", lambda y, dy: -dy * np.expm1(-y), [(1, 0)]),
)
function(
    "Softsign",
    "Y = X / (1 + |X|), element by element.",
    lambda x: x / (1 + np.abs(x)),
    Gradient("X dY", "dY / (1 + |X|)^2", lambda x, dy: dy / np.square(1 + np.abs(x)), [(1, 0)]),
)


def _swish_slope(x: Array) -> Array:
    s = _sigmoid(x)
    return s + x * s * (1 - s)


def _mish_slope(x: Array) -> Array:
    t = np.tanh(_softplus(x))
    return t + x * _sigmoid(x) * (1 - t * t)


function(
    "Swish",
    "Y = X / (1 + e^-X), element by element (Ramachandran et al., 2017, arXiv 1710.05941).",
    lambda x: x * _sigmoid(x),
    Gradient("X Y dY", "dY * (s + X * s * (1 - s)), s = 1 / (1 + e^-X)",
             lambda x, dy: dy * _swish_slope(x), [(2, 0)]),
    inplace=(),
)  # fmt: skip
function(
    "Mish",
    "Y = X * tanh(ln(1 + e^X)), element by element (Misra, 2019, arXiv 1908.08681).",
    lambda x: x * np.tanh(_softplus(x)),
    Gradient("X Y dY", "dY * (t + X / (1 + e^-X) * (1 - t^2)), t = tanh(ln(1 + e^X))",
             lambda x, dy: dy * _mish_slope(x)),
    types=FLOAT | DOUBLE,
    inplace=(),
)  # fmt: skip

_GELU_SCALE = math.sqrt(2 / math.pi)


def _gelu(x: Array, fast_gelu: bool) -> Array:
    if not fast_gelu:
        return x * _normal(x)
    return 0.5 * x * (1 + np.tanh(_GELU_SCALE * x * (1 + 0.044715 * x * x)))


def _gelu_gradient(x: Array, dy: Array, fast_gelu: bool) -> Array:
    if not fast_gelu:
        return dy * (_normal(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi))
    t = np.tanh(_GELU_SCALE * x * (1 + 0.044715 * x * x))
    slope = _GELU_SCALE * (1 + 3 * 0.044715 * x * x)
    return 0.5 * dy * (1 + t + x * (1 - t * t) * slope)


function(
    "Gelu",
    "Y = X * (1 + erf(X / sqrt(2))) / 2, element by element\n"
    "    (Hendrycks and Gimpel, 2016, arXiv 1606.08415).\n\n"
    "fast_gelu: Y = X * (1 + tanh(sqrt(2 / pi) * (X + 0.044715 * X^3))) / 2 instead, which is\n"
    "    near to it.",
    _gelu,
    Gradient("dY X", "dY * the slope of Gelu at X", _gelu_gradient),
    args={"fast_gelu": Bool(False)},
    inplace=(),
)

_ORDER = {"order": Str("NCHW", choices=["NCHW", "NHWC"])}


def _channels(X: Spec, slope: Spec, op: OpView) -> int:
    """The axis of channels, after a check that there is one slope, or one for each."""
    count = math.prod(slope.shape)
    if count == 1:
        return 0
    rank = len(X.shape)
    axis = rank - 1 if op.args.order == "NHWC" else 1
    if not 0 < axis < rank or X.shape[axis] != count:
        needed = f"one value or one for each channel of {X.shape} is needed"
        raise OperatorError("Slope", f"has shape {slope.shape}; {needed}")
    return axis


def _slopes(X: Array, Slope: Array, op: OpView) -> tuple[Array, tuple[int, ...]]:
    """Slope as X is broadcast with it, and the axes it is repeated along."""
    if Slope.size == 1:
        return Slope.reshape((1,) * X.ndim), tuple(range(X.ndim))
    axis = _channels(Spec(X.shape, X.dtype), Spec(Slope.shape, Slope.dtype), op)
    others = tuple(d for d in range(X.ndim) if d != axis)
    return np.expand_dims(Slope.reshape(-1), others), others


@operator(
    "PRelu",
    inputs="X Slope",
    outputs="Y",
    args=_ORDER,
    types={"X": FLOAT, "Slope": FLOAT},
    inplace=[(0, 0)],
)
class PRelu:
    """Y = X where X > 0, else Slope * X, element by element (He et al., 2015, arXiv 1502.01852).

    X, Y: float tensors of one shape.
    Slope: one float, or one for each channel of X: its second dimension, or with order="NHWC" its
    last one.
    """

    def shape(X: Spec, Slope: Spec, op: OpView) -> Spec:
        _channels(X, Slope, op)
        return X

    def reference(X: Array, Slope: Array, op: OpView) -> Array:
        slope, _ = _slopes(X, Slope, op)
        return np.where(X > 0, X, X * slope.astype(np.float64)).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.output(0), op.grad(0), op.input(0), op.input(1)]
        return op.make("PReluGradient", inputs, [op.input_grad(0), op.input_grad(1)])


@operator(
    "PReluGradient",
    inputs="Y dY X Slope",
    outputs="dX dSlope",
    args=_ORDER,
    types={"Y": FLOAT, "dY": FLOAT, "X": FLOAT, "Slope": FLOAT},
)
class PReluGradient:
    """dX = dY where X > 0, else Slope * dY; dSlope = the sum of X * dY where X <= 0, of all or of
    each channel: the gradients of PRelu.

    Y, dY, X, dX: float tensors of one shape.  Slope, dSlope, order: as for PRelu.
    """

    def shape(Y: Spec, dY: Spec, X: Spec, Slope: Spec, op: OpView) -> tuple[Spec, Spec]:
        require_same_shape("Y", Y, "X", X)
        require_same_shape("dY", dY, "X", X)
        _channels(X, Slope, op)
        return X, Slope

    def reference(Y: Array, dY: Array, X: Array, Slope: Array, op: OpView) -> tuple[Array, Array]:
        slope, others = _slopes(X, Slope, op)
        dy = dY.astype(np.float64)
        dx = np.where(X > 0, dy, slope * dy)
        parts = np.where(X > 0, 0, X * dy).sum(axis=others)
        return dx.astype(X.dtype), parts.reshape(Slope.shape).astype(X.dtype)


@operator("Glu", inputs="X", outputs="Y", args={"dim": Int(-1)}, types={"X": FLOAT})
class Glu:
    """Y = A / (1 + e^-B), element by element, A and B the first and the second half of X along
    the dimension `dim` (gated linear unit, Dauphin et al., 2016, arXiv 1612.08083).

    X: float tensor with an even number of elements along `dim`.  Y: half of that.
    dim: -rank <= dim < rank.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        axis = canonical_axis(op.args.dim, len(X.shape), "dim")
        if X.shape[axis] % 2:
            raise OperatorError("X", f"has shape {X.shape}; dimension {axis} cannot be halved")
        return Spec((*X.shape[:axis], X.shape[axis] // 2, *X.shape[axis + 1 :]), X.dtype)

    def reference(X: Array, op: OpView) -> Array:
        first, second = np.split(X.astype(np.float64), 2, axis=op.args.dim)
        return (first * _sigmoid(second)).astype(X.dtype)
