# mypy: disable-error-code="misc"
"""Counters and flags that several threads may change at the same time."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Int
from caffe2.ops.datatypes import BOOL, INT32, INT64
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, NativeOnly, Spec, operator
from caffe2.ops.shapes import require_single

_COUNTER = NativeOnly("a counter is no tensor")
_FLAG = NativeOnly("an atomic bool is no tensor")
_MUTEX = NativeOnly("a mutex is no tensor")
_COUNT = Spec((), np.dtype(np.int64))
_BOOL = np.dtype(np.bool_)


@operator(
    "CreateCounter",
    inputs="",
    outputs="counter",
    args={"init_count": Int(0, min=0, max=INT64_MAX)},
    kind="stateful",
)
class CreateCounter:
    """Makes a counter, a number of 64 bits.

    counter: a blob that holds no tensor.  init_count: where it begins, not negative.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _COUNTER

    def shape() -> None:
        return None


@operator(
    "ResetCounter",
    inputs="counter",
    outputs="previous_value?",
    args={"init_count": Int(0, min=0, max=INT64_MAX)},
    kind="stateful",
)
class ResetCounter:
    """Sets a counter to init_count.

    counter: made by CreateCounter.  init_count: not negative.
    previous_value: int64 (), the count before.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _COUNTER

    def shape(counter: Any) -> Spec:
        return _COUNT


@operator("CountUp", inputs="counter", outputs="previous_count", kind="stateful")
class CountUp:
    """Adds 1 to a counter.

    counter: made by CreateCounter.  previous_count: int64 (), the count before.
    An error when the count is the largest number there is.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _COUNTER

    def shape(counter: Any) -> Spec:
        return _COUNT


@operator("CountDown", inputs="counter", outputs="done", kind="stateful")
class CountDown:
    """Takes 1 from a counter, also below 0.

    counter: made by CreateCounter.  done: bool (), whether the count was 0 or less before: a
    counter that begins with n is done at the call n + 1.
    An error when the count is the smallest number there is.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _COUNTER

    def shape(counter: Any) -> Spec:
        return Spec((), _BOOL)


@operator("CheckCounterDone", inputs="counter", outputs="done", kind="stateful")
class CheckCounterDone:
    """done = whether the count is 0 or less.

    counter: made by CreateCounter.  done: bool ().
    """

    reference = _COUNTER

    def shape(counter: Any) -> Spec:
        return Spec((), _BOOL)


@operator("RetrieveCount", inputs="counter", outputs="count", kind="stateful")
class RetrieveCount:
    """count = what a counter stands at.

    counter: made by CreateCounter.  count: int64 ().
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _COUNTER

    def shape(counter: Any) -> Spec:
        return _COUNT


def _fetch_add(mutex_ptr: Any, mut_value: Spec, increment: Spec) -> tuple[Spec, Spec]:
    require_single("mut_value", mut_value)
    require_single("increment", increment)
    return Spec((), mut_value.dtype), Spec((), mut_value.dtype)


@operator(
    "AtomicFetchAdd",
    inputs="mutex_ptr mut_value increment",
    outputs="mut_value fetched_value",
    types={"mut_value": INT32, "increment": INT32},
    inplace=[(1, 0)],
    kind="stateful",
    shape=_fetch_add,
)
class AtomicFetchAdd:
    """Adds to a number under a mutex: mut_value + increment, and the number before.

    mutex_ptr: made by CreateMutex.  The inputs mut_value and increment: int32 with one element.
    The outputs mut_value, usually the blob of the input, and fetched_value: int32 ().  A sum that
    is too large wraps around.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _MUTEX


@operator(
    "AtomicFetchAdd64",
    inputs="mutex_ptr mut_value increment",
    outputs="mut_value fetched_value",
    types={"mut_value": INT64, "increment": INT64},
    inplace=[(1, 0)],
    kind="stateful",
    shape=_fetch_add,
)
class AtomicFetchAdd64:
    """AtomicFetchAdd for int64.

    Inputs and outputs are those of AtomicFetchAdd, with int64 in place of int32.
    """

    reference = _MUTEX


@operator("CreateAtomicBool", inputs="", outputs="atomic_bool", kind="stateful")
class CreateAtomicBool:
    """Makes a flag, false at first.  atomic_bool: a blob that holds no tensor."""

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _FLAG

    def shape() -> None:
        return None


@operator(
    "ConditionalSetAtomicBool",
    inputs="atomic_bool condition",
    outputs="",
    types={"condition": BOOL},
    kind="stateful",
)
class ConditionalSetAtomicBool:
    """Sets a flag where the condition holds; else it stays as it is.

    atomic_bool: made by CreateAtomicBool.  condition: bool with one element.
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _FLAG

    def shape(atomic_bool: Any, condition: Spec) -> tuple[()]:
        require_single("condition", condition)
        return ()


@operator("CheckAtomicBool", inputs="atomic_bool", outputs="value", kind="stateful")
class CheckAtomicBool:
    """value = whether a flag is set.

    atomic_bool: made by CreateAtomicBool.  value: bool (1,).
    """

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = _FLAG

    def shape(atomic_bool: Any) -> Spec:
        return Spec((1,), _BOOL)
