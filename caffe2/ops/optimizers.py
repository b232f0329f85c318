# mypy: disable-error-code="misc, no-any-return"
"""RMSProp, Adadelta, STORM, Lion: rules of optimizers."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import Float
from caffe2.ops.datatypes import FLOAT, INTS
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_same_shape, require_single
from caffe2.ops.updates import (
    each_row,
    like,
    numbers,
    require_rows,
    require_state,
    scalar,
    wide,
)

_EPSILON = Float(1e-5, min=0)


@operator(
    "RmsProp",
    inputs="grad mean_squares mom lr",
    outputs="output_grad output_mean_squares output_mom",
    args={"decay": Float(0.9), "momentum": Float(0.0), "epsilon": _EPSILON},
    types=dict.fromkeys(("grad", "mean_squares", "mom", "lr"), FLOAT),
    inplace=[(0, 0), (1, 1), (2, 2)],
)
class RmsProp:
    """One step of RMSProp (Hinton, Srivastava and Swersky, lecture 6e of "Neural Networks for
    Machine Learning", 2012) with momentum.

    output_mean_squares = mean_squares + (1 - decay) * (grad^2 - mean_squares)
    output_mom          = momentum * mom + lr * grad / sqrt(epsilon + output_mean_squares)
    output_grad         = output_mom, what is added to the parameter

    grad, mean_squares, mom: floats with equally many elements.  lr: float with one element,
    negative to go down.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(grad: Spec, mean_squares: Spec, mom: Spec, lr: Spec) -> tuple[Spec, ...]:
        require_state("grad", grad, mean_squares=mean_squares, mom=mom)
        require_single("lr", lr)
        return grad, mean_squares, mom

    def reference(
        grad: Array, mean_squares: Array, mom: Array, lr: Array, op: OpView
    ) -> tuple[Array, ...]:
        decay, momentum, epsilon = numbers(op.args, "decay", "momentum", "epsilon")
        g, s, m = (a.reshape(-1) for a in wide(grad, mean_squares, mom))
        s = s + (1 - decay) * (g**2 - s)
        with np.errstate(divide="ignore", invalid="ignore"):
            m = momentum * m + scalar(lr) * g / np.sqrt(epsilon + s)
        return like(m, grad), like(s, mean_squares), like(m, mom)


_ADADELTA = {"epsilon": _EPSILON, "decay": Float(0.95)}
_ADADELTA_TYPES = dict.fromkeys(("param", "moment", "moment_delta", "grad", "lr"), FLOAT)


@operator(
    "Adadelta",
    inputs="param moment moment_delta grad lr",
    outputs="output_param output_moment output_moment_delta",
    args=_ADADELTA,
    types=_ADADELTA_TYPES,
    inplace=[(0, 0), (1, 1), (2, 2)],
)
class Adadelta:
    """One step of Adadelta (Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012).

    output_moment       = decay * moment + (1 - decay) * grad^2
    step                = sqrt((moment_delta + epsilon) / (output_moment + epsilon)) * grad
    output_moment_delta = decay * moment_delta + (1 - decay) * step^2
    output_param        = param + lr * step

    param, moment, moment_delta, grad: floats with equally many elements.  lr: float with one
    element, negative to go down.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, moment: Spec, moment_delta: Spec, grad: Spec, lr: Spec
    ) -> tuple[Spec, ...]:
        require_state("grad", grad, param=param, moment=moment, moment_delta=moment_delta)
        require_single("lr", lr)
        return param, moment, moment_delta

    def reference(
        param: Array, moment: Array, moment_delta: Array, grad: Array, lr: Array, op: OpView
    ) -> tuple[Array, ...]:
        p, h, d, g = (a.reshape(-1) for a in wide(param, moment, moment_delta, grad))
        step, h, d = _adadelta(h, d, g, op)
        p = p + scalar(lr) * step
        return like(p, param), like(h, moment), like(d, moment_delta)


def _adadelta(h: Array, d: Array, g: Array, op: OpView) -> tuple[Array, Array, Array]:
    """The step and the new moments."""
    decay, epsilon = numbers(op.args, "decay", "epsilon")
    h = decay * h + (1 - decay) * g**2
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.sqrt((d + epsilon) / (h + epsilon)) * g
    return step, h, decay * d + (1 - decay) * step**2


@operator(
    "SparseAdadelta",
    inputs="param moment moment_delta indices grad lr",
    outputs="output_param output_moment output_moment_delta",
    args=_ADADELTA,
    types={**_ADADELTA_TYPES, "indices": INTS},
    enforced_inplace=[(0, 0), (1, 1), (2, 2)],
    kind="stateful",
)
class SparseAdadelta:
    """Adadelta for those rows of param that have a gradient.

    param, moment, moment_delta: floats of one shape, changed in place.  indices, grad, lr: as for
    SparseAdagrad.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, moment: Spec, moment_delta: Spec, indices: Spec, grad: Spec, lr: Spec
    ) -> tuple[Spec, ...]:
        require_rows(param, indices, grad)
        require_same_shape("moment", moment, "param", param)
        require_same_shape("moment_delta", moment_delta, "param", param)
        require_single("lr", lr)
        return param, moment, moment_delta

    def reference(
        param: Array,
        moment: Array,
        moment_delta: Array,
        indices: Array,
        grad: Array,
        lr: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        p, h, d = wide(param, moment, moment_delta)
        rate = scalar(lr)

        def rule(place: int, row: int, g: Array) -> None:
            step, h[row], d[row] = _adadelta(h[row], d[row], g, op)
            p[row] += rate * step

        each_row(param, indices, grad, rule)
        return like(p, param), like(h, moment), like(d, moment_delta)


_STORM = {"momentum": Float(10.0), "beta": Float(0.1, min=0)}
_STORM_TYPES = dict.fromkeys(("param", "moment", "grad_sq_sum", "grad", "lr"), FLOAT)


def _storm(grad_sq_sum: Array, grad: Array, lr: Array, op: OpView) -> tuple[float, float, float]:
    """The new sum of squares, the learning rate of this step, and how much of the old is lost."""
    momentum, beta = numbers(op.args, "momentum", "beta")
    total = scalar(grad_sq_sum) + float(np.sum(grad.astype(np.float64) ** 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = scalar(lr) * float(np.float64(beta + total) ** (-1 / 3))
    return total, rate, momentum * rate**2


@operator(
    "Storm",
    inputs="param moment grad_sq_sum grad lr",
    outputs="output_param output_moment output_grad_sq_sum",
    args=_STORM,
    types=_STORM_TYPES,
    inplace=[(0, 0), (1, 1), (2, 2)],
)
class Storm:
    """One step of STORM (Cutkosky and Orabona, "Momentum-Based Variance Reduction in Non-Convex
    SGD", 2019), with the gradient at the old point taken for the one at the new point.

    output_grad_sq_sum = grad_sq_sum + sum(grad^2)
    r                  = lr * (beta + output_grad_sq_sum)^(-1/3)
    output_moment      = grad + (1 - momentum * r^2) * (moment - grad)
    output_param       = param + r * output_moment

    param, moment, grad: floats with equally many elements.  grad_sq_sum, lr: floats with one
    element; lr is negative to go down.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, moment: Spec, grad_sq_sum: Spec, grad: Spec, lr: Spec
    ) -> tuple[Spec, ...]:
        require_state("grad", grad, param=param, moment=moment)
        require_single("grad_sq_sum", grad_sq_sum)
        require_single("lr", lr)
        return param, moment, grad_sq_sum

    def reference(
        param: Array, moment: Array, grad_sq_sum: Array, grad: Array, lr: Array, op: OpView
    ) -> tuple[Array, ...]:
        total, rate, lost = _storm(grad_sq_sum, grad, lr, op)
        p, m, g = (a.reshape(-1) for a in wide(param, moment, grad))
        m = g + (1 - lost) * (m - g)
        return like(p + rate * m, param), like(m, moment), like(np.float64(total), grad_sq_sum)


@operator(
    "SparseStorm",
    inputs="param moment grad_sq_sum grad indices lr",
    outputs="output_param output_moment output_grad_sq_sum",
    args=_STORM,
    types={**_STORM_TYPES, "indices": INTS},
    enforced_inplace=[(0, 0), (1, 1), (2, 2)],
    kind="stateful",
)
class SparseStorm:
    """Storm for those rows of param that have a gradient.

    param, moment: floats of one shape, changed in place.  grad_sq_sum: float with one element.
    grad, indices, lr: as for SparseAdagrad.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, moment: Spec, grad_sq_sum: Spec, grad: Spec, indices: Spec, lr: Spec
    ) -> tuple[Spec, ...]:
        require_rows(param, indices, grad)
        require_same_shape("moment", moment, "param", param)
        require_single("grad_sq_sum", grad_sq_sum)
        require_single("lr", lr)
        return param, moment, grad_sq_sum

    def reference(
        param: Array,
        moment: Array,
        grad_sq_sum: Array,
        grad: Array,
        indices: Array,
        lr: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        total, rate, lost = _storm(grad_sq_sum, grad, lr, op)
        p, m = wide(param, moment)

        def rule(place: int, row: int, g: Array) -> None:
            m[row] = g + (1 - lost) * (m[row] - g)
            p[row] += rate * m[row]

        each_row(param, indices, grad, rule)
        return like(p, param), like(m, moment), like(np.float64(total), grad_sq_sum)


@operator(
    "LionUpdate",
    inputs="param grad momentum lr?",
    outputs="output_param output_momentum",
    args={
        "beta1": Float(0.9),
        "beta2": Float(0.99),
        "wd": Float(0.0),
        "lr": Float(-1e-4),
    },
    types=dict.fromkeys(("param", "grad", "momentum", "lr"), FLOAT),
    inplace=[(0, 0), (2, 1)],
)
class LionUpdate:
    """One step of Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023).

    output_param    = param + lr * (sign(beta1 * momentum + (1 - beta1) * grad) + wd * param)
    output_momentum = beta2 * momentum + (1 - beta2) * grad

    param, grad, momentum: floats with equally many elements.  lr: float with one element, negative
    to go down; the argument lr when it is left out.  The original has no such operator.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(param: Spec, grad: Spec, momentum: Spec, lr: Spec | None) -> tuple[Spec, Spec]:
        require_state("grad", grad, param=param, momentum=momentum)
        if lr is not None:
            require_single("lr", lr)
        return param, momentum

    def reference(
        param: Array, grad: Array, momentum: Array, lr: Array | None, op: OpView
    ) -> tuple[Array, Array]:
        beta1, beta2, decay, rate = numbers(op.args, "beta1", "beta2", "wd", "lr")
        if lr is not None:
            rate = scalar(lr)
        p, g, m = (a.reshape(-1) for a in wide(param, grad, momentum))
        step = np.sign(beta1 * m + (1 - beta1) * g) + decay * p
        return like(p + rate * step, param), like(beta2 * m + (1 - beta2) * g, momentum)
