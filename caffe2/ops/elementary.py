# mypy: disable-error-code="misc, no-any-return"
"""Elementary functions of each element: powers, roots, logarithms, angles, rounding, signs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, INT64_MIN, Bool, Float, Int, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INTS
from caffe2.ops.declaration import (
    GRADIENT_NOT_IMPLEMENTED,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.mapping import ANY_NUMBER, Gradient, function


def _exp_gradient(op: GradientContext) -> Any:
    return op.make("Mul", [op.output(0), op.grad(0)], [op.input_grad(0)])


def _log_gradient(op: GradientContext) -> Any:
    return op.make("Div", [op.grad(0), op.input(0)], [op.input_grad(0)])


def _sqr_gradient(op: GradientContext) -> Any:
    # Not in place on dY, as the original does it: others may need dY.
    dX = op.input_grad(0)
    return [
        op.make("Scale", [op.grad(0)], [dX], scale=2.0),
        op.make("Mul", [dX, op.input(0)], [dX]),
    ]


def _sqrt_gradient(op: GradientContext) -> Any:
    dX = op.input_grad(0)
    return [
        op.make("Scale", [op.grad(0)], [dX], scale=0.5),
        op.make("Div", [dX, op.output(0)], [dX]),
    ]


def _negative_gradient(op: GradientContext) -> Any:
    return op.make("Negative", [op.grad(0)], [op.input_grad(0)])


function("Exp", "Y = e^X, element by element.", np.exp, _exp_gradient)
function(
    "Log",
    "Y = ln X, element by element: -infinity for 0, NaN for negative numbers.",
    np.log,
    _log_gradient,
)
function(
    "Log1p",
    "Y = ln(1 + X), element by element, exact for small X too.",
    np.log1p,
    Gradient("X dY", "dY / (1 + X)", lambda x, dy: dy / (1 + x)),
    inplace=(),
)
function("Sqr", "Y = X^2, element by element.", np.square, _sqr_gradient)
function(
    "Sqrt",
    "Y = the square root of X, element by element: NaN for negative numbers.",
    np.sqrt,
    _sqrt_gradient,
    types=FLOAT | DOUBLE,
)
function(
    "Rsqrt",
    "Y = 1 / sqrt(X), element by element.",
    lambda x: 1 / np.sqrt(x),
    Gradient("dY Y", "-dY * Y^3 / 2", lambda y, dy: -dy * y**3 / 2, [(0, 0)]),
)
function(
    "Cube",
    "Y = X^3, element by element.\n\nIntegers wrap around.",
    lambda x: x * x * x,
    Gradient("dY X", "3 * dY * X^2", lambda x, dy: 3 * dy * x * x),
    types=ANY_NUMBER,
    inplace=(),
)
function(
    "Cbrt",
    "Y = the cube root of X, element by element; that of a negative number is negative.",
    np.cbrt,
    Gradient("dY Y", "dY / (3 * Y^2)", lambda y, dy: dy / (3 * y * y), [(0, 0)]),
)
function(
    "Reciprocal",
    "Y = 1 / X, element by element.",
    lambda x: 1 / x,
    Gradient("Y dY", "-dY * Y^2", lambda y, dy: -dy * y * y, [(1, 0)]),
)
function(
    "Abs",
    "Y = |X|, element by element.",
    np.abs,
    Gradient("X dY", "dY * sign(X)", lambda x, dy: dy * np.sign(x)),
    inplace=(),
)
function(
    "Negative",
    "Y = -X, element by element.",
    np.negative,
    _negative_gradient,
    types=ANY_NUMBER,
)
function(
    "Sign",
    "Y = -1 where X < 0, 1 where X > 0, else 0, element by element.",
    lambda x: np.sign(np.nan_to_num(x)),
    SHOULD_NOT_DO_GRADIENT,
    types=ANY_NUMBER,
    inplace=(),
)
function("Floor", "Y = X rounded down, element by element.", np.floor, GRADIENT_NOT_IMPLEMENTED)
function("Ceil", "Y = X rounded up, element by element.", np.ceil, GRADIENT_NOT_IMPLEMENTED)

for _name, _what, _compute, _order, _formula, _slope in (
    ("Sin", "sine (radians)", np.sin, "X dY", "dY * cos(X)", np.cos),
    ("Cos", "cosine (radians)", np.cos, "X dY", "-dY * sin(X)", lambda x: -np.sin(x)),
    ("Tan", "tangent (radians)", np.tan, "X dY", "dY / cos(X)^2", lambda x: np.cos(x) ** -2.0),
    ("Asin", "arc sine", np.arcsin, "X dY", "dY / sqrt(1 - X^2)", lambda x: (1 - x * x) ** -0.5),
    ("Acos", "arc cosine", np.arccos, "X dY", "-dY / sqrt(1 - X^2)",
     lambda x: -((1 - x * x) ** -0.5)),
    ("Atan", "arc tangent", np.arctan, "X dY", "dY / (1 + X^2)", lambda x: 1 / (1 + x * x)),
    ("Sinh", "hyperbolic sine", np.sinh, "dY X", "dY * cosh(X)", np.cosh),
    ("Cosh", "hyperbolic cosine", np.cosh, "dY X", "dY * sinh(X)", np.sinh),
    ("Erf", "error function", np.vectorize(math.erf, otypes=[np.float64]), "X dY",
     "dY * 2 / sqrt(pi) * e^(-X^2)", lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x)),
):  # fmt: skip
    function(
        _name,
        f"Y = the {_what} of X, element by element.",
        _compute,
        Gradient(_order, _formula, lambda x, dy, slope=_slope: dy * slope(x)),
        inplace=(),
    )


def _bounds(eps: float) -> tuple[float, float]:
    """What Logit keeps X within: eps and 1 - eps, as float32 has them."""
    return float(np.float32(eps)), float(np.float32(1) - np.float32(eps))


def _logit(x: Array, eps: float) -> Array:
    p = np.clip(x, *_bounds(eps))
    return np.log(p / (1 - p))


def _logit_gradient(x: Array, dy: Array, eps: float) -> Array:
    low, high = _bounds(eps)
    return np.where((x < low) | (x > high), 0, dy / (x * (1 - x)))


function(
    "Logit",
    "Y = ln(p / (1 - p)), element by element, for p = X within [eps, 1 - eps].",
    _logit,
    Gradient("X dY", "dY / (X * (1 - X)) where eps <= X <= 1 - eps, else 0", _logit_gradient),
    args={"eps": Float(1e-6, min=0, max=0.4999999)},
)


@operator(
    "Mod",
    inputs="X",
    outputs="Y",
    args={
        "divisor": Int(0, min=INT64_MIN, max=INT64_MAX),
        "sign_follow_divisor": Bool(False),
    },
    types={"X": INTS},
    inplace=[(0, 0)],
)
class Mod:
    """Y = what is left of X after division by `divisor`, element by element.

    X, Y: int32 or int64 tensors of one type and shape, any.
    divisor: not 0.
    Y has the sign of X, as in C, or that of `divisor` with sign_follow_divisor, as in Python.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        if op.args.divisor == 0:
            raise OperatorError("argument 'divisor'", "is 0, by which nothing can be divided")
        return X

    def reference(X: Array, op: OpView) -> Array:
        rest = np.mod if op.args.sign_follow_divisor else np.fmod
        return np.asarray(rest(X.astype(np.int64), op.args.divisor)).astype(X.dtype)
