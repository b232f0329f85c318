# mypy: disable-error-code="misc, no-any-return"
"""Sums, norms and moments: SumElements, LpNorm, Normalize, Moments."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Int, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT32
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.reduction import AXES_ARGS, count, kept_shape, reduced_axes, spread
from caffe2.ops.shapes import (
    canonical_axis,
    require_same_shape,
    require_same_size,
    require_single,
    size,
)

_AVERAGE = {"average": Bool(False)}
_LP_ARGS = {"p": Int(2, min=1, max=2), "average": Bool(False)}
# No norm that is divided by counts as less.
_SMALLEST = 1e-12


def _scalar(X: Spec) -> Spec:
    return Spec((), X.dtype)


def _share(X: Array, op: OpView) -> float:
    """What the sum of all elements is multiplied with."""
    return 1 / max(1, X.size) if op.args.average else 1.0


@operator("SumElements", inputs="X", outputs="sum", args=_AVERAGE, types={"X": FLOAT})
class SumElements:
    """sum = the sum of all elements of X, or with `average` their mean (0 of none).

    X: float, any shape.  sum: float scalar, shape ().
    """

    def shape(X: Spec) -> Spec:
        return _scalar(X)

    def reference(X: Array, op: OpView) -> Array:
        return np.asarray(X.astype(np.float64).sum() * _share(X, op)).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("SumElementsGradient", [op.input(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "SumElementsGradient",
    inputs="X dsum",
    outputs="dX",
    args=_AVERAGE,
    types={"X": FLOAT, "dsum": FLOAT},
)
class SumElementsGradient:
    """dX = dsum, or with `average` dsum / (number of elements), everywhere.

    The gradient of SumElements.  X, dX: float of one shape.  dsum: float with one element.
    """

    def shape(X: Spec, dsum: Spec) -> Spec:
        require_single("dsum", dsum)
        return X

    def reference(X: Array, dsum: Array, op: OpView) -> Array:
        return np.full(X.shape, float(dsum.reshape(())) * _share(X, op), X.dtype)


@operator("SumElementsInt", inputs="X", outputs="sum", types={"X": INT32})
class SumElementsInt:
    """sum = the sum of all elements of X, which wraps around.

    X: int32, any shape.  sum: int32 scalar, shape ().
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(X: Spec) -> Spec:
        return _scalar(X)

    def reference(X: Array) -> Array:
        return np.asarray(X.sum(dtype=X.dtype))


@operator("SumSqrElements", inputs="X", outputs="sum", args=_AVERAGE, types={"X": FLOAT | DOUBLE})
class SumSqrElements:
    """sum = the sum of the squares of all elements of X, or with `average` their mean.

    X: float or double, any shape.  sum: scalar of that type, shape ().
    """

    def shape(X: Spec) -> Spec:
        return _scalar(X)

    def reference(X: Array, op: OpView) -> Array:
        return np.asarray((X.astype(np.float64) ** 2).sum() * _share(X, op)).astype(X.dtype)


