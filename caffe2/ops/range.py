# mypy: disable-error-code="misc, no-any-return"
"""Range: numbers at equal distances."""

from __future__ import annotations

import math

import numpy as np

from caffe2.ops.arguments import OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INTS
from caffe2.ops.declaration import NO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_same_types, require_single

_NUMBER = FLOAT | DOUBLE | INTS


@operator(
    "Range",
    inputs="start stop? step?",
    outputs="output",
    types={"start": _NUMBER, "stop": _NUMBER, "step": _NUMBER},
)
class Range:
    """output = start, start + step, start + 2 step, ... as long as it lies before stop.

    start, stop, step: float, double, int32 or int64, all the same, one element each; a single
    input is stop, with start = 0, and step is 1 where it is not given, else not 0.
    output: their type, 1-d; empty where stop lies on the other side of start.
    """

    gradient = NO_GRADIENT

    def shape(start: Spec, stop: Spec | None, step: Spec | None, op: OpView) -> None:
        given = tuple(spec for spec in (start, stop, step) if spec is not None)
        require_same_types(given, op)
        for name, spec in zip(("start", "stop", "step"), given, strict=False):
            require_single(name, spec)

    def reference(start: Array, stop: Array | None, step: Array | None) -> Array:
        kind = start.dtype.type
        first = kind(0) if stop is None else start.reshape(())[()]
        last = start.reshape(())[()] if stop is None else stop.reshape(())[()]
        each = kind(1) if step is None else step.reshape(())[()]
        if each == 0:
            raise OperatorError("step", "is 0")
        if start.dtype.kind == "i":
            count = max(0, -((int(first) - int(last)) // int(each)))
        else:
            with np.errstate(all="ignore"):
                steps = (last - first) / each
            if not math.isfinite(steps):
                raise OperatorError("", f"has {steps} steps from {first} to {last}")
            count = max(0, math.ceil(steps))
        places = np.arange(count).astype(start.dtype)
        return (first + places * each).astype(start.dtype)
