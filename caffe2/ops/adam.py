# mypy: disable-error-code="misc, no-any-return"
"""Adam and its relatives, for dense and for sparse gradients."""

from __future__ import annotations

import math

import numpy as np

from caffe2.ops.arguments import Bool, Float, OperatorError
from caffe2.ops.datatypes import FLOAT, INT64, INTS
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_same_shape
from caffe2.ops.updates import (
    each_row,
    like,
    mean_square,
    numbers,
    require_row_values,
    require_rows,
    require_scalars,
    require_state,
    scalar,
    step_number,
    wide,
)

BELOW_ONE = 1 - 2.0**-24  # the largest float below 1: of beta = 1 no correction could be made
_ARGS = {
    "beta1": Float(0.9, min=0, max=BELOW_ONE),
    "beta2": Float(0.999, min=0, max=BELOW_ONE),
    "epsilon": Float(1e-5, min=0),
}
_DENSE = {
    **dict.fromkeys(("param", "moment_1", "moment_2", "grad", "lr"), FLOAT),
    "iter": INT64,
}
_SPARSE = {**_DENSE, "indices": INTS}


def correction(beta1: float, beta2: float, step: int) -> float:
    """What makes up for moments that began with 0."""
    return math.sqrt(1 - beta2**step) / (1 - beta1**step)


def _factor(op: OpView, step: int) -> tuple[float, bool]:
    """The factor of the first moment, and whether it is divided by the root of the second one."""
    beta1, beta2 = numbers(op.args, "beta1", "beta2")
    if not op.args.enableRAdam:
        return correction(beta1, beta2, step), True
    most = 2 / (1 - beta2) - 1
    length = most - 2 * step * beta2**step / (1 - beta2**step)
    if length < 5:
        return 1 / (1 - beta1**step), False
    ratio = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
    return correction(beta1, beta2, step) * math.sqrt(ratio), True


def _check_dense(grad: Spec, lr: Spec, iter: Spec, **states: Spec) -> None:
    require_state("grad", grad, **states)
    require_scalars(lr=lr, iter=iter)


def _check_sparse(param: Spec, indices: Spec, grad: Spec, lr: Spec, iter: Spec) -> None:
    require_rows(param, indices, grad)
    require_scalars(lr=lr, iter=iter)


