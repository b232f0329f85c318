"""Schedules: how the learning rate changes with the iterations, as objects.

A schedule is a policy of the operator LearningRate with its arguments.  An optimizer takes it by
`optimizer.auto_scale_lr(schedule)`; `schedule.rates(...)` and `plot` show what it does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from caffe2 import ops


class LearningRateSchedule:
    """A policy of the operator LearningRate: `LearningRateSchedule("inv", gamma=0.1, power=0.5)`.

    OperatorError for arguments that the policy lacks or refuses.
    """

    def __init__(self, policy: str, **arguments: Any) -> None:
        self.policy = policy
        self.arguments = arguments
        self.rates([0])

    def rates(self, iterations: Iterable[int], base_lr: float = 1.0) -> npt.NDArray[np.float32]:
        """The learning rate of each iteration, which is not negative."""
        declaration = ops.find("LearningRate")
        args = {"policy": self.policy, "base_lr": base_lr, **self.arguments}
        op = declaration.view(["iteration"], ["rate"], args)
        rates = [declaration.run(op, [np.array([i], np.int64)])[0] for i in iterations]
        return np.array(rates, dtype=np.float32)

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={value!r}" for name, value in self.arguments.items())
        return f"LearningRateSchedule({self.policy!r}{arguments})"


class StepLR(LearningRateSchedule):
    """gamma times the last learning rate each `step_size` iterations."""

    def __init__(self, step_size: int, gamma: float = 0.1) -> None:
        super().__init__("step", stepsize=step_size, gamma=gamma)


class ExponentialLR(LearningRateSchedule):
    """gamma times the last learning rate at each iteration."""

    def __init__(self, gamma: float) -> None:
        super().__init__("exp", gamma=gamma)


def plot(schedules: Any, iterations: int = 100, base_lr: float = 1.0, axes: Any = None) -> Any:
    """A picture of one schedule or several (a list, or title -> schedule): the learning rate over
    the iterations.  Gives the axes of matplotlib; ImportError without matplotlib."""
    if axes is None:
        from matplotlib import pyplot

        _, axes = pyplot.subplots()
    if isinstance(schedules, LearningRateSchedule):
        schedules = [schedules]
    if not isinstance(schedules, dict):
        schedules = {repr(schedule): schedule for schedule in schedules}
    steps = np.arange(iterations)
    for title, schedule in schedules.items():
        axes.plot(steps, schedule.rates(steps, base_lr), label=title)
    axes.set_xlabel("iteration")
    axes.set_ylabel("learning rate")
    axes.legend()
    axes.grid(True)
    return axes
