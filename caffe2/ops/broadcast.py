"""Broadcasting of two operands, as NumPy does it and as old nets have it (broadcast=1)."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from caffe2.ops.arguments import Bool, Int, OperatorError, Str
from caffe2.ops.declaration import Array, OpView, Spec
from caffe2.ops.shapes import require_same_types

ShapeOf: TypeAlias = tuple[int, ...]

BROADCAST = {
    "broadcast": Bool(False),
    "axis": Int(-1, min=-1),
    "axis_str": Str(""),
    "order": Str("NCHW"),
}
BROADCASTING = """Shapes are broadcast as NumPy does.  With broadcast=1, as old nets have it, C has
    the shape of A, and the shape of B is a part of it: the last dimensions or, with `axis`, those
    from `axis` on; dimensions of 1 at the beginning and the end of B fit any, and a B of one
    element fits every A.  axis_str, a letter of `order`, names the axis instead."""


def _axis(a: ShapeOf, b: ShapeOf, op: OpView) -> int:
    if not op.args.axis_str:
        return len(a) - len(b) if op.args.axis == -1 else int(op.args.axis)
    if op.args.axis != -1:
        raise OperatorError("argument 'axis_str'", "is given beside 'axis'; one can be given")
    if len(op.args.axis_str) != 1 or op.args.axis_str not in op.args.order:
        problem = f"is '{op.args.axis_str}', no letter of the order '{op.args.order}'"
        raise OperatorError("argument 'axis_str'", problem)
    return int(op.args.order.index(op.args.axis_str))


def legacy_shape(a: ShapeOf, b: ShapeOf, op: OpView, name: str = "B") -> ShapeOf:
    """The shape of B that NumPy's broadcasting takes to that of A in the way of broadcast=1.
    OperatorError, with the name of B, where it is no part of A."""
    first = _axis(a, b, op)
    if all(dim == 1 for dim in b):
        return (1,) * len(a)
    if len(b) > len(a) or first > len(a) - len(b):
        problem = f"has shape {b}, which is no part of {a}, the shape of A, from axis {first} on"
        raise OperatorError(name, problem)
    inner = [d for d, dim in enumerate(b) if dim != 1]
    begin, end = inner[0], inner[-1] + 1
    if a[first + begin : first + end] != b[begin:end]:
        raise OperatorError(
            name, f"has shape {b}; A has {a}, {a[first : first + end]} from axis {first} on"
        )
    return (1,) * (first + begin) + b[begin:end] + (1,) * (len(a) - first - end)


def broadcast_shapes(a: ShapeOf, b: ShapeOf, op: OpView) -> tuple[ShapeOf, ShapeOf]:
    """The shape of C, and that of B for NumPy's broadcasting."""
    if op.args.broadcast:
        return a, legacy_shape(a, b, op)
    try:
        return np.broadcast_shapes(a, b), b
    except ValueError:
        problem = f"has shape {b}, which cannot be broadcast with {a}, the shape of A"
        raise OperatorError("B", problem) from None


def require_own_shapes(op: OpView, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> None:
    """OperatorError unless what an output overwrites has its shape."""
    for name, spec in zip(op.outputs, outputs, strict=True):
        for blob, given in zip(op.inputs, inputs, strict=True):
            if blob == name and given.shape != spec.shape:
                problem = f"has shape {spec.shape} and cannot overwrite its input of {given.shape}"
                raise OperatorError(f"output '{name}'", problem)


def binary_shape(A: Spec, B: Spec, op: OpView) -> Spec:
    """The shape rule of C, with the type of A and B."""
    require_same_types((A, B), op)
    result = Spec(broadcast_shapes(A.shape, B.shape, op)[0], A.dtype)
    require_own_shapes(op, (A, B), (result,))
    return result


def truth_shape(A: Spec, B: Spec, op: OpView) -> Spec:
    """The shape rule of C of type bool."""
    return Spec(binary_shape(A, B, op).shape, np.dtype(np.bool_))


def aligned_operands(A: Array, B: Array, op: OpView) -> tuple[Array, Array]:
    """A and B, shaped for NumPy's broadcasting."""
    return A, B.reshape(broadcast_shapes(A.shape, B.shape, op)[1])


def wide_operands(A: Array, B: Array, op: OpView) -> tuple[Array, Array]:
    """The same, in float64 when they are floats."""
    wide: Any = np.float64 if A.dtype.kind == "f" else A.dtype
    a, b = aligned_operands(A, B, op)
    return a.astype(wide), b.astype(wide)


def summed(gradient: Array, aligned: ShapeOf, like: Array) -> Array:
    """The gradient of a broadcast operand: summed over the dimensions it was repeated along."""
    extra = gradient.ndim - len(aligned)
    repeated = [
        axis
        for axis, size in enumerate(gradient.shape)
        if axis < extra or (aligned[axis - extra] == 1 and size != 1)
    ]
    total: Array = gradient.sum(axis=tuple(repeated), dtype=gradient.dtype)
    return total.reshape(like.shape).astype(like.dtype)
