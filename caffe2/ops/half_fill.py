# mypy: disable-error-code="misc, no-any-return"
"""Fillers of numbers of 16 bits, and numbers that count up."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Float, Ints, OperatorError
from caffe2.ops.declaration import NO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.fill import _SHAPE_ARGS, _shape, _spec

_FLOAT, _HALF = np.dtype(np.float32), np.dtype(np.float16)
_SHAPE = Ints(min=0, max=INT64_MAX)


@operator(
    "Float16ConstantFill",
    inputs="",
    outputs="output",
    args={"shape": _SHAPE, "value": Float(0.0)},
    native=False,
)
class Float16ConstantFill:
    """output = value everywhere.  output: float16 of the given shape."""

    gradient = NO_GRADIENT

    def shape(op: OpView) -> Spec:
        return Spec(tuple(op.args.shape), _HALF)

    def reference(op: OpView) -> Array:
        return np.full(op.args.shape, np.float32(op.args.value)).astype(_HALF)


@operator(
    "Float16UniformFill",
    inputs="",
    outputs="output",
    args={"shape": _SHAPE, "min": Float(0.0), "max": Float(1.0)},
    kind="random",
    native=False,
)
class Float16UniformFill:
    """output = numbers drawn from [min, max), rounded to 16 bits.  output: float16 of the given
    shape.  min is less than max.
    """

    gradient = NO_GRADIENT

    def shape(op: OpView) -> Spec:
        if not op.args.min < op.args.max:
            raise OperatorError("argument 'max'", f"is {op.args.max}; min is {op.args.min}")
        return Spec(tuple(op.args.shape), _HALF)

    def reference(op: OpView) -> Array:
        return op.rng.uniform(op.args.min, op.args.max, op.args.shape).astype(_HALF)


@operator(
    "RangeFill",
    inputs="X?",
    outputs="Y",
    args=_SHAPE_ARGS,
    inplace=[(0, 0)],
    native=False,
)
class RangeFill:
    """Y = 0, 1, 2, ..., row by row.

    X, shape, extra_shape, input_as_shape: as for ConstantFill.  Y: float.
    """

    gradient = NO_GRADIENT

    def shape(X: Spec | None, op: OpView) -> Spec | None:
        return _spec("X", X, op, _FLOAT)

    def reference(X: Array | None, op: OpView) -> Array:
        shape = _shape("X", X, op)
        return np.arange(np.prod(shape, dtype=np.int64)).astype(np.float32).reshape(shape)
