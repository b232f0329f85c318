# mypy: disable-error-code="misc"
"""Statistics of a process: named counts that operators add to, and timers."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Argument, Bool, Float, Int, Str
from caffe2.ops.datatypes import INT64, NUMBERS, STRING
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, NativeOnly, Spec, operator
from caffe2.ops.shapes import require_same_size

_REGISTRY = NativeOnly("a registry of statistics is no tensor")
_TIMER = NativeOnly("a timer is no tensor")
_INT64 = np.dtype(np.int64)


@operator("StatRegistryCreate", inputs="", outputs="handle", kind="stateful")
class StatRegistryCreate:
    """Makes an empty registry of statistics beside that of the process: a blob that holds no
    tensor.
    """

    reference = _REGISTRY

    def shape() -> None:
        return None


@operator(
    "StatRegistryExport",
    inputs="handle?",
    outputs="keys values timestamps",
    args={"reset": Bool(True)},
    kind="stateful",
)
class StatRegistryExport:
    """All statistics of a registry, in the order of their names.

    handle: made by StatRegistryCreate; the registry of the process when left out.
    keys: strings (n,).  values: int64 (n,).  timestamps: int64 (n,), nanoseconds since 1970.
    reset: set all to 0 afterwards.
    """

    reference = _REGISTRY

    def shape(handle: Any) -> tuple[None, None, None]:
        return None, None, None


@operator(
    "StatRegistryUpdate",
    inputs="keys values handle?",
    outputs="",
    types={"keys": STRING, "values": INT64},
    kind="stateful",
)
class StatRegistryUpdate:
    """Adds values to the statistics of a registry; a name that is not there begins at 0.

    keys: strings.  values: int64, as many.
    handle: made by StatRegistryCreate; the registry of the process when left out.
    """

    reference = _REGISTRY

    def shape(keys: Spec, values: Spec, handle: Any) -> tuple[()]:
        if keys is not None and values is not None:
            require_same_size("values", values, "keys", keys)
        return ()


_PUT: dict[str, Argument] = {
    "stat_name": Str(),
    "magnitude_expand": Int(1, max=INT64_MAX),
    "bound": Bool(False),
    "default_value": Float(),
}


def _put(value: Any) -> tuple[()]:
    return ()


def _declare_put(name: str, what: str) -> None:
    body = type(
        name,
        (),
        {
            "reference": _REGISTRY,
            "__doc__": f"""{what}

    value: numbers, of which the first counts, times magnitude_expand and then cut to an integer.
    stat_name: what the names of the statistics begin with; the name of the operator when left out.
    bound: a number that does not fit in 64 bits counts as the nearest one that does; else an error.
    default_value: taken where value is empty, which is an error without it.
    """,
        },
    )
    operator(
        name,
        inputs="value",
        outputs="",
        args=_PUT,
        types={"value": NUMBERS},
        kind="stateful",
        shape=_put,
    )(body)


_declare_put("IncrementPut", "Adds a number to the statistic <stat_name>/stat_value of a process.")
_declare_put(
    "AveragePut",
    "Adds a number to <stat_name>/stat_value/sum of the process, and 1 to .../count.",
)
_declare_put(
    "StdDevPut",
    """AveragePut that also adds the distance from the first number that this operator has seen to
    .../sumoffset, and its square to .../sumsqoffset.""",
)


@operator(
    "TimerBegin",
    inputs="",
    outputs="timer",
    args={"counter_name": Str()},
    kind="stateful",
)
class TimerBegin:
    """Starts a timer.  timer: a blob that holds no tensor.

    counter_name: what the statistics of TimerEnd are called; the name of the blob when left out.
    """

    reference = _TIMER

    def shape() -> None:
        return None


@operator("TimerEnd", inputs="timer", outputs="", kind="stateful")
class TimerEnd:
    """Stops a timer, which must run, and adds its time in nanoseconds to the statistic
    <counter_name>/time_ns/sum of the process, and 1 to .../count.

    timer: made by TimerBegin.
    """

    reference = _TIMER

    def shape(timer: Any) -> tuple[()]:
        return ()


@operator("TimerGet", inputs="timer", outputs="nanos", kind="stateful")
class TimerGet:
    """nanos = nanoseconds since a timer, which must run, began.

    timer: made by TimerBegin.  nanos: int64 ().
    """

    reference = _TIMER

    def shape(timer: Any) -> Spec:
        return Spec((), _INT64)


@operator("TimerGetAndEnd", inputs="timer", outputs="nanos", kind="stateful")
class TimerGetAndEnd:
    """TimerGet and TimerEnd in one.

    timer: made by TimerBegin.  nanos: int64 (1,).
    """

    reference = _TIMER

    def shape(timer: Any) -> Spec:
        return Spec((1,), _INT64)


@operator("WallClockTime", inputs="", outputs="time", kind="stateful")
class WallClockTime:
    """time = nanoseconds since 1970, by the clock of the system: int64 ()."""

    gradient = SHOULD_NOT_DO_GRADIENT
    reference = NativeOnly("time passes")

    def shape() -> Spec:
        return Spec((), _INT64)
