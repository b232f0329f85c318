# mypy: disable-error-code="misc, no-any-return"
"""Range, and Accumulate, a running sum."""

from __future__ import annotations

import math

import numpy as np

from caffe2.ops.arguments import Float, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT32, INT64
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    Spec,
    operator,
    same_as,
)

_MOST = 2**62  # values of a range
_NUMBERS = FLOAT | DOUBLE | INT32 | INT64


@operator(
    "Range",
    inputs="start stop? step?",
    outputs="output",
    types={"start": _NUMBERS, "stop": _NUMBERS, "step": _NUMBERS},
)
class Range:
    """output = start, start + step, start + 2 step, ... as long as stop is not reached.

    One input is stop, with start 0 and step 1; two are start and stop, with step 1.
    start, stop, step: one element each, of one type: float, double, int32 or int64; step is not 0
    and all are finite.
    output: (ceil((stop - start) / step),), of that type; empty when stop lies behind.
    """

    gradient = NO_GRADIENT

    def shape(start: Spec, stop: Spec | None, step: Spec | None) -> None:
        for name, spec in (("start", start), ("stop", stop), ("step", step)):
            if spec is None:
                continue
            if math.prod(spec.shape) != 1:
                raise OperatorError(name, f"has shape {spec.shape}; one element is needed")
            if spec.dtype != start.dtype:
                raise OperatorError(name, f"is {spec.dtype}; start is {start.dtype}")

    def reference(start: Array, stop: Array | None, step: Array | None) -> Array:
        given = [each.reshape(-1)[0].item() for each in (start, stop, step) if each is not None]
        first, end, each = ([0, *given, 1] if len(given) == 1 else [*given, 1])[:3]
        if not all(map(math.isfinite, given)) or each == 0:
            raise OperatorError("step", f"is {each} from {first} to {end}; not allowed")
        if start.dtype.kind == "f":
            count = max(math.ceil((end - first) / each), 0)
        else:
            count = max(-((first - end) // each), 0)
        if count > _MOST:
            raise OperatorError("stop", f"is {end}; from {first} on it gives {count} values")
        return np.asarray([first + i * each for i in range(count)], start.dtype)


@operator(
    "Accumulate",
    inputs="input",
    outputs="output",
    args={"gamma": Float(1.0)},
    types={"input": FLOAT},
    kind="stateful",
    shape=same_as("input"),
)
class Accumulate:
    """output = input + gamma * output, with the output that is there before; 0 where there is none
    of the shape of input.

    input, output: float, any shape.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(input: Array) -> Array:
        return input.copy()
