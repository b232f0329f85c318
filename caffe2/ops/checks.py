# mypy: disable-error-code="misc, no-any-return"
"""Questions about the elements of a tensor, and operators that stop a net by the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Float, Int, OperatorError, Scalars, Str
from caffe2.ops.datatypes import BOOL, DOUBLE, FLOAT, INTS, STRING, DataType, data_type_of
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
    same_as,
)

_TRUTH = np.dtype(np.bool_)
_MEMBERS = INTS | BOOL | STRING


@operator("IsEmpty", inputs="tensor", outputs="is_empty")
class IsEmpty:
    """is_empty = whether the tensor has no elements.

    tensor: of any shape and type.  is_empty: bool scalar.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(tensor: Spec) -> Spec:
        return Spec((), _TRUTH)

    def reference(tensor: Array) -> Array:
        return np.array(tensor.size == 0)


@operator("IsNaN", inputs="tensor", outputs="output", types={"tensor": FLOAT | DOUBLE})
class IsNaN:
    """output = 1 where the tensor is NaN, else 0, element by element.

    tensor: float or double, of any shape.  output: uint8, of the same shape.
    """

    def shape(tensor: Spec) -> Spec:
        return Spec(tensor.shape, np.dtype(np.uint8))

    def reference(tensor: Array) -> Array:
        return np.isnan(tensor).astype(np.uint8)


@operator(
    "ReplaceNaN",
    inputs="input",
    outputs="output",
    args={"value": Float(0.0)},
    types={"input": FLOAT | DOUBLE},
    inplace=[(0, 0)],
    shape=same_as("input"),
)
class ReplaceNaN:
    """output = input, with `value` in the place of NaN.

    input, output: float or double tensors of one shape and type, any.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(input: Array, op: OpView) -> Array:
        return np.where(np.isnan(input), input.dtype.type(np.float32(op.args.value)), input)


def _first(mask: Array) -> int | None:
    found = np.flatnonzero(mask)
    return int(found[0]) if found.size else None


@operator(
    "NanCheck",
    inputs="tensor others*?",
    outputs="output",
    types={"tensor": FLOAT},
    inplace=[(0, 0)],
)
class NanCheck:
    """output = tensor, and an error if that has an element that is NaN or infinite.

    tensor, output: float tensors of one shape, any.  others: blobs to look at when it fails, of
    any kind; they are not read.
    """

    def shape(tensor: Spec, *others: Spec) -> Spec:
        return tensor

    def reference(tensor: Array, *others: Array) -> Array:
        place = _first(~np.isfinite(tensor))
        if place is not None:
            problem = f"is {tensor.reshape(-1)[place]} at element {place}"
            raise OperatorError("tensor", problem)
        return tensor.copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("NanCheck", [op.grad(0)], [op.input_grad(0)])


@operator("EnforceFinite", inputs="input", outputs="", types={"input": FLOAT | DOUBLE})
class EnforceFinite:
    """An error if an element of the input is NaN or infinite.

    input: float or double tensor of any shape.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(input: Spec) -> tuple[Spec, ...]:
        return ()

    def reference(input: Array) -> tuple[Array, ...]:
        place = _first(~np.isfinite(input))
        if place is not None:
            raise OperatorError("input", f"is {input.reshape(-1)[place]} at element {place}")
        return ()


@operator(
    "Assert",
    inputs="X",
    outputs="",
    args={"error_msg": Str("")},
    types={"X": INTS | BOOL},
)
class Assert:
    """An error if an element of X is 0 or false; its text contains error_msg.

    X: bool, int32 or int64 tensor of any shape.
    """

    def shape(X: Spec) -> tuple[Spec, ...]:
        return ()

    def reference(X: Array, op: OpView) -> tuple[Array, ...]:
        place = _first(X == 0)
        if place is not None:
            problem = f"is {X.reshape(-1)[place]} at element {place}"
            text = f"; {op.args.error_msg}" if op.args.error_msg else ""
            raise OperatorError("X", problem + text)
        return ()


@operator(
    "IsMemberOf",
    inputs="X",
    outputs="Y",
    args={"value": Scalars(), "dtype": Int()},
    types={"X": _MEMBERS},
)
class IsMemberOf:
    """Y = whether `value` holds X, element by element.

    X: bool, int32, int64 or string tensor of any shape.  Y: bool, of the same shape.
    value: integers or, for strings, texts.
    dtype: the number of the type of X (TensorProto.DataType); X is asked where it is not given.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(X: Spec, op: OpView) -> Spec:
        kind = data_type_of(X.dtype)
        if op.args.dtype is not None and op.args.dtype != kind:
            problem = f"is {op.args.dtype}; the type of X is {int(kind)} {kind.name}"
            raise OperatorError("argument 'dtype'", problem)
        wanted = str if kind == DataType.STRING else int
        for value in op.args.value:
            if not isinstance(value, wanted):
                kinds = "texts" if wanted is str else "integers"
                raise OperatorError("argument 'value'", f"has {value!r}; {kinds} are needed")
        return Spec(X.shape, _TRUTH)

    def reference(X: Array, op: OpView) -> Array:
        if X.dtype.kind == "O":
            known = {value.encode("utf-8", "surrogateescape") for value in op.args.value}
        else:
            known = {bool(value) if X.dtype == _TRUTH else value for value in op.args.value}
        return np.array([x in known for x in X.reshape(-1).tolist()], bool).reshape(X.shape)
