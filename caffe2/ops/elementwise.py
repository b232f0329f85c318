# mypy: disable-error-code="misc, no-any-return"
"""Arithmetic of two tensors, with broadcasting: Add, Sub, Mul, Div."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import OperatorError
from caffe2.ops.broadcast import (
    BROADCAST,
    BROADCASTING,
    binary_shape,
    broadcast_shapes,
    require_own_shapes,
    summed,
    wide_operands,
)
from caffe2.ops.datatypes import DOUBLE, FLOAT, INTS
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_same_types

_TYPES = FLOAT | DOUBLE | INTS
_BROADCASTING = f"""
    A, B: float, double, int32 or int64 tensors of one type.  C: the same type.
    {BROADCASTING}"""


def _gradient_shape(dC: Spec, A: Spec, B: Spec, op: OpView) -> tuple[Spec, Spec]:
    require_same_types((dC, A, B), op)
    expected, _ = broadcast_shapes(A.shape, B.shape, op)
    if dC.shape != expected:
        raise OperatorError("dC", f"has shape {dC.shape}; {expected} is needed")
    require_own_shapes(op, (dC, A, B), (A, B))
    return A, B


def _binary_gradient(op: GradientContext) -> Any:
    inputs = [op.grad(0), op.input(0), op.input(1)]
    return op.make(f"{op.type}Gradient", inputs, [op.input_grad(0), op.input_grad(1)])


def _shape_gradient(op: GradientContext) -> Any:
    # Of A and B the shapes count alone: that of an input which C overwrites is that of C.
    inputs = [op.grad(0), *op.inputs]
    return op.make(f"{op.type}Gradient", inputs, [op.input_grad(0), op.input_grad(1)])


def _quotient(a: Array, b: Array) -> Array:
    """a / b; integers are rounded toward zero, as in C."""
    if a.dtype.kind == "f":
        with np.errstate(divide="ignore", invalid="ignore"):
            return a / b
    if not np.all(b):
        raise OperatorError("B", "holds a 0, by which integers cannot be divided")
    floor = a // b
    return floor + ((a - floor * b != 0) & ((a < 0) != (b < 0)))


def _declare(
    name: str,
    equation: str,
    compute: Any,
    gradient_doc: str,
    gradients: Any,
    rule: Any = _shape_gradient,
) -> None:
    """`name` and its gradient; `gradients(dC, A, B)` gives the gradients of A and B before they
    are summed over what was broadcast."""

    class Binary:
        gradient = rule

        def reference(A: Array, B: Array, op: OpView) -> Array:
            return np.asarray(compute(*wide_operands(A, B, op))).astype(A.dtype)

    class Gradient:
        def reference(dC: Array, A: Array, B: Array, op: OpView) -> tuple[Array, Array]:
            a, b = wide_operands(A, B, op)
            da, db = gradients(dC.astype(a.dtype), a, b)
            return summed(da, a.shape, A), summed(db, b.shape, B)

    Binary.__doc__ = f"{equation}, element by element.\n{_BROADCASTING}\n    "
    Gradient.__doc__ = f"""{gradient_doc}, summed over what was broadcast: the gradient of {name}.

    dC: the gradient of C.  A, B, arguments: as for {name}.
    dA, dB: with the shapes and the type of A and B.
    """
    operator(
        name,
        inputs="A B",
        outputs="C",
        args=BROADCAST,
        types={"A": _TYPES, "B": _TYPES},
        inplace=[(0, 0), (1, 0)],
        shape=binary_shape,
    )(Binary)
    operator(
        f"{name}Gradient",
        inputs="dC A B",
        outputs="dA dB",
        args=BROADCAST,
        types={"dC": _TYPES, "A": _TYPES, "B": _TYPES},
        inplace=[(0, 0), (0, 1)],
        shape=_gradient_shape,
    )(Gradient)


_declare("Add", "C = A + B", np.add, "dA = dC, dB = dC", lambda dC, A, B: (dC, dC))
_declare("Sub", "C = A - B", np.subtract, "dA = dC, dB = -dC", lambda dC, A, B: (dC, -dC))
_declare(
    "Mul",
    "C = A * B",
    np.multiply,
    "dA = dC * B, dB = dC * A",
    lambda dC, A, B: (dC * B, dC * A),
    _binary_gradient,
)


@operator(
    "Div",
    inputs="A B",
    outputs="C",
    args=BROADCAST,
    types={"A": _TYPES, "B": _TYPES},
    inplace=[(0, 0)],
    shape=binary_shape,
)
class Div:
    __doc__ = f"""C = A / B, element by element.
    {_BROADCASTING}
    Integers are rounded toward zero; a 0 in B is an error for them.
    """

    def reference(A: Array, B: Array, op: OpView) -> Array:
        return _quotient(*wide_operands(A, B, op)).astype(A.dtype)

    def gradient(op: GradientContext) -> Any:
        # Of A the shape counts alone: where C overwrites it, that of C.
        inputs = [op.grad(0), op.inputs[0], op.input(1), op.output(0)]
        return op.make("DivGradient", inputs, [op.input_grad(0), op.input_grad(1)])


@operator(
    "DivGradient",
    inputs="dC_or_B A_or_C B_or_dC C?",
    outputs="dA dB",
    args=BROADCAST,
    types=dict.fromkeys(("dC_or_B", "A_or_C", "B_or_dC", "C"), _TYPES),
    inplace=[(0, 0)],
)
class DivGradient:
    """dA = dC / B, dB = -dC * C / B, summed over what was broadcast: the gradient of Div.

    Inputs: dC, A, B, C; or, as old nets have it, B, C, dC, where A had the shape of C.
    Arguments: as for Div.  dA, dB: with the shapes and the type of A and B.
    """

    def shape(
        dC_or_B: Spec, A_or_C: Spec, B_or_dC: Spec, C: Spec | None, op: OpView
    ) -> tuple[Spec, Spec]:
        given = tuple(spec for spec in (dC_or_B, A_or_C, B_or_dC, C) if spec is not None)
        require_same_types(given, op)
        dC, A, B, result = given if C is not None else (B_or_dC, A_or_C, dC_or_B, A_or_C)
        expected, _ = broadcast_shapes(A.shape, B.shape, op)
        names = ("dC_or_B", "C") if C is not None else ("B_or_dC", "A_or_C")
        for name, spec in zip(names, (dC, result), strict=True):
            if spec.shape != expected:
                raise OperatorError(name, f"has shape {spec.shape}; {expected} is needed")
        require_own_shapes(op, given, (A, B))
        return A, B

    def reference(
        dC_or_B: Array, A_or_C: Array, B_or_dC: Array, C: Array | None, op: OpView
    ) -> tuple[Array, Array]:
        dC, A, B, result = dC_or_B, A_or_C, B_or_dC, C
        if result is None:
            dC, B, result = B_or_dC, dC_or_B, A_or_C
        a, b = wide_operands(A, B, op)
        da = _quotient(dC.astype(a.dtype), b)
        db = _quotient(-dC.astype(a.dtype) * result.astype(a.dtype), b)
        return summed(da, a.shape, A), summed(db, b.shape, B)