@operator(
    "Adam",
    inputs="param moment_1 moment_2 grad lr iter",
    outputs="output_param output_moment_1 output_moment_2 output_grad?",
    args={**_ARGS, "enableRAdam": Bool(False)},
    types=_DENSE,
    inplace=[(0, 0), (1, 1), (2, 2)],
)
class Adam:
    """One step of Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015).

    output_moment_1 = beta1 * moment_1 + (1 - beta1) * grad
    output_moment_2 = beta2 * moment_2 + (1 - beta2) * grad^2
    output_grad     = c * output_moment_1 / (sqrt(output_moment_2) + epsilon)
    output_param    = param + lr * output_grad
    with c = sqrt(1 - beta2^t) / (1 - beta1^t) and t = iter + 1

    With enableRAdam=1, which the original has for SparseAdam only, output_grad is the step of RAdam
    (Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020).

    param, moment_1, moment_2, grad: floats with equally many elements.  lr: float with one element,
    negative to go down.  iter: int64 with one element, 0 at the first step.  The outputs have the
    shapes of param, moment_1, moment_2 and grad.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, moment_1: Spec, moment_2: Spec, grad: Spec, lr: Spec, iter: Spec
    ) -> tuple[Spec, ...]:
        _check_dense(grad, lr, iter, param=param, moment_1=moment_1, moment_2=moment_2)
        return param, moment_1, moment_2, grad

    def reference(
        param: Array,
        moment_1: Array,
        moment_2: Array,
        grad: Array,
        lr: Array,
        iter: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        beta1, beta2, epsilon = numbers(op.args, "beta1", "beta2", "epsilon")
        p, m, v, g = (a.reshape(-1) for a in wide(param, moment_1, moment_2, grad))
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        factor, divided = _factor(op, step_number(iter))
        step = factor * m / (np.sqrt(v) + epsilon if divided else 1)
        p = p + scalar(lr) * step
        return like(p, param), like(m, moment_1), like(v, moment_2), like(step, grad)


@operator(
    "SparseAdam",
    inputs="param moment_1 moment_2 indices grad lr iter",
    outputs="output_param output_moment_1 output_moment_2 output_grad?",
    args={**_ARGS, "enableRAdam": Bool(False)},
    types=_SPARSE,
    enforced_inplace=[(0, 0), (1, 1), (2, 2)],
    kind="stateful",
)
class SparseAdam:
    """Adam for those rows of param that have a gradient; the moments of the others stay, too.

    param, moment_1, moment_2: floats of one shape, changed in place.  indices: int32 or int64 of
    any shape, the rows; one that comes twice is updated twice, in order.  grad: float, a row for
    each index.  lr, iter, enableRAdam, output_grad: as for Adam; output_grad is shaped like grad.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec,
        moment_1: Spec,
        moment_2: Spec,
        indices: Spec,
        grad: Spec,
        lr: Spec,
        iter: Spec,
    ) -> tuple[Spec, ...]:
        _check_sparse(param, indices, grad, lr, iter)
        require_same_shape("moment_1", moment_1, "param", param)
        require_same_shape("moment_2", moment_2, "param", param)
        return param, moment_1, moment_2, grad

    def reference(
        param: Array,
        moment_1: Array,
        moment_2: Array,
        indices: Array,
        grad: Array,
        lr: Array,
        iter: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        beta1, beta2, epsilon = numbers(op.args, "beta1", "beta2", "epsilon")
        t, rate = step_number(iter), scalar(lr)
        p, m, v, steps = wide(param, moment_1, moment_2, grad)
        by_row = steps.reshape(indices.size, *param.shape[1:])
        factor, divided = _factor(op, t)

        def rule(place: int, row: int, g: Array) -> None:
            m[row] = beta1 * m[row] + (1 - beta1) * g
            v[row] = beta2 * v[row] + (1 - beta2) * g**2
            by_row[place] = factor * m[row] / (np.sqrt(v[row]) + epsilon if divided else 1)
            p[row] += rate * by_row[place]

        each_row(param, indices, grad, rule)
        return like(p, param), like(m, moment_1), like(v, moment_2), like(steps, grad)


@operator(
    "RowWiseSparseAdam",
    inputs="param moment_1 moment_2 indices grad lr iter",
    outputs="output_param output_moment_1 output_moment_2 output_grad?",
    args=_ARGS,
    types=_SPARSE,
    enforced_inplace=[(0, 0), (1, 1), (2, 2)],
    kind="stateful",
)
class RowWiseSparseAdam:
    """SparseAdam with one second moment for each row, that of the mean of grad^2 in the row.

    moment_2: float with an element for each row of param.  All else is as for SparseAdam.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec,
        moment_1: Spec,
        moment_2: Spec,
        indices: Spec,
        grad: Spec,
        lr: Spec,
        iter: Spec,
    ) -> tuple[Spec, ...]:
        _check_sparse(param, indices, grad, lr, iter)
        require_same_shape("moment_1", moment_1, "param", param)
        require_row_values("moment_2", moment_2, param)
        return param, moment_1, moment_2, grad

    def reference(
        param: Array,
        moment_1: Array,
        moment_2: Array,
        indices: Array,
        grad: Array,
        lr: Array,
        iter: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        beta1, beta2, epsilon = numbers(op.args, "beta1", "beta2", "epsilon")
        factor, rate = correction(beta1, beta2, step_number(iter)), scalar(lr)
        p, m, v, steps = wide(param, moment_1, moment_2, grad)
        by_row, v = steps.reshape(indices.size, *param.shape[1:]), v.reshape(-1)

        def rule(place: int, row: int, g: Array) -> None:
            m[row] = beta1 * m[row] + (1 - beta1) * g
            v[row] = beta2 * v[row] + (1 - beta2) * mean_square(g)
            by_row[place] = factor * m[row] / (np.sqrt(v[row]) + epsilon)
            p[row] += rate * by_row[place]

        each_row(param, indices, grad, rule)
        return like(p, param), like(m, moment_1), like(v, moment_2), like(steps, grad)


@operator(
    "SmartDecaySparseAdam",
    inputs="param moment_1 moment_2 last_seen indices grad lr iter",
    outputs="output_param output_moment_1 output_moment_2 output_last_seen",
    args=_ARGS,
    types={**_SPARSE, "last_seen": INT64},
    enforced_inplace=[(0, 0), (1, 1), (2, 2), (3, 3)],
    kind="stateful",
)
class SmartDecaySparseAdam:
    """SparseAdam that makes up, when a row has a gradient again, for the steps when it had none.

    With t = iter + 1, k = t - last_seen of the row and S = beta1 + beta1^2 + ... + beta1^(k-1):
    output_moment_1 = beta1^k * moment_1 + (1 - beta1) * grad
    output_moment_2 = beta2^k * moment_2 + (1 - beta2) * grad^2
    output_param    = param + lr * (S * moment_1 + output_moment_1)
                      / (sqrt(output_moment_2) + epsilon)
    There is no correction for moments that began with 0.

    last_seen: int64 with an element for each row of param, changed in place: the step at which the
    row last had a gradient, 0 for none, not above iter + 1.  All else is as for SparseAdam.
    """

    def shape(
        param: Spec,
        moment_1: Spec,
        moment_2: Spec,
        last_seen: Spec,
        indices: Spec,
        grad: Spec,
        lr: Spec,
        iter: Spec,
    ) -> tuple[Spec, ...]:
        _check_sparse(param, indices, grad, lr, iter)
        require_same_shape("moment_1", moment_1, "param", param)
        require_same_shape("moment_2", moment_2, "param", param)
        require_row_values("last_seen", last_seen, param)
        return param, moment_1, moment_2, last_seen

    def reference(
        param: Array,
        moment_1: Array,
        moment_2: Array,
        last_seen: Array,
        indices: Array,
        grad: Array,
        lr: Array,
        iter: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        beta1, beta2, epsilon = numbers(op.args, "beta1", "beta2", "epsilon")
        now, rate = step_number(iter), scalar(lr)
        p, m, v = wide(param, moment_1, moment_2)
        seen = last_seen.reshape(-1).copy()

        def check(place: int, row: int, g: Array) -> None:
            if not 0 <= seen[row] <= now:
                problem = f"has {seen[row]} for row {row}; allowed are 0 to iter + 1 = {now}"
                raise OperatorError("last_seen", problem)

        def rule(place: int, row: int, g: Array) -> None:
            missed = now - int(seen[row])
            late = m[row] * beta1 * (1 - beta1 ** max(missed - 1, 0)) / (1 - beta1)
            m[row] = beta1**missed * m[row] + (1 - beta1) * g
            v[row] = beta2**missed * v[row] + (1 - beta2) * g**2
            p[row] += rate * (late + m[row]) / (np.sqrt(v[row]) + epsilon)
            seen[row] = now

        each_row(param, indices, grad, check)
        each_row(param, indices, grad, rule)
        return like(p, param), like(m, moment_1), like(v, moment_2), like(seen, last_seen)


@operator(
    "DecayAdagrad",
    inputs="param moment_1 moment_2 grad lr iter",
    outputs="output_param output_moment_1 output_moment_2",
    args={
        "beta1": Float(0.9, min=0, max=BELOW_ONE),
        "beta2": Float(0.999, min=0, max=BELOW_ONE),
        "epsilon": Float(1e-5, min=0),
        "weight_decay": Float(0.0),
        "bias_correction_first": Bool(True),
    },
    types=_DENSE,
    inplace=[(0, 0), (1, 1), (2, 2)],
)
class DecayAdagrad:
    """One step of Adagrad with momentum and weight decay apart from the gradient.

    output_moment_1 = beta1 * moment_1 + (1 - beta1) * grad
    output_moment_2 = moment_2 + grad^2
    output_param    = param + lr * (c * output_moment_1 / (sqrt(output_moment_2) + epsilon)
                                    + weight_decay * param)
    with c = 1 / (1 - beta1^(iter + 1)), or 1 with bias_correction_first=0

    Inputs and outputs are as for Adam.  beta2 has no effect.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec, moment_1: Spec, moment_2: Spec, grad: Spec, lr: Spec, iter: Spec
    ) -> tuple[Spec, ...]:
        _check_dense(grad, lr, iter, param=param, moment_1=moment_1, moment_2=moment_2)
        return param, moment_1, moment_2

    def reference(
        param: Array,
        moment_1: Array,
        moment_2: Array,
        grad: Array,
        lr: Array,
        iter: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        beta1, epsilon, decay = numbers(op.args, "beta1", "epsilon", "weight_decay")
        p, m, v, g = (a.reshape(-1) for a in wide(param, moment_1, moment_2, grad))
        m = beta1 * m + (1 - beta1) * g
        v = v + g**2
        t = step_number(iter)
        factor = 1 / (1 - beta1**t) if op.args.bias_correction_first else 1.0
        p = p + scalar(lr) * (factor * m / (np.sqrt(v) + epsilon) + decay * p)
        return like(p, param), like(m, moment_1), like(v, moment_2)
