# mypy: disable-error-code="misc, no-any-return"
"""FTRL-Proximal, for dense and for sparse gradients, and for groups of weights."""

from __future__ import annotations

import math

import numpy as np

from caffe2.ops.arguments import Float, OperatorError
from caffe2.ops.datatypes import FLOAT, INTS
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_same_shape, require_single, size
from caffe2.ops.updates import each_row, like, numbers, require_rows, scalar, wide

_ARGS = {
    "alpha": Float(),
    "beta": Float(1.0),
    "lambda1": Float(0.001, min=0),
    "lambda2": Float(0.001),
}
_DEFAULT_ALPHA = 0.005
_TYPES = {"var": FLOAT, "n_z": FLOAT, "grad": FLOAT, "alpha": FLOAT}


def _check(var: Spec, n_z: Spec, alpha: Spec | None, op: OpView) -> None:
    if size(n_z) != 2 * size(var):
        problem = f"has shape {n_z.shape}; needed are two numbers for each of var {var.shape}"
        raise OperatorError("n_z", problem)
    if alpha is None:
        return
    require_single("alpha", alpha)
    if op.args.alpha is not None:
        raise OperatorError("alpha", "is given as input and as argument; one of both is needed")


def _alpha(alpha: Array | None, op: OpView) -> float:
    if alpha is not None:
        return scalar(alpha)
    return float(np.float32(_DEFAULT_ALPHA if op.args.alpha is None else op.args.alpha))


def _sums(w: Array, n: Array, z: Array, g: Array, alpha: float) -> tuple[Array, Array]:
    """The new sums n of squares and z of gradients."""
    total = n + g**2
    return total, z + g - (np.sqrt(total) - np.sqrt(n)) / alpha * w


def _ftrl(
    w: Array, n: Array, z: Array, g: Array, alpha: float, op: OpView
) -> tuple[Array, Array, Array]:
    """The new w, n and z."""
    beta, lambda1, lambda2 = numbers(op.args, "beta", "lambda1", "lambda2")
    with np.errstate(invalid="ignore", divide="ignore"):
        n, z = _sums(w, n, z, g, alpha)
        moved = (lambda1 * np.sign(z) - z) / ((beta + np.sqrt(n)) / alpha + lambda2)
    return np.where(np.abs(z) > lambda1, moved, 0), n, z


@operator(
    "Ftrl",
    inputs="var n_z grad alpha?",
    outputs="output_var output_n_z",
    args=_ARGS,
    types=_TYPES,
    inplace=[(0, 0), (1, 1)],
)
class Ftrl:
    """One step of FTRL-Proximal (McMahan et al., "Ad Click Prediction: a View from the Trenches",
    2013).

    n_z holds for each element of var the sums n and z, one after the other:
    n'  = n + grad^2
    z'  = z + grad - (sqrt(n') - sqrt(n)) / alpha * var
    var = 0 where |z'| <= lambda1, else
          (sign(z') * lambda1 - z') / ((beta + sqrt(n')) / alpha + lambda2)

    var, grad: floats with equally many elements.  n_z: float, twice as many.  alpha: float with one
    element, instead of the argument alpha (default 0.005).  The outputs have the shapes of var and
    n_z.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        var: Spec, n_z: Spec, grad: Spec, alpha: Spec | None, op: OpView
    ) -> tuple[Spec, Spec]:
        _check(var, n_z, alpha, op)
        if size(grad) != size(var):
            raise OperatorError("grad", f"has shape {grad.shape}; var has {var.shape}")
        return var, n_z

    def reference(
        var: Array, n_z: Array, grad: Array, alpha: Array | None, op: OpView
    ) -> tuple[Array, Array]:
        w, sums, g = (a.reshape(-1) for a in wide(var, n_z, grad))
        w, n, z = _ftrl(w, sums[0::2], sums[1::2], g, _alpha(alpha, op), op)
        return like(w, var), like(np.stack([n, z], axis=-1), n_z)


@operator(
    "SparseFtrl",
    inputs="var n_z indices grad alpha?",
    outputs="output_var output_n_z",
    args=_ARGS,
    types={**_TYPES, "indices": INTS},
    enforced_inplace=[(0, 0), (1, 1)],
    kind="stateful",
)
class SparseFtrl:
    """Ftrl for those rows of var that have a gradient.

    var, n_z: as for Ftrl, changed in place.  indices: int32 or int64 of any shape, the rows; one
    that comes twice is updated twice, in order.  grad: float, a row for each index.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        var: Spec, n_z: Spec, indices: Spec, grad: Spec, alpha: Spec | None, op: OpView
    ) -> tuple[Spec, Spec]:
        require_rows(var, indices, grad, "var")
        _check(var, n_z, alpha, op)
        return var, n_z

    def reference(
        var: Array,
        n_z: Array,
        indices: Array,
        grad: Array,
        alpha: Array | None,
        op: OpView,
    ) -> tuple[Array, Array]:
        w, sums = wide(var, n_z)
        sums = sums.reshape(*var.shape, 2)
        rate = _alpha(alpha, op)

        def rule(place: int, row: int, g: Array) -> None:
            w[row], sums[row, ..., 0], sums[row, ..., 1] = _ftrl(
                w[row], sums[row, ..., 0], sums[row, ..., 1], g, rate, op
            )

        each_row(var, indices, grad, rule)
        return like(w, var), like(sums, n_z)


@operator(
    "GFtrl",
    inputs="var n_z grad alpha?",
    outputs="output_var output_n_z",
    args=_ARGS,
    types=_TYPES,
    inplace=[(0, 0), (1, 1)],
)
class GFtrl:
    """Ftrl that makes groups of weights zero (Ni et al., "Feature Selection for Facebook Feed
    Ranking System via a Group-Sparsity-Regularized Training Algorithm", 2019).

    The m rows of var, its first dimension, are outputs; a group is what belongs to one input, a
    column.  n' and z' are those of Ftrl, and |z'| is the norm of the column:
    var = 0 where |z'| <= lambda1 * sqrt(m), else
          z' * (lambda1 * sqrt(m) / |z'| - 1) / ((beta + sqrt(n')) / alpha + lambda2)

    Inputs and outputs are as for Ftrl; var has at least one dimension.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        var: Spec, n_z: Spec, grad: Spec, alpha: Spec | None, op: OpView
    ) -> tuple[Spec, Spec]:
        if not var.shape:
            raise OperatorError("var", "is a scalar; rows are needed")
        _check(var, n_z, alpha, op)
        require_same_shape("grad", grad, "var", var)
        return var, n_z

    def reference(
        var: Array, n_z: Array, grad: Array, alpha: Array | None, op: OpView
    ) -> tuple[Array, Array]:
        beta, lambda1, lambda2 = numbers(op.args, "beta", "lambda1", "lambda2")
        rate, outputs = _alpha(alpha, op), var.shape[0]
        w, sums, g = wide(var, n_z, grad)
        sums = sums.reshape(*var.shape, 2)
        least = lambda1 * math.sqrt(outputs)
        with np.errstate(invalid="ignore", divide="ignore"):
            n, z = _sums(w, sums[..., 0], sums[..., 1], g, rate)
            norm = np.sqrt(np.sum(z**2, axis=0))
            moved = z * (least / norm - 1) / ((beta + np.sqrt(n)) / rate + lambda2)
        w = np.where(norm > least, moved, 0)
        return like(w, var), like(np.stack([n, z], axis=-1), n_z)
