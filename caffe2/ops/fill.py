# mypy: disable-error-code="misc, no-any-return"
"""Fillers: tensors made from arguments, constant, given or random."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from caffe2.ops.arguments import (
    INT64_MAX,
    INT64_MIN,
    Argument,
    Bool,
    Float,
    Floats,
    Int,
    Ints,
    OperatorError,
    Scalar,
    Scalars,
    Strs,
)
from caffe2.ops.datatypes import FLOAT, INT32, DataType, DType, dtype_of
from caffe2.ops.declaration import NO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_single

_FLOAT = np.dtype(np.float32)

# The shape of every filler comes from the argument `shape`; or from the first input, whose shape
# (with input_as_shape=1: whose values) is taken, with extra_shape behind it.
_SHAPE_ARGS: Mapping[str, Argument] = {
    "shape": Ints(min=0, max=INT64_MAX),
    "extra_shape": Ints(min=0, max=INT64_MAX),
    "input_as_shape": Bool(False),
}


def _known_shape(name: str, like: Spec | None, op: OpView) -> tuple[int, ...] | None:
    """The output's shape, None where it depends on values of the input."""
    args = op.args
    if like is None:
        if args.extra_shape or args.input_as_shape:
            raise OperatorError("", "has extra_shape or input_as_shape, which need an input")
        return tuple(args.shape)
    if args.shape:
        raise OperatorError("argument 'shape'", "cannot be given together with an input")
    if not args.input_as_shape:
        return (*like.shape, *args.extra_shape)
    if len(like.shape) != 1 or like.dtype != np.int64:
        problem = f"is {like.dtype} of shape {like.shape}; input_as_shape needs int64 values, 1-d"
        raise OperatorError(name, problem)
    return None


def _shape(name: str, like: Array | None, op: OpView) -> tuple[int, ...]:
    spec = None if like is None else Spec(like.shape, like.dtype)
    known = _known_shape(name, spec, op)
    if known is not None:
        return known
    values = [] if like is None else like.tolist()
    if min(values, default=0) < 0:
        raise OperatorError(name, f"holds the shape {values}; dimensions are not negative")
    return (*values, *op.args.extra_shape)


def _spec(name: str, like: Spec | None, op: OpView, dtype: DType) -> Spec | None:
    shape = _known_shape(name, like, op)
    return None if shape is None else Spec(shape, dtype)


def _argument_dtype(op: OpView, allowed: tuple[DataType, ...]) -> DType:
    if op.args.dtype not in allowed:
        names = ", ".join(f"{kind.value} {kind.name}" for kind in allowed)
        raise OperatorError("argument 'dtype'", f"is {op.args.dtype}; allowed are {names}")
    return dtype_of(op.args.dtype)


class _Several(dict[str, Any]):
    """What a message holds in place of one value: f, i, s."""


class _Constant(Scalar):
    """A Scalar; where a message holds several, all of them: the type of the output chooses."""

    def element(self, value: Any) -> Any:
        return value if isinstance(value, _Several) else super().element(value)

    def from_message(self, message: Any) -> Any:
        fields = [field for field in ("f", "i", "s") if message.HasField(field)]
        if len(fields) > 1:
            return _Several({f: Scalar.element(self, getattr(message, f)) for f in fields})
        return super().from_message(message)


def _of_several(value: Any, dtype: DType | None = None) -> Any:
    """The one of them that an output of this type takes; without a type the first."""
    if not isinstance(value, _Several):
        return value
    wanted = {"O": "s", "f": "f"}.get(dtype.kind, "i") if dtype is not None else "f"
    return value.get(wanted, next(iter(value.values())))


def _converted(name: str, value: Any, dtype: DType) -> Any:
    """An argument's value as an element of this type; OperatorError when it cannot be one."""
    value = _of_several(value, dtype)
    if dtype.kind == "O":
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
    elif isinstance(value, (int, float)) and dtype.kind == "f":
        return value
    elif isinstance(value, int):
        if dtype.kind == "b":
            return value != 0
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            problem = f"is {value}; {dtype} holds {limits.min} to {limits.max}"
            raise OperatorError(f"argument '{name}'", problem)
        return value
    raise OperatorError(f"argument '{name}'", f"is {value!r}, which is no {dtype}")


_CONSTANT_TYPES = tuple(kind for kind in DataType if kind != DataType.FLOAT16)


