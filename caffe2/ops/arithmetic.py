# mypy: disable-error-code="misc, no-any-return"
"""Sums, scaling, copies and casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, OperatorError, Scalar
from caffe2.ops.datatypes import DOUBLE, FLOAT, INTS, DataType, DType, dtype_of
from caffe2.ops.declaration import (
    NO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
    same_as,
)
from caffe2.ops.shapes import (
    require_same_size,
    require_same_types,
    require_single,
)


@operator(
    "Sum",
    inputs="A*",
    outputs="C",
    types={"A": FLOAT | DOUBLE | INTS},
    inplace=[(0, 0)],
)
class Sum:
    """C = the sum of all inputs, element by element.

    Inputs: one or more tensors of one shape and one type: float, double, int32 or int64 (sums of
    integers wrap around).  C: the same.
    """

    def shape(*A: Spec, op: OpView) -> Spec:
        require_same_types(A, op)
        for index, spec in enumerate(A):
            if spec.shape != A[0].shape:
                problem = f"has shape {spec.shape}; input 0 ('{op.input(0)}') has {A[0].shape}"
                raise OperatorError(f"input {index} ('{op.input(index)}')", problem)
        return A[0]

    def reference(*A: Array) -> Array:
        wide = np.float64 if A[0].dtype.kind == "f" else A[0].dtype
        total = np.zeros(A[0].shape, dtype=wide)
        for array in A:
            total = total + array
        return np.asarray(total, dtype=A[0].dtype)

    def gradient(op: GradientContext) -> Any:
        for index in range(len(op.inputs)):
            op.set_input_grad(index, op.grad(0))
        return []


def _pairs(name: str, items: tuple[Any, ...]) -> list[tuple[Any, Any]]:
    """(tensor, weight) pairs of X_0, weight_0, X_1, weight_1, ..."""
    if len(items) % 2:
        problem = f"has {len(items)} inputs {name}; tensors and weights come in pairs"
        raise OperatorError("", problem)
    return list(zip(items[::2], items[1::2], strict=True))


def _check_pairs(name: str, specs: tuple[Spec, ...], like: str, first: Spec) -> None:
    for index, (tensor, weight) in enumerate(_pairs(name, specs)):
        require_same_size(f"tensor {index}", tensor, like, first)
        require_single(f"weight {index}", weight)


@operator(
    "WeightedSum",
    inputs="X*",
    outputs="output",
    args={"grad_on_w": Bool(False)},
    types={"X": FLOAT},
    inplace=[(0, 0)],
)
class WeightedSum:
    """output = X_0 * weight_0 + X_1 * weight_1 + ...

    Inputs: X_0, weight_0, X_1, weight_1, ...: floats; all X have equally many elements, each
    weight has one.  output: float with the shape of X_0, which it may overwrite.
    grad_on_w: the gradient is wanted for the weights, too.
    """

    def shape(*X: Spec) -> Spec:
        _check_pairs("X", X, "tensor 0", X[0])
        return X[0]

    def reference(*X: Array) -> Array:
        total = np.zeros(X[0].shape)
        for tensor, weight in _pairs("X", X):
            total += tensor.reshape(total.shape).astype(np.float64) * float(weight.reshape(()))
        return total.astype(X[0].dtype)

    def gradient(op: GradientContext) -> Any:
        count = len(op.inputs)
        outputs = [op.input_grad(index) for index in range(0, count, 2)]
        if op.args.grad_on_w:
            outputs += [op.input_grad(index) for index in range(1, count, 2)]
        return op.make("WeightedSumGradient", [op.grad(0), *op.inputs], outputs)


@operator(
    "WeightedSumGradient",
    inputs="dY X*",
    outputs="dX*",
    args={"grad_on_w": Bool(False)},
    types={"dY": FLOAT, "X": FLOAT},
)
class WeightedSumGradient:
    """dX_i = weight_i * dY and, with grad_on_w, dweight_i = sum(dY * X_i).

    Inputs: dY, X_0, weight_0, X_1, weight_1, ...: floats as for WeightedSum; dY has as many
    elements as each X.
    Outputs: dX_0, dX_1, ..., then with grad_on_w dweight_0, dweight_1, ..., shape (1,) each.
    """

    def shape(dY: Spec, *X: Spec, op: OpView) -> tuple[Spec, ...]:
        _check_pairs("X", X, "dY", dY)
        tensors = X[::2]
        weights = (Spec((1,), dY.dtype),) * len(tensors) if op.args.grad_on_w else ()
        if len(op.outputs) != len(tensors) + len(weights):
            problem = f"has {len(op.outputs)} outputs; {len(tensors) + len(weights)} are needed"
            raise OperatorError("", problem)
        return (*tensors, *weights)

    def reference(dY: Array, *X: Array, op: OpView) -> tuple[Array, ...]:
        dy = dY.astype(np.float64).reshape(-1)
        pairs = _pairs("X", X)
        found = [
            (dy * float(weight.reshape(()))).astype(dY.dtype).reshape(tensor.shape)
            for tensor, weight in pairs
        ]
        if op.args.grad_on_w:
            products = (float(dy @ tensor.reshape(-1)) for tensor, _ in pairs)
            found += [np.array([product], dtype=dY.dtype) for product in products]
        return tuple(found)


@operator(
    "Scale",
    inputs="X",
    outputs="Y",
    args={"scale": Float(1.0)},
    types={"X": FLOAT | DOUBLE},
    inplace=[(0, 0)],
    shape=same_as("X"),
)
class Scale:
    """Y = scale * X, element by element.

    X, Y: float or double tensors of one shape, any.
    """

    def reference(X: Array, op: OpView) -> Array:
        return np.asarray(X.astype(np.float64) * op.args.scale, dtype=X.dtype)

    def gradient(op: GradientContext) -> Any:
        return op.make("Scale", [op.grad(0)], [op.input_grad(0)])


@operator("Copy", inputs="input", outputs="output", shape=same_as("input"))
class Copy:
    """output = input, in memory of its own.

    input, output: tensors of any one shape and type.
    """

    def reference(input: Array) -> Array:
        return input.copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("CopyOnDeviceLike", [op.grad(0), op.input(0)], [op.input_grad(0)])


@operator("CopyOnDeviceLike", inputs="input dst", outputs="output", shape=same_as("input"))
class CopyOnDeviceLike:
    """output = input, on the device that holds dst.

    input, output: tensors of any one shape and type.  dst: any tensor.
    """

    def reference(input: Array, dst: Array) -> Array:
        return input.copy()


@operator(
    "StopGradient", inputs="input", outputs="output", inplace=[(0, 0)], shape=same_as("input")
)
class StopGradient:
    """output = input; no gradient passes back through it.

    input, output: tensors of any one shape and type.
    """

    gradient = NO_GRADIENT

    def reference(input: Array) -> Array:
        return input.copy()


_CAST_TYPES = tuple(kind for kind in DataType if kind not in (DataType.STRING, DataType.FLOAT16))


def _cast_type(name: str, value: int | float | str, texts: bool = False) -> DataType:
    """The type that `to` or `from_type` means: its number, or its name in any case."""
    kinds = (*_CAST_TYPES, DataType.STRING) if texts else _CAST_TYPES
    for kind in kinds:
        if value == kind or (isinstance(value, str) and value.upper() == kind.name):
            return kind
    allowed = ", ".join(f"{kind.value} {kind.name}" for kind in kinds)
    raise OperatorError(f"argument '{name}'", f"is {value!r}; allowed are {allowed}")


def _saturated(X: Array, dtype: DType) -> Array:
    """Floats as integers: toward zero, within the type's range, NaN as 0."""
    limits = np.iinfo(dtype)
    truncated = np.trunc(
        np.nan_to_num(X.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    )
    # The largest int64 is no float64: compare first, then convert what fits.
    above, below = truncated >= float(limits.max), truncated <= float(limits.min)
    inside = np.where(above | below, 0, truncated).astype(dtype)
    return np.where(above, limits.max, np.where(below, limits.min, inside)).astype(dtype)


@operator(
    "Cast",
    inputs="X",
    outputs="Y",
    args={"to": Scalar(int(DataType.FLOAT)), "from_type": Scalar()},
    types={"X": frozenset(dtype_of(kind) for kind in _CAST_TYPES)},
)
class Cast:
    """Y = X as another element type.

    X, Y: tensors of one shape, of any numeric type but FLOAT16; Y may be of strings.
    to: the number (TensorProto.DataType) or the name of Y's type.
    from_type: likewise X's type; only the gradient needs it.
    Floats become integers by rounding toward zero; what the type cannot hold becomes its nearest
    value, NaN 0.  Integers that do not fit wrap around.  As bool, everything but 0 is true.  As
    text, integers and bools are decimal numbers and floats have six digits after the point.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        return Spec(X.shape, dtype_of(_cast_type("to", op.args.to, texts=True)))

    def reference(X: Array, op: OpView) -> Array:
        dtype = dtype_of(_cast_type("to", op.args.to, texts=True))
        if dtype.kind == "O":
            form = "%f" if X.dtype.kind == "f" else "%d"
            texts = [(form % value).encode() for value in X.reshape(-1).tolist()]
            return np.array([*texts, None], object)[:-1].reshape(X.shape)
        if X.dtype.kind == "f" and dtype.kind in "iu":
            return _saturated(X, dtype)
        with np.errstate(over="ignore"):
            return X.astype(dtype)

    def gradient(op: GradientContext) -> Any:
        if op.args.from_type is None:
            raise OperatorError("argument 'from_type'", "is missing; the gradient of Cast needs it")
        source = int(_cast_type("from_type", op.args.from_type))
        target = int(_cast_type("to", op.args.to))
        return op.make("Cast", [op.grad(0)], [op.input_grad(0)], to=source, from_type=target)
