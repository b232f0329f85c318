# mypy: disable-error-code="misc, no-any-return"
"""Comparisons, logic and bits of two tensors, with broadcasting; Not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from caffe2.ops.broadcast import (
    BROADCAST,
    BROADCASTING,
    aligned_operands,
    binary_shape,
    truth_shape,
)
from caffe2.ops.datatypes import BOOL, DOUBLE, FLOAT, INTS, TypeSet
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    OpView,
    operator,
    same_as,
)


def _declare(
    name: str,
    doc: str,
    compute: Callable[[Array, Array], Array],
    types: TypeSet,
    shape: Callable[..., Any],
    inplace: tuple[tuple[int, int], ...] = (),
) -> None:
    class Binary:
        gradient = SHOULD_NOT_DO_GRADIENT

        def reference(A: Array, B: Array, op: OpView) -> Array:
            return np.asarray(compute(*aligned_operands(A, B, op)))

    Binary.__doc__ = f"{doc}\n    {BROADCASTING}\n    "
    operator(
        name,
        inputs="A B",
        outputs="C",
        args=BROADCAST,
        types={"A": types, "B": types},
        inplace=inplace,
        shape=shape,
    )(Binary)


for _name, _sign, _compare in (
    ("EQ", "==", np.equal),
    ("NE", "!=", np.not_equal),
    ("LT", "<", np.less),
    ("LE", "<=", np.less_equal),
    ("GT", ">", np.greater),
    ("GE", ">=", np.greater_equal),
):
    _declare(
        _name,
        f"""C = A {_sign} B, element by element; with a NaN only NE is true.

    A, B: float, double, int32, int64 or bool tensors of one type.  C: bool.""",
        _compare,
        FLOAT | DOUBLE | INTS | BOOL,
        truth_shape,
    )

for _name, _sign, _logic in (
    ("And", "and", np.logical_and),
    ("Or", "or", np.logical_or),
    ("Xor", "xor", np.logical_xor),
):
    _declare(
        _name,
        f"""C = A {_sign} B, element by element.

    A, B, C: bool tensors.""",
        _logic,
        BOOL,
        binary_shape,
        ((0, 0),),
    )

for _name, _sign, _bits in (
    ("BitwiseAnd", "&", np.bitwise_and),
    ("BitwiseOr", "|", np.bitwise_or),
    ("BitwiseXor", "^", np.bitwise_xor),
):
    _declare(
        _name,
        f"""C = A {_sign} B, bit by bit.

    A, B: int32, int64 or bool tensors of one type.  C: the same type.""",
        _bits,
        INTS | BOOL,
        binary_shape,
        ((0, 0),),
    )


@operator("Not", inputs="X", outputs="Y", types={"X": BOOL}, shape=same_as("X"))
class Not:
    """Y = not X, element by element.

    X, Y: bool tensors of one shape, any.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def reference(X: Array) -> Array:
        return np.logical_not(X)