def _constant_dtype(op: OpView) -> DType:
    if op.args.dtype is not None:
        return _argument_dtype(op, _CONSTANT_TYPES)
    value = _of_several(op.args.value)
    if isinstance(value, str):
        raise OperatorError("argument 'value'", "is text; that needs dtype=4 (STRING)")
    return np.dtype(np.int64) if isinstance(value, int) else _FLOAT


@operator(
    "ConstantFill",
    inputs="X? value?",
    outputs="Y",
    args={**_SHAPE_ARGS, "value": _Constant(), "dtype": Int()},
    inplace=[(0, 0)],
)
class ConstantFill:
    """Y = value everywhere.

    Y has the shape `shape` (a scalar when there is none); or, with an input X, the shape of X,
    followed by extra_shape; or, with input_as_shape=1, the shape that X (int64, 1-d) holds,
    followed by extra_shape.
    dtype: the number of Y's element type (TensorProto.DataType), any but FLOAT16; when left out,
        FLOAT, or INT64 where `value` is an integer.
    value: a number, or text for dtype=4 (STRING); 0 or empty when left out.  An integer that the
        type cannot hold is an error.
    The second input, a tensor with one element of Y's type, stands for the argument `value`.
    """

    gradient = NO_GRADIENT

    def shape(X: Spec | None, value: Spec | None, op: OpView) -> Spec | None:
        dtype = _constant_dtype(op)
        if value is not None:
            require_single("value", value)
            if value.dtype != dtype:
                raise OperatorError("value", f"is {value.dtype}; the output is {dtype}")
        elif op.args.value is not None:
            _converted("value", op.args.value, dtype)
        return _spec("X", X, op, dtype)

    def reference(X: Array | None, value: Array | None, op: OpView) -> Array:
        dtype = _constant_dtype(op)
        element: Any = b"" if dtype.kind == "O" else 0
        if value is not None:
            element = value.reshape(-1)[0]
        elif op.args.value is not None:
            element = _converted("value", op.args.value, dtype)
        with np.errstate(over="ignore"):
            return np.full(_shape("X", X, op), element, dtype=dtype)


def _given_shape(name: str, like: Spec | None, op: OpView, dtype: DType) -> Spec | None:
    spec = _spec(name, like, op, dtype)
    if spec is not None:
        _check_count(op, spec.shape)
    return spec


def _check_count(op: OpView, shape: tuple[int, ...]) -> None:
    if math.prod(shape) != len(op.args.values):
        problem = f"has {len(op.args.values)} values; the output has shape {shape}"
        raise OperatorError("argument 'values'", f"{problem}, {math.prod(shape)} elements")


def _given(name: str, like: Array | None, op: OpView, dtype: DType) -> Array:
    shape = _shape(name, like, op)
    _check_count(op, shape)
    values = np.empty(len(op.args.values), dtype=dtype)
    for index, value in enumerate(op.args.values):
        values[index] = _converted("values", value, dtype)
    return values.reshape(shape)


_GIVEN_TYPES = (
    DataType.FLOAT,
    DataType.INT32,
    DataType.STRING,
    DataType.BOOL,
    DataType.INT16,
    DataType.INT64,
    DataType.DOUBLE,
)


@operator(
    "GivenTensorFill",
    inputs="input?",
    outputs="output",
    args={**_SHAPE_ARGS, "values": Scalars(required=True), "dtype": Int(int(DataType.FLOAT))},
)
class GivenTensorFill:
    """output = the given values, in the order of memory.

    values: as many as the output has elements.
    dtype: the number of the element type: FLOAT, DOUBLE, INT16, INT32, INT64, BOOL or STRING.
    shape, extra_shape, input_as_shape, input: as for ConstantFill.
    """

    gradient = NO_GRADIENT

    def shape(input: Spec | None, op: OpView) -> Spec | None:
        return _given_shape("input", input, op, _argument_dtype(op, _GIVEN_TYPES))

    def reference(input: Array | None, op: OpView) -> Array:
        return _given("input", input, op, _argument_dtype(op, _GIVEN_TYPES))


def _declare_given(name: str, kind: DataType, values: Argument, what: str) -> None:
    dtype = dtype_of(kind)

    class Given:
        gradient = NO_GRADIENT

        def shape(input: Spec | None, op: OpView) -> Spec | None:
            return _given_shape("input", input, op, dtype)

        def reference(input: Array | None, op: OpView) -> Array:
            return _given("input", input, op, dtype)

    Given.__doc__ = f"""output = the given values, {what}, in the order of memory.

    values: as many as the output has elements.
    shape, extra_shape, input_as_shape, input: as for ConstantFill.
    """
    args = {**_SHAPE_ARGS, "values": values}
    operator(name, inputs="input?", outputs="output", args=args)(Given)


