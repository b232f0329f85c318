# mypy: disable-error-code="misc"
"""Declares operators that are a function of each element, with their gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from caffe2.ops.arguments import Argument
from caffe2.ops.datatypes import DOUBLE, FLOAT, INTS, TypeSet
from caffe2.ops.declaration import (
    Array,
    GradientContext,
    GradientState,
    OpView,
    Spec,
    operator,
    same_as,
)
from caffe2.ops.shapes import require_same_size, require_same_types

Inplace = Iterable[tuple[int, int]]
ANY_NUMBER = FLOAT | DOUBLE | INTS
_TYPE_NAMES = {
    FLOAT: "float",
    FLOAT | DOUBLE: "float or double",
    ANY_NUMBER: "float, double, int32 or int64",
}


@dataclass(frozen=True)
class Gradient:
    """The gradient operator of a function.

    inputs   in its order, of "X", "Y" and "dY"
    formula  of dX, for the docstring
    compute  dX from X (from Y, where X is no input), dY and the arguments by name
    """

    inputs: str
    formula: str
    compute: Callable[..., Any]
    inplace: Inplace = ()


def each(compute: Callable[..., Any], like: Array, *arrays: Array, **args: Any) -> Array:
    """`compute` of the arrays, floats in float64, with the type of `like`; no warnings."""
    wide = [array.astype(np.float64) if array.dtype.kind == "f" else array for array in arrays]
    with np.errstate(all="ignore"):
        return np.asarray(compute(*wide, **args)).astype(like.dtype)


def like_the_value(*inputs: Spec, op: OpView) -> Spec:
    """The shape rule of gradients: all inputs have one type and equally many elements; the output
    is like the value from which it is computed, the first input that is not dY."""
    require_same_types(inputs, op)
    names = op.declaration.inputs.names
    first = 1 if names[0] == "dY" else 0
    for name, spec in zip(names, inputs, strict=True):
        require_same_size(name, spec, names[first], inputs[first])
    return inputs[first]


def _taking(names: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """`rule` as one that takes these inputs."""

    def named(*arrays: Any, op: OpView) -> Any:
        return rule(*arrays, op=op)

    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names.split()]
    op = inspect.Parameter("op", inspect.Parameter.KEYWORD_ONLY)
    named.__signature__ = inspect.Signature([*parameters, op])  # type: ignore[attr-defined]
    return named


def function(
    name: str,
    doc: str,
    compute: Callable[..., Any],
    gradient: Gradient | GradientState | Callable[[GradientContext], Any],
    *,
    args: Mapping[str, Argument] | None = None,
    types: TypeSet = FLOAT,
    inplace: Inplace = ((0, 0),),
) -> None:
    """Declares Y = compute(X) with the arguments by name, and its gradient operator.

    doc: what the operator's page says before and, behind a blank line, after the line on types.
    """
    head, _, tail = doc.partition("\n\n")
    tail = f"\n    {tail}" if tail else ""
    kinds = _TYPE_NAMES[types]

    class Function:
        __doc__ = f"{head}\n\n    X, Y: {kinds} tensors of one shape, any.{tail}\n    "

        def reference(X: Array, op: OpView) -> Array:
            return each(compute, X, X, **vars(op.args))

    def rule(op: GradientContext) -> Any:
        assert isinstance(gradient, Gradient)
        blobs = {"X": op.input, "Y": op.output, "dY": op.grad}
        inputs = [blobs[blob](0) for blob in gradient.inputs.split()]
        return op.make(f"{name}Gradient", inputs, [op.input_grad(0)])

    Function.gradient = rule if isinstance(gradient, Gradient) else gradient  # type: ignore
    operator(
        name,
        inputs="X",
        outputs="Y",
        args=args,
        types={"X": types},
        inplace=inplace,
        shape=same_as("X"),
    )(Function)
    if isinstance(gradient, Gradient):
        _gradient(name, gradient, args, types, kinds)


def _gradient(name: str, gradient: Gradient, args: Any, types: TypeSet, kinds: str) -> None:
    names = gradient.inputs.split()
    source = "X" if "X" in names else "Y"
    what = "input X" if source == "X" else "output Y"
    same_args = f"  Arguments: as for {name}." if args else ""

    def computed(*arrays: Array, op: OpView) -> Array:
        v, dY = arrays[names.index(source)], arrays[names.index("dY")]
        return each(gradient.compute, v, v, dY.reshape(v.shape), **vars(op.args))

    class Body:
        __doc__ = f"""dX = {gradient.formula}: the gradient of {name} from its {what}.

    {", ".join(names)}, dX: {kinds} tensors of equally many
    elements; dX has the shape of {source}.{same_args}
    """
        reference = _taking(gradient.inputs, computed)
        shape = _taking(gradient.inputs, like_the_value)

    operator(
        f"{name}Gradient",
        inputs=gradient.inputs,
        outputs="dX",
        args=args,
        types=dict.fromkeys(names, types),
        inplace=gradient.inplace,
    )(Body)
