# mypy: disable-error-code="misc, no-any-return"
"""LearningRate: how the learning rate changes with the iterations."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Bool, Float, Int, Ints, OperatorError, Str
from caffe2.ops.datatypes import INT64
from caffe2.ops.declaration import NO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_single


def _given(args: SimpleNamespace, *names: str) -> list[Any]:
    """The values of arguments that a policy needs."""
    for name in names:
        if getattr(args, name) is None:
            problem = f"is missing; the policy {args.policy} needs {', '.join(names)}"
            raise OperatorError(f"argument '{name}'", problem)
    return [getattr(args, name) for name in names]


def _linear(start: float, iter: int, num_iter: int) -> float:
    """From `start` at 0 to 1 at num_iter, then 1."""
    return 1.0 if iter >= num_iter else start + (1 - start) * iter / num_iter


def _cyclical(iter: int, base: float, top: float, step: int, decay: float) -> float:
    cycle = iter // (2 * step)
    height = max(0.0, 1 - abs(iter / step - 2 * cycle - 1))
    return base + (top - base) * height * _power(decay, cycle)


def _power(x: float, exponent: float) -> float:
    """x^exponent as floating-point units do it: inf or NaN instead of an exception."""
    return float(np.float64(x) ** np.float64(exponent))


def _cosine(iter: int, low: float, high: float, period: int, t_mult: float, shrink: float) -> float:
    def start(cycle: int) -> float:
        if t_mult == 1:
            return float(cycle * period)
        return period * (_power(t_mult, cycle) - 1) / (t_mult - 1)

    if t_mult == 1:
        cycle = iter // period
    else:
        # The logarithm may be off by one at the seam of two cycles.
        cycle = int(math.log1p(iter / period * (t_mult - 1)) / math.log(t_mult))
        cycle += (start(cycle + 1) <= iter) - (start(cycle) > iter)
    place = (iter - start(cycle)) / (period * _power(t_mult, cycle))
    height = low + (high - low) * (1 + math.cos(math.pi * place)) / 2
    return _power(shrink, cycle) * height


def _warmed_up(iter: int, args: SimpleNamespace) -> float | None:
    """The multiplier while constant, then linear warm-up lasts; None after it."""
    start, constant = args.start_warmup_multiplier, args.constant_warmup_num_iter
    if iter < constant:
        return float(start)
    if iter < constant + args.linear_warmup_num_iter:
        return _linear(start, iter - constant, args.linear_warmup_num_iter)
    return None


def _learning_rate(iter: int, a: SimpleNamespace) -> float:
    base: float = a.base_lr
    if a.policy == "fixed":
        return base
    if a.policy == "step":
        stepsize, gamma = _given(a, "stepsize", "gamma")
        return base * _power(gamma, iter // stepsize)
    if a.policy == "exp":
        (gamma,) = _given(a, "gamma")
        return base * _power(gamma, iter)
    if a.policy == "inv":
        gamma, power = _given(a, "gamma", "power")
        return base * _power(1 + gamma * iter, -power)
    if a.policy == "poly":
        power, max_iter = _given(a, "power", "max_iter")
        return base * _power(1 - iter / max_iter, power)
    if a.policy == "linearWarmup":
        start, num_iter = _given(a, "start_multiplier", "num_iter")
        return base * _linear(start, iter, num_iter)
    if a.policy == "constantWarmup":
        multiplier, num_iter = _given(a, "multiplier", "num_iter")
        return base * (multiplier if iter < num_iter else 1)
    if a.policy == "alter":
        first, active, inactive = _given(a, "active_first", "active_period", "inactive_period")
        if active + inactive == 0:
            raise OperatorError("argument 'active_period'", "and inactive_period are both 0")
        begin = active if first else inactive
        return base if (iter % (active + inactive) < begin) == first else 0.0
    if a.policy == "hill":
        start, num_iter = _given(a, "start_multiplier", "num_iter")
        gamma, power = _given(a, "gamma", "power")
        if iter < num_iter:
            return base * _linear(start, iter, num_iter)
        return base * max(_power(1 + gamma * (iter - num_iter), -power), a.end_multiplier)
    if a.policy == "gate":
        (num_iter,) = _given(a, "num_iter")
        multiplier = a.multiplier_1 if iter < num_iter else a.multiplier_2
        return base * (1.0 if multiplier is None else multiplier)
    if a.policy == "slope":
        first, then = _given(a, "multiplier_1", "multiplier_2")
        begin, end = _given(a, "num_iter_1", "num_iter_2")
        if begin < iter < end:
            return base * (first + (then - first) * (iter - begin) / (end - begin))
        return base * (then if iter >= end else first)
    if a.policy == "cyclical":
        top, step = _given(a, "max_lr", "stepsize")
        return _cyclical(iter, base, top, step, a.decay)
    if a.policy == "cosine":
        high, low, period = _given(a, "max_lr", "min_lr", "period")
        return base * _cosine(iter, low, high, period, a.t_mult, a.lr_shrink)
    return _composed(iter, a)


def _composed(iter: int, a: SimpleNamespace) -> float:
    """The policies that begin with a warm-up."""
    multiplier = _warmed_up(iter, a)
    if multiplier is not None:
        return float(a.base_lr * multiplier)
    iter -= a.constant_warmup_num_iter + a.linear_warmup_num_iter
    if a.policy == "compositeCyclical":
        top, step, decay = a.cyclical_max_lr, a.cyclical_step_size, a.cyclical_decay
        return _cyclical(iter, a.base_lr, top, step, decay)
    if a.policy == "compositeCosine":
        low, high, period = a.cosine_min_lr, a.cosine_max_lr, a.cosine_period
        shrink = a.cosine_lr_shrink
        return float(a.base_lr * _cosine(iter, low, high, period, a.cosine_t_mult, shrink))
    return float(a.base_lr)


_POLICIES = (
    "fixed",
    "step",
    "exp",
    "inv",
    "poly",
    "linearWarmup",
    "constantWarmup",
    "alter",
    "hill",
    "gate",
    "slope",
    "cyclical",
    "cosine",
    "constantThenLinearWarmup",
    "compositeCyclical",
    "compositeCosine",
)
_SCHEDULE = {
    "gamma": Float(),
    "power": Float(),
    "stepsize": Int(min=1),
    "max_iter": Int(min=1, max=INT64_MAX),
    "num_iter": Int(min=0, max=INT64_MAX),
    "start_multiplier": Float(),
    "end_multiplier": Float(0.0),
    "multiplier": Float(),
    "multiplier_1": Float(),
    "multiplier_2": Float(),
    "num_iter_1": Int(min=0, max=INT64_MAX),
    "num_iter_2": Int(min=0, max=INT64_MAX),
    "active_first": Bool(),
    "active_period": Int(min=0, max=INT64_MAX),
    "inactive_period": Int(min=0, max=INT64_MAX),
    "max_lr": Float(),
    "min_lr": Float(0.1),
    "decay": Float(1.0),
    "period": Int(50, min=1),
    "t_mult": Float(1.0, min=1.0),
    "lr_shrink": Float(0.99),
    "start_warmup_multiplier": Float(0.1),
    "constant_warmup_num_iter": Int(10_000_000, min=0, max=INT64_MAX),
    "linear_warmup_num_iter": Int(10_000_000, min=0, max=INT64_MAX),
    "cyclical_max_lr": Float(0.05),
    "cyclical_step_size": Int(1_000_000, min=1),
    "cyclical_decay": Float(0.999),
    "cosine_min_lr": Float(0.1),
    "cosine_max_lr": Float(0.5),
    "cosine_period": Int(50, min=1),
    "cosine_t_mult": Float(1.0, min=1.0),
    "cosine_lr_shrink": Float(0.99),
}


def _composite(iter: int, a: SimpleNamespace) -> float:
    """The policy whose turn it is, with the iteration counted from the start of all."""
    ends = np.cumsum(a.sub_policy_num_iters, dtype=object)
    number = min(int(np.searchsorted(ends, iter)), len(ends) - 1)
    given = {
        name: getattr(a, f"sub_policy_{number}_{name}", argument.default)
        for name, argument in _SCHEDULE.items()
    }
    policy = getattr(a, f"sub_policy_{number}_policy", None)
    rate = _learning_rate(iter, SimpleNamespace(policy=policy, base_lr=a.base_lr, **given))
    return float(getattr(a, f"sub_policy_{number}_lr_scale", 1.0) * rate)


def _check(a: SimpleNamespace) -> None:
    """OperatorError for arguments that are missing, also of policies whose turn comes later."""
    if a.policy != "composite":
        _learning_rate(0, a)
        return
    if not a.sub_policy_num_iters:
        raise OperatorError("argument 'sub_policy_num_iters'", "is missing; composite needs it")
    start = 0
    for number, count in enumerate(a.sub_policy_num_iters):
        if getattr(a, f"sub_policy_{number}_policy", None) is None:
            needed = f"sub_policy_num_iters has {len(a.sub_policy_num_iters)}"
            raise OperatorError(f"argument 'sub_policy_{number}_policy'", f"is missing; {needed}")
        _composite(start + 1, a)
        start += count


@operator(
    "LearningRate",
    inputs="input",
    outputs="output",
    types={"input": INT64},
    args={
        "policy": Str(required=True, choices=[*_POLICIES, "composite"]),
        "base_lr": Float(required=True),
        **_SCHEDULE,
        "sub_policy_num_iters": Ints(min=1, max=INT64_MAX),
        "sub_policy_#_policy": Str(choices=_POLICIES),
        "sub_policy_#_lr_scale": Float(1.0),
        **{f"sub_policy_#_{name}": argument for name, argument in _SCHEDULE.items()},
    },
)
class LearningRate:
    """output = the learning rate of an iteration i, by a policy.

    input: int64 with one element, the iteration i >= 0.  output: float scalar, shape ().

    With b = base_lr, the policies and the arguments that they need:
    fixed           b
    step            b * gamma^(i // stepsize)
    exp             b * gamma^i
    inv             b * (1 + gamma * i)^-power
    poly            b * (1 - i / max_iter)^power, also beyond max_iter: NaN there when the power is
                    no integer, as in the original
    linearWarmup    b * (start_multiplier, growing to 1 at num_iter in a line)
    constantWarmup  b * (multiplier before num_iter, then 1)
    alter           b for active_period, 0 for inactive_period, in turn; active_first says which
                    comes first
    hill            linearWarmup, then b * max((1 + gamma * (i - num_iter))^-power, end_multiplier)
    gate            b * (multiplier_1 before num_iter, then multiplier_2; 1 where not given)
    slope           b * (multiplier_1 up to num_iter_1, multiplier_2 from num_iter_2 on, between
                    them a line)
    cyclical        b to max_lr and back in 2 * stepsize iterations; each cycle's height is `decay`
                    times the last one's (Smith, "Cyclical Learning Rates", 2017)
    cosine          b * (max_lr falling to min_lr along a cosine) over `period` iterations; then
                    again, t_mult times as long and lr_shrink times as high (Loshchilov and
                    Hutter, "SGDR", 2017)
    constantThenLinearWarmup  b * start_warmup_multiplier for constant_warmup_num_iter, then to b
                    in a line over linear_warmup_num_iter, then b
    compositeCyclical, compositeCosine  that warm-up, then cyclical or cosine with the arguments
                    cyclical_... or cosine_...
    composite       policy 0 up to iteration n0, policy 1 up to n0 + n1, ..., with
                    sub_policy_num_iters = n0, n1, ...; the last one stays.  Policy k is
                    sub_policy_k_policy, its arguments sub_policy_k_gamma etc., and its rate is
                    multiplied by sub_policy_k_lr_scale.  Iterations count from the start of all.
    """

    gradient = NO_GRADIENT

    def shape(input: Spec, op: OpView) -> Spec:
        require_single("input", input)
        with np.errstate(all="ignore"):
            _check(op.args)
        return Spec((), np.dtype(np.float32))

    def reference(input: Array, op: OpView) -> Array:
        iter = int(input.reshape(()))
        if iter < 0:
            raise OperatorError("input", f"is {iter}; an iteration is not negative")
        with np.errstate(all="ignore"):
            rule = _composite if op.args.policy == "composite" else _learning_rate
            return np.asarray(rule(iter, op.args), dtype=np.float32)
