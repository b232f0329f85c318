# mypy: disable-error-code="misc, no-any-return"
"""Choosing between two tensors: Where, Conditional."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import Bool, OperatorError
from caffe2.ops.datatypes import BOOL, DOUBLE, FLOAT, INTS
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank, require_same_shape

_CHOICE = FLOAT | DOUBLE | INTS | BOOL


def _require_alike(name: str, spec: Spec, like: str, other: Spec) -> None:
    require_same_shape(name, spec, like, other)
    if spec.dtype != other.dtype:
        raise OperatorError(name, f"is {spec.dtype}; {like} is {other.dtype}")


def _by_rows(condition: Array, values: Array) -> Array:
    """The condition for rows of `values`, as NumPy broadcasts it."""
    return condition.reshape(condition.shape + (1,) * (values.ndim - condition.ndim))


def _require_rows(name: str, condition: Spec, like: str, values: Spec) -> None:
    require_rank(name, condition, 1)
    if values.shape[:1] != condition.shape:
        problem = f"has {condition.shape[0]} elements; {like} has shape {values.shape}"
        raise OperatorError(name, problem)


@operator(
    "Where",
    inputs="C X Y",
    outputs="Z",
    args={"broadcast_on_rows": Bool(False)},
    types={"C": BOOL, "X": _CHOICE, "Y": _CHOICE},
)
class Where:
    """Z = X where C is true, else Y, element by element.

    C: bool tensor with the shape of X; with broadcast_on_rows one value for each row of X, that
    is for each index of its first dimension.
    X, Y, Z: float, double, int32, int64 or bool tensors of one shape and one type.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(C: Spec, X: Spec, Y: Spec, op: OpView) -> Spec:
        _require_alike("Y", Y, "X", X)
        if op.args.broadcast_on_rows:
            _require_rows("C", C, "X", X)
        else:
            require_same_shape("C", C, "X", X)
        return X

    def reference(C: Array, X: Array, Y: Array) -> Array:
        return np.where(_by_rows(C, X), X, Y)


@operator(
    "Conditional",
    inputs="Condition DataT DataF",
    outputs="DataO",
    types={"Condition": BOOL},
)
class Conditional:
    """DataO = the rows of DataT where Condition is true, else those of DataF.

    Condition: bool vector, one value for each index of the first dimension of DataT.
    DataT, DataF, DataO: tensors of one shape and one type, any.
    """

    gradient = NO_GRADIENT

    def shape(Condition: Spec, DataT: Spec, DataF: Spec) -> Spec:
        _require_alike("DataF", DataF, "DataT", DataT)
        _require_rows("Condition", Condition, "DataT", DataT)
        return DataT

    def reference(Condition: Array, DataT: Array, DataF: Array) -> Array:
        return np.where(_by_rows(Condition, DataT), DataT, DataF)