_declare_given("GivenTensorDoubleFill", DataType.DOUBLE, Floats(required=True), "as double")
_declare_given("GivenTensorIntFill", DataType.INT32, Ints(required=True), "as int32")
_declare_given(
    "GivenTensorInt64Fill",
    DataType.INT64,
    Ints(required=True, min=INT64_MIN, max=INT64_MAX),
    "as int64",
)
_declare_given(
    "GivenTensorBoolFill", DataType.BOOL, Ints(required=True), "as bool (everything but 0 is true)"
)
_declare_given("GivenTensorStringFill", DataType.STRING, Strs(required=True), "as strings")
_declare_given("GivenTensorInt16Fill", DataType.INT16, Ints(required=True), "as int16")


@operator(
    "GivenTensorByteStringToUInt8Fill",
    inputs="input?",
    outputs="output",
    args={**_SHAPE_ARGS, "values": Strs(required=True)},
)
class GivenTensorByteStringToUInt8Fill:
    """output = the bytes of the one string in values, in the order of memory.

    values: one string, with as many bytes as the output has elements.  output: uint8.
    shape, extra_shape, input_as_shape, input: as for ConstantFill.
    """

    gradient = NO_GRADIENT

    def shape(input: Spec | None, op: OpView) -> Spec | None:
        spec = _spec("input", input, op, np.dtype(np.uint8))
        if spec is not None:
            _string_bytes(op, spec.shape)
        return spec

    def reference(input: Array | None, op: OpView) -> Array:
        return _string_bytes(op, _shape("input", input, op))


def _string_bytes(op: OpView, shape: tuple[int, ...]) -> Array:
    strings = [text.encode("utf-8", "surrogateescape") for text in op.args.values]
    if len(strings) != 1 or len(strings[0]) != math.prod(shape):
        problem = f"is {len(strings)} strings of {sum(map(len, strings))} bytes"
        needed = f"one of {math.prod(shape)} bytes is needed for shape {shape}"
        raise OperatorError("argument 'values'", f"{problem}; {needed}")
    return np.frombuffer(strings[0], dtype=np.uint8).reshape(shape).copy()


@operator(
    "GaussianFill",
    inputs="input?",
    outputs="output",
    args={**_SHAPE_ARGS, "mean": Float(0.0), "std": Float(1.0, min=0.0)},
    inplace=[(0, 0)],
    kind="random",
)
class GaussianFill:
    """output = independent draws of a normal distribution with this mean and standard deviation.

    output: float.  shape, extra_shape, input_as_shape, input: as for ConstantFill.
    """

    gradient = NO_GRADIENT

    def shape(input: Spec | None, op: OpView) -> Spec | None:
        return _spec("input", input, op, _FLOAT)

    def reference(input: Array | None, op: OpView) -> Array:
        drawn = op.rng.normal(op.args.mean, op.args.std, _shape("input", input, op))
        return np.asarray(drawn, dtype=_FLOAT)


def _uniform_range(op: OpView, min: Any, max: Any) -> None:
    """Checks the bounds as far as they are arguments."""
    if (min is None) != (max is None):
        raise OperatorError("", "has an input min without an input max; give both or none")
    if min is None:
        if not op.args.min < op.args.max:
            problem = f"is {op.args.min}; it must be less than max, {op.args.max}"
            raise OperatorError("argument 'min'", problem)
        _require_finite("argument 'max'", op.args.min, op.args.max)
    else:
        require_single("min", min)
        require_single("max", max)


def _require_finite(subject: str, low: float, high: float) -> None:
    with np.errstate(over="ignore"):
        width = np.float32(high) - np.float32(low)
    if not np.isfinite(width):
        raise OperatorError(subject, f"is {high}; max - min must be finite, min is {low}")


def _bounds(op: OpView, min: Array | None, max: Array | None) -> tuple[Any, Any]:
    if min is None or max is None:
        return op.args.min, op.args.max
    low, high = min.reshape(-1)[0], max.reshape(-1)[0]
    if not low < high:
        raise OperatorError("min", f"is {low}; it must be less than max, {high}")
    _require_finite("max", low, high)
    return low, high


