# mypy: disable-error-code="misc, no-any-return"
"""YellowFin, an optimizer that tunes its learning rate and momentum."""

from __future__ import annotations

import math

import numpy as np

from caffe2.ops.arguments import Bool, Float, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, INT64
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import size
from caffe2.ops.updates import like, numbers, require_scalars, require_state, scalar, wide

_NAMES = (
    "param",
    "moment",
    "lr",
    "mu",
    "curv_win",
    "g_avg",
    "g2_avg",
    "scalars_memory",
    "grad",
)
_LEAST = 2.0**-126


def _root(p: float) -> float:
    """The x in (0, 1] with p * x = (1 - x)^3."""
    p = min(p, 1e16)  # beyond, x is 0, and rounding would make it something else
    cube = (-math.sqrt(p * p + 4 / 27 * p**3) - p) / 2
    w = math.copysign(abs(cube) ** (1 / 3), cube)
    return 1 + (w - p / 3 / w if w else 0.0)


@operator(
    "YellowFin",
    inputs="param moment lr mu curv_win g_avg g2_avg scalars_memory grad iter",
    outputs="output_param output_moment output_lr output_mu output_curv_win output_g_avg "
    "output_g2_avg output_scalars_memory",
    args={
        "beta": Float(0.999, min=0, max=1 - 2.0**-24),
        "curv_win_width": Int(20, min=1),
        "epsilon": Float(1e-6, min=0),
        "nesterov": Bool(False),
        "zero_debias": Bool(True),
    },
    types={**dict.fromkeys(_NAMES, FLOAT), "iter": INT64},
    inplace=[(index, index) for index in range(8)],
)
class YellowFin:
    """One step with momentum, and a learning rate and momentum for the next (Zhang and Mitliagkas,
    "YellowFin and the Art of Momentum Tuning", 2019).

    output_moment = mu * moment + lr * grad
    output_param  = param - output_moment, or with nesterov=1
                    param - (1 + mu) * output_moment + mu * moment

    Then |grad|^2 is measured.  curv_win holds its logarithm for the last curv_win_width steps, and
    scalars_memory the running means (weight beta) of |grad|, |grad|^2, the least and the largest
    number in curv_win, and the first mean by the second; g_avg and g2_avg those of grad and grad^2.
    With zero_debias=1 what is computed from them makes up for beginning with 0.  From the second
    step on, with curvatures h and H (least and largest), distance D and variance
    C = max(mean of |grad|^2 - |g_avg|^2, epsilon):
    mu' = max(x^2, ((sqrt(H/h) - 1) / (sqrt(H/h) + 1))^2), where D^2 h^2 / (2 C) * x = (1 - x)^3
    lr' = (1 - sqrt(mu'))^2 / h
    and output_mu, output_lr are running means of these.

    param, moment, g_avg, g2_avg, grad: floats with equally many elements.  lr, mu: floats with one
    element.  curv_win: float with curv_win_width elements.  scalars_memory: 5 floats.  iter: int64
    with one element, 1 at the first step.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        param: Spec,
        moment: Spec,
        lr: Spec,
        mu: Spec,
        curv_win: Spec,
        g_avg: Spec,
        g2_avg: Spec,
        scalars_memory: Spec,
        grad: Spec,
        iter: Spec,
        op: OpView,
    ) -> tuple[Spec, ...]:
        require_state("grad", grad, param=param, moment=moment, g_avg=g_avg, g2_avg=g2_avg)
        require_scalars(lr=lr, mu=mu, iter=iter)
        for name, spec, needed in (
            ("curv_win", curv_win, op.args.curv_win_width),
            ("scalars_memory", scalars_memory, 5),
        ):
            if size(spec) != needed:
                raise OperatorError(name, f"has shape {spec.shape}; {needed} elements are needed")
        return param, moment, lr, mu, curv_win, g_avg, g2_avg, scalars_memory

    def reference(
        param: Array,
        moment: Array,
        lr: Array,
        mu: Array,
        curv_win: Array,
        g_avg: Array,
        g2_avg: Array,
        scalars_memory: Array,
        grad: Array,
        iter: Array,
        op: OpView,
    ) -> tuple[Array, ...]:
        step = int(iter.reshape(()))
        if step < 1:
            raise OperatorError("iter", f"is {step}; it is 1 at the first step")
        beta, epsilon = numbers(op.args, "beta", "epsilon")
        p, m, window, a, a2, memory, g = (
            array.reshape(-1)
            for array in wide(param, moment, curv_win, g_avg, g2_avg, scalars_memory, grad)
        )
        rate, momentum = scalar(lr), scalar(mu)
        new = momentum * m + rate * g
        p = p - ((1 + momentum) * new - momentum * m if op.args.nesterov else new)

        square = float(np.sum(g**2))
        window[(step - 1) % window.size] = np.float32(math.log(max(square, _LEAST)))
        seen = window[: min(window.size, step)]
        memory[:4] = beta * memory[:4] + (1 - beta) * np.array(
            [math.sqrt(square), square, seen.min(), seen.max()]
        )
        distance = memory[0] / memory[1] if memory[1] else 0.0
        memory[4] = beta * memory[4] + (1 - beta) * distance
        a, a2 = beta * a + (1 - beta) * g, beta * a2 + (1 - beta) * g**2
        if step > 1:
            weight = 1 - beta**step if op.args.zero_debias else 1.0
            with np.errstate(all="ignore"):
                _, norm2, low, high, distance = memory / weight
                least, ratio = np.exp(low), np.exp((high - low) / 2)
                variance = max(norm2 - float(np.sum((a / weight) ** 2)), epsilon, _LEAST)
                x = _root(float((distance * least) ** 2 / 2 / variance))
                best = max(x * x, ((ratio - 1) / (ratio + 1)) ** 2)
                momentum = beta * momentum + (1 - beta) * best
                rate = beta * rate + (1 - beta) * (1 - np.sqrt(best)) ** 2 / least
        return (
            like(p, param),
            like(new, moment),
            like(np.float64(rate), lr),
            like(np.float64(momentum), mu),
            like(window, curv_win),
            like(a, g_avg),
            like(a2, g2_avg),
            like(memory, scalars_memory),
        )