@operator("LpNorm", inputs="X", outputs="Z", args=_LP_ARGS, types={"X": FLOAT})
class LpNorm:
    """Z = the sum of |X| (p = 1) or of X^2 (p = 2, without a root); with `average` their mean.

    X: float, any shape, not empty.  Z: float (1,).
    """

    def shape(X: Spec) -> Spec:
        if size(X) == 0:
            raise OperatorError("X", f"has shape {X.shape}; at least one element is needed")
        return Spec((1,), X.dtype)

    def reference(X: Array, op: OpView) -> Array:
        total = (np.abs(X.astype(np.float64)) ** op.args.p).sum() * _share(X, op)
        return np.array([total]).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("LpNormGradient", [op.input(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "LpNormGradient",
    inputs="X dout",
    outputs="dx",
    args=_LP_ARGS,
    types={"X": FLOAT, "dout": FLOAT},
)
class LpNormGradient:
    """dx = dout * sign(X) (p = 1) or dout * 2 X (p = 2); with `average` divided by the size of X.

    The gradient of LpNorm.  X, dx: float of one shape.  dout: float with one element.
    """

    def shape(X: Spec, dout: Spec) -> Spec:
        require_single("dout", dout)
        return X

    def reference(X: Array, dout: Array, op: OpView) -> Array:
        x = X.astype(np.float64)
        slope = np.sign(x) if op.args.p == 1 else 2 * x
        return np.asarray(slope * float(dout.reshape(())) * _share(X, op)).astype(X.dtype)


def _along(X: Spec, op: OpView) -> Spec:
    canonical_axis(op.args.axis, len(X.shape))
    return X


def _length(x: Array, axis: int) -> Array:
    return np.maximum(np.sqrt((x * x).sum(axis=axis, keepdims=True)), _SMALLEST)


@operator("Normalize", inputs="X", outputs="Y", args={"axis": Int(-1)}, types={"X": FLOAT})
class Normalize:
    """Y = X / max(|X|, 1e-12), with the Euclidean norm along `axis`.

    X, Y: float of one shape, any but a scalar.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        return _along(X, op)

    def reference(X: Array, op: OpView) -> Array:
        x = X.astype(np.float64)
        return (x / _length(x, op.args.axis)).astype(X.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("NormalizeGradient", [op.input(0), op.grad(0)], [op.input_grad(0)])


@operator(
    "NormalizeGradient",
    inputs="X dY",
    outputs="dX",
    args={"axis": Int(-1)},
    types={"X": FLOAT, "dY": FLOAT},
)
class NormalizeGradient:
    """dX = dY / n - X * sum(X * dY) / n^3 with n = max(|X|, 1e-12): the gradient of Normalize.

    X, dY, dX: float of one shape.
    """

    def shape(X: Spec, dY: Spec, op: OpView) -> Spec:
        require_same_shape("dY", dY, "X", X)
        return _along(X, op)

    def reference(X: Array, dY: Array, op: OpView) -> Array:
        x, dy = X.astype(np.float64), dY.astype(np.float64)
        n = _length(x, op.args.axis)
        product = (x * dy).sum(axis=op.args.axis, keepdims=True)
        return (dy / n - x / n * (product / n**2)).astype(X.dtype)


@operator("NormalizeL1", inputs="X", outputs="Y", args={"axis": Int(-1)}, types={"X": FLOAT})
class NormalizeL1:
    """Y = X / sum(|X|) along `axis`; 0 where all are 0.

    X, Y: float of one shape, any but a scalar.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        return _along(X, op)

    def reference(X: Array, op: OpView) -> Array:
        x = X.astype(np.float64)
        total = np.abs(x).sum(axis=op.args.axis, keepdims=True)
        return (x / np.where(total == 0, 1, total)).astype(X.dtype)


@operator("Moments", inputs="data", outputs="mean variance", args=AXES_ARGS, types={"data": FLOAT})
class Moments:
    """mean and variance (the mean of the squared distances from it) of data, over some axes.

    data: float, any shape.  mean, variance: float; 0 of no elements.
    axes: which axes are reduced, negative ones counted from the back; all when there are none.
    keepdims: whether the results have them as dimensions of 1, or not at all.
    """

    def shape(data: Spec, op: OpView) -> tuple[Spec, Spec]:
        found = Spec(kept_shape(data, op), data.dtype)
        return found, found

    def reference(data: Array, op: OpView) -> tuple[Array, Array]:
        x, axes, n = data.astype(np.float64), reduced_axes(op, data.ndim), count(data, op)
        shape = kept_shape(Spec(data.shape, data.dtype), op)
        mean = x.sum(axis=axes, keepdims=True) / n
        variance = ((x - mean) ** 2).sum(axis=axes, keepdims=True) / n
        return mean.astype(data.dtype).reshape(shape), variance.astype(data.dtype).reshape(shape)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.grad(0), op.grad(1), op.input(0), op.output(0)]
        return op.make("MomentsGradient", inputs, [op.input_grad(0)])


@operator(
    "MomentsGradient",
    inputs="dmean dvariance X mean",
    outputs="dX",
    args=AXES_ARGS,
    types={"dmean": FLOAT, "dvariance": FLOAT, "X": FLOAT, "mean": FLOAT},
)
class MomentsGradient:
    """dX = (dmean + 2 (X - mean) dvariance) / n, n elements being reduced to one.

    The gradient of Moments.  dmean, dvariance, mean: float, as many elements as the results there.
    X, dX: float of one shape.
    """

    def shape(dmean: Spec, dvariance: Spec, X: Spec, mean: Spec, op: OpView) -> Spec:
        like = Spec(kept_shape(X, op), X.dtype)
        for name, spec in (("dmean", dmean), ("dvariance", dvariance), ("mean", mean)):
            require_same_size(name, spec, "the mean", like)
        return X

    def reference(dmean: Array, dvariance: Array, X: Array, mean: Array, op: OpView) -> Array:
        centred = X.astype(np.float64) - spread(mean, X, op)
        total = spread(dmean, X, op) + 2 * centred * spread(dvariance, X, op)
        return np.asarray(total / count(X, op)).astype(X.dtype)