@operator(
    "UniformFill",
    inputs="shape? min? max?",
    outputs="output",
    args={**_SHAPE_ARGS, "min": Float(0.0), "max": Float(1.0)},
    types={"min": FLOAT, "max": FLOAT},
    inplace=[(0, 0)],
    kind="random",
)
class UniformFill:
    """output = independent draws, uniform in min <= x <= max.

    output: float.  The input `shape`, like shape, extra_shape, input_as_shape: as X for
    ConstantFill.  min and max as inputs (floats with one element each, given together) stand for
    the arguments; min < max.
    """

    gradient = NO_GRADIENT

    def shape(shape: Spec | None, min: Spec | None, max: Spec | None, op: OpView) -> Spec | None:
        _uniform_range(op, min, max)
        return _spec("shape", shape, op, _FLOAT)

    def reference(shape: Array | None, min: Array | None, max: Array | None, op: OpView) -> Array:
        low, high = _bounds(op, min, max)
        drawn = op.rng.uniform(float(low), float(high), _shape("shape", shape, op))
        return np.asarray(drawn, dtype=_FLOAT)


@operator(
    "UniformIntFill",
    inputs="shape? min? max?",
    outputs="output",
    args={**_SHAPE_ARGS, "min": Int(0), "max": Int(1)},
    types={"min": INT32, "max": INT32},
    inplace=[(0, 0)],
    kind="random",
)
class UniformIntFill:
    """output = independent draws, each integer in min <= x <= max with one probability.

    output: int32.  Inputs and arguments as for UniformFill, with int32 min and max.
    """

    gradient = NO_GRADIENT

    def shape(shape: Spec | None, min: Spec | None, max: Spec | None, op: OpView) -> Spec | None:
        _uniform_range(op, min, max)
        return _spec("shape", shape, op, np.dtype(np.int32))

    def reference(shape: Array | None, min: Array | None, max: Array | None, op: OpView) -> Array:
        low, high = _bounds(op, min, max)
        drawn = op.rng.integers(int(low), int(high), _shape("shape", shape, op), endpoint=True)
        return np.asarray(drawn, dtype=np.int32)


def _require_dimensions(op: OpView, shape: tuple[int, ...] | None, least: int) -> None:
    if shape is not None and len(shape) < least:
        raise OperatorError("output", f"has shape {shape}; {least} dimensions at least are needed")


@operator(
    "XavierFill",
    inputs="input?",
    outputs="output",
    args=_SHAPE_ARGS,
    inplace=[(0, 0)],
    kind="random",
)
class XavierFill:
    """output = independent draws, uniform in -s <= x <= s, s = sqrt(3 / fan_in).

    fan_in: the number of elements behind the first dimension; for a 1-d output 1.
    output: float with at least one dimension.
    shape, extra_shape, input_as_shape, input: as for ConstantFill.

    After Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", 2010, with the variance 1 / fan_in.
    """

    gradient = NO_GRADIENT

    def shape(input: Spec | None, op: OpView) -> Spec | None:
        _require_dimensions(op, _known_shape("input", input, op), 1)
        return _spec("input", input, op, _FLOAT)

    def reference(input: Array | None, op: OpView) -> Array:
        shape = _shape("input", input, op)
        _require_dimensions(op, shape, 1)
        scale = math.sqrt(3 / max(math.prod(shape[1:]), 1))
        return np.asarray(op.rng.uniform(-scale, scale, shape), dtype=_FLOAT)


@operator(
    "MSRAFill",
    inputs="input?",
    outputs="output",
    args=_SHAPE_ARGS,
    inplace=[(0, 0)],
    kind="random",
)
class MSRAFill:
    """output = independent draws of a normal distribution, mean 0, variance 2 / fan_out.

    fan_out: the number of elements divided by the second dimension, which for the filter of a
    convolution is (output channels) * (kernel size).
    output: float with at least two dimensions.
    shape, extra_shape, input_as_shape, input: as for ConstantFill.

    After He et al., "Delving Deep into Rectifiers", 2015 (backward case).
    """

    gradient = NO_GRADIENT

    def shape(input: Spec | None, op: OpView) -> Spec | None:
        _require_dimensions(op, _known_shape("input", input, op), 2)
        return _spec("input", input, op, _FLOAT)

    def reference(input: Array | None, op: OpView) -> Array:
        shape = _shape("input", input, op)
        _require_dimensions(op, shape, 2)
        fan_out = math.prod(shape) // max(shape[1], 1)
        return np.asarray(op.rng.normal(0, math.sqrt(2 / max(fan_out, 1)), shape), dtype=_FLOAT)


