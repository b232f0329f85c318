"""Functions that are told of each operator of a net while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from caffe2.proto import caffe2_pb2

Observer: TypeAlias = Callable[[caffe2_pb2.OperatorDef], Any]


class Attached(NamedTuple):
    """An observer, and whether it is called before the operator runs instead of after."""

    observer: Observer
    before: bool


def tell(observers: Sequence[Attached], op: caffe2_pb2.OperatorDef, done: bool) -> None:
    """Calls those who want to know now, in the order in which they were attached."""
    for observer, before in list(observers):
        if before != done:
            observer(op)


class TimeObserver:
    """How long operators of a net take."""

    def __init__(self) -> None:
        self._begun: dict[int, float] = {}
        self._milliseconds, self._counts = 0.0, dict[int, int]()

    def before(self, op: caffe2_pb2.OperatorDef) -> None:
        self._begun[id(op)] = time.perf_counter()

    def after(self, op: caffe2_pb2.OperatorDef) -> None:
        self._milliseconds += (time.perf_counter() - self._begun[id(op)]) * 1000
        self._counts[id(op)] = self._counts.get(id(op), 0) + 1

    def average_time(self) -> float:
        """The milliseconds of all operators together, in a run; 0 before one."""
        return self._milliseconds / max(self._counts.values(), default=1)

    def average_time_children(self) -> float:
        """The milliseconds of an operator."""
        return self._milliseconds / max(sum(self._counts.values()), 1)


class RunCountObserver:
    """How many operators of a net ran; those of nets inside operators do not count."""

    def __init__(self) -> None:
        self._count = 0

    def before(self, op: caffe2_pb2.OperatorDef) -> None:
        """Nothing: those that ended count."""

    def after(self, op: caffe2_pb2.OperatorDef) -> None:
        self._count += 1

    def debug_info(self) -> str:
        return f"{self._count} operators ran"


KINDS: dict[str, type[TimeObserver | RunCountObserver]] = {
    "RunCountObserver": RunCountObserver,
    "TimeObserver": TimeObserver,
}
