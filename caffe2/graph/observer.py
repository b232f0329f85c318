"""Functions that are told of each operator of a net while it runs."""

from __future__ import annotations

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