_DIAGONAL_TYPES = tuple(
    kind for kind in DataType if kind not in (DataType.FLOAT16, DataType.STRING)
)


def _require_diagonal(shape: tuple[int, ...] | None) -> None:
    if shape is not None and (len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1)):
        problem = "needed are two dimensions, or more that are all equal"
        raise OperatorError("output", f"has shape {shape}; {problem}")


@operator(
    "DiagonalFill",
    inputs="input?",
    outputs="output",
    args={**_SHAPE_ARGS, "value": _Constant(), "dtype": Int()},
    inplace=[(0, 0)],
)
class DiagonalFill:
    """output[i, i, ...] = value, 0 elsewhere.

    output: two dimensions, or more that are all equal.
    value, dtype: as for ConstantFill, without strings.
    shape, extra_shape, input_as_shape, input: as for ConstantFill.
    """

    gradient = NO_GRADIENT

    def shape(input: Spec | None, op: OpView) -> Spec | None:
        _diagonal_value(op)
        _require_diagonal(_known_shape("input", input, op))
        return _spec("input", input, op, _diagonal_value(op)[1])

    def reference(input: Array | None, op: OpView) -> Array:
        shape = _shape("input", input, op)
        _require_diagonal(shape)
        value, dtype = _diagonal_value(op)
        output = np.zeros(shape, dtype=dtype)
        places = np.arange(min(shape))
        with np.errstate(over="ignore"):
            output[(places,) * len(shape)] = value
        return output


def _diagonal_value(op: OpView) -> tuple[Any, DType]:
    dtype = _constant_dtype(op)
    if op.args.dtype is not None:
        dtype = _argument_dtype(op, _DIAGONAL_TYPES)
    return _converted("value", op.args.value or 0, dtype), dtype


@operator(
    "UniqueUniformFill",
    inputs="input? avoid?",
    outputs="output",
    args={
        **_SHAPE_ARGS,
        "min": Int(required=True, min=INT64_MIN, max=INT64_MAX),
        "max": Int(required=True, min=INT64_MIN, max=INT64_MAX),
        "dtype": Int(int(DataType.INT32)),
    },
    inplace=[(0, 0)],
    kind="random",
)
class UniqueUniformFill:
    """output = integers of min <= x <= max, each at most once, in random order.

    output: int32 or int64 (dtype), no more elements than there are integers to choose from.
    avoid: integers of that type, 1-d, which are not drawn.  min < max.
    shape, extra_shape, input_as_shape, input: as for ConstantFill.
    """

    gradient = NO_GRADIENT

    def shape(input: Spec | None, avoid: Spec | None, op: OpView) -> Spec | None:
        dtype = _argument_dtype(op, (DataType.INT32, DataType.INT64))
        for name in ("min", "max"):
            _converted(name, getattr(op.args, name), dtype)
        if not op.args.min < op.args.max:
            problem = f"is {op.args.min}; it must be less than max, {op.args.max}"
            raise OperatorError("argument 'min'", problem)
        if avoid is not None and (avoid.dtype != dtype or len(avoid.shape) != 1):
            problem = f"is {avoid.dtype} of shape {avoid.shape}; {dtype}, 1-d, is needed"
            raise OperatorError("avoid", problem)
        return _spec("input", input, op, dtype)

    def reference(input: Array | None, avoid: Array | None, op: OpView) -> Array:
        shape, low, high = _shape("input", input, op), op.args.min, op.args.max
        avoided = set() if avoid is None else set(avoid.tolist())
        taken = sorted(x for x in avoided if low <= x <= high)
        count, free = math.prod(shape), high - low + 1 - len(taken)
        if count > free:
            raise OperatorError("output", f"needs {count} integers; there are {free}")
        # A shuffle of all free integers, of which only the places that it touches are kept.
        moved: dict[int, int] = {}
        drawn = []
        for place in range(count):
            other = place + int(op.rng.integers(free - place, dtype=np.uint64))
            rank, moved[other] = moved.get(other, other), moved.get(place, place)
            drawn.append(_free_integer(rank, low, taken))
        return np.array(drawn, dtype=dtype_of(op.args.dtype)).reshape(shape)


def _free_integer(rank: int, low: int, taken: list[int]) -> int:
    """The integer from low on that `rank` others precede, of those that are not taken (sorted)."""
    first, last = 0, len(taken)
    while first < last:
        middle = (first + last) // 2
        if taken[middle] - low - middle <= rank:
            first = middle + 1
        else:
            last = middle
    return low + rank + first
