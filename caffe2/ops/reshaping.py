# mypy: disable-error-code="misc, no-any-return"
"""New shapes for the same elements: Flatten, Reshape, Squeeze and their kin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Int, Ints, OperatorError
from caffe2.ops.datatypes import INTS
from caffe2.ops.declaration import (
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_dimensions, require_same_size, split_at


@operator("Flatten", inputs="X", outputs="Y", args={"axis": Int(1, min=0)})
class Flatten:
    """Y = X as a matrix: the dimensions before `axis` are its rows, the others its columns.

    X: any type, at least `axis` dimensions.  Y: the same type, 2-d.
    axis: 0 <= axis <= number of dimensions of X.
    """

    def shape(X: Spec, op: OpView) -> Spec:
        if op.args.axis > len(X.shape):
            problem = f"is {op.args.axis}; X has {len(X.shape)} dimensions, {X.shape}"
            raise OperatorError("argument 'axis'", problem)
        return Spec(split_at(X.shape, op.args.axis), X.dtype)

    def reference(X: Array, op: OpView) -> Array:
        return X.reshape(split_at(X.shape, op.args.axis)).copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("ResizeLike", [op.grad(0), op.input(0)], [op.input_grad(0)])


@operator("ResizeLike", inputs="data shape_tensor", outputs="output")
class ResizeLike:
    """output = data in the shape of shape_tensor.

    data: any type.  shape_tensor: any type, as many elements.  output: the type of data.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(data: Spec, shape_tensor: Spec) -> Spec:
        require_same_size("data", data, "shape_tensor", shape_tensor)
        return Spec(shape_tensor.shape, data.dtype)

    def reference(data: Array, shape_tensor: Array) -> Array:
        return data.reshape(shape_tensor.shape).copy()


def _new_shape(shape: Sequence[int], old: tuple[int, ...], subject: str) -> tuple[int, ...]:
    """`shape` with its 0 and -1 resolved for a tensor of shape `old`."""
    size = math.prod(old)
    keeps = size > 0  # a 0 for an empty tensor is a 0
    new = [old[i] if dim == 0 and keeps and i < len(old) else dim for i, dim in enumerate(shape)]
    if min(new, default=0) < -1 or new.count(-1) > 1:
        problem = f"is {list(shape)}; allowed are dimensions >= 0 and one -1"
        raise OperatorError(subject, problem)
    known = math.prod(dim for dim in new if dim != -1)
    if -1 in new:
        # Of an empty tensor the unknown dimension is 0, whatever the others are.
        new[new.index(-1)] = size // known if known and size else 0
    if math.prod(new) != size:
        problem = f"is {list(shape)}, which does not fit the {size} elements of data, shape {old}"
        raise OperatorError(subject, problem)
    return tuple(new)


@operator(
    "Reshape",
    inputs="data new_shape?",
    outputs="reshaped old_shape",
    helpers=[1],
    args={"shape": Ints(None, min=-1, max=INT64_MAX)},
    types={"new_shape": INTS},
    inplace=[(0, 0)],
)
class Reshape:
    """reshaped = data in the shape `shape`; old_shape = the shape of data.

    shape: 0 keeps the dimension of data at that place, unless data is empty; one -1 stands for
    what is left.  It comes as the argument or as the input new_shape (int64 or int32, 1-d, not
    empty), not both.
    data, reshaped: any type.
    old_shape: 1-d, int64, or int32 where new_shape is int32.
    """

    def shape(data: Spec, new_shape: Spec | None, op: OpView) -> tuple[Spec | None, Spec]:
        if (new_shape is None) == (op.args.shape is None):
            problem = "is needed where there is no input new_shape, and only there"
            raise OperatorError("argument 'shape'", problem)
        rank = (len(data.shape),)
        if new_shape is not None:
            if len(new_shape.shape) != 1 or new_shape.shape == (0,):
                problem = f"has shape {new_shape.shape}; 1-d with at least one element is needed"
                raise OperatorError("new_shape", problem)
            return None, Spec(rank, new_shape.dtype)
        shape = _new_shape(op.args.shape, data.shape, "argument 'shape'")
        return Spec(shape, data.dtype), Spec(rank, np.dtype(np.int64))

    def reference(data: Array, new_shape: Array | None, op: OpView) -> tuple[Array, Array]:
        if new_shape is None:
            shape = _new_shape(op.args.shape, data.shape, "argument 'shape'")
            dtype = np.dtype(np.int64)
        else:
            shape, dtype = _new_shape(new_shape.tolist(), data.shape, "new_shape"), new_shape.dtype
        return data.reshape(shape).copy(), np.array(data.shape, dtype=dtype)

    def gradient(op: GradientContext) -> Any:
        grad = op.input_grad(0)
        return op.make("Reshape", [op.grad(0), op.output(1)], [grad, f"_{grad}_dims"], False)


@operator("FlattenToVec", inputs="input", outputs="output")
class FlattenToVec:
    """output = the elements of input in one dimension.

    input: any type, at least one dimension.  output: the same type, 1-d.
    """

    def shape(input: Spec) -> Spec:
        require_dimensions("input", input, 1)
        return Spec((math.prod(input.shape),), input.dtype)

    def reference(input: Array) -> Array:
        return input.reshape(-1).copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("ResizeLike", [op.grad(0), op.input(0)], [op.input_grad(0)])


_DIMS = Ints(min=0, required=True)


def _places(op: OpView, rank: int) -> list[int]:
    """The argument `dims` in order; each is below `rank`, that of the expanded tensor."""
    dims = sorted(set(op.args.dims))
    if not dims or dims[-1] >= rank:
        problem = f"is {list(op.args.dims)}; needed are some numbers below {rank}"
        raise OperatorError("argument 'dims'", problem)
    return dims


@operator("ExpandDims", inputs="data", outputs="expanded", args={"dims": _DIMS}, inplace=[(0, 0)])
class ExpandDims:
    """expanded = data with dimensions of size 1 put in.

    data, expanded: any one type.
    dims: their places in the shape of expanded; one that is named twice counts once.
    """

    def shape(data: Spec, op: OpView) -> Spec:
        shape = list(data.shape)
        for dim in _places(op, len(data.shape) + len(set(op.args.dims))):
            shape.insert(dim, 1)
        return Spec(tuple(shape), data.dtype)

    def reference(data: Array, op: OpView) -> Array:
        return np.expand_dims(data, tuple(_places(op, data.ndim + len(set(op.args.dims))))).copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("Squeeze", [op.grad(0)], [op.input_grad(0)])


@operator("Squeeze", inputs="data", outputs="squeezed", args={"dims": _DIMS}, inplace=[(0, 0)])
class Squeeze:
    """squeezed = data with dimensions of size 1 taken out.

    data, squeezed: any one type.
    dims: their places in the shape of data; one that is named twice counts once.
    """

    def shape(data: Spec, op: OpView) -> Spec:
        dims = _places(op, len(data.shape))
        if any(data.shape[dim] != 1 for dim in dims):
            problem = f"has shape {data.shape}; the dimensions {dims} must be 1"
            raise OperatorError("data", problem)
        kept = (size for place, size in enumerate(data.shape) if place not in dims)
        return Spec(tuple(kept), data.dtype)

    def reference(data: Array, op: OpView) -> Array:
        return np.squeeze(data, tuple(_places(op, data.ndim))).copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("ExpandDims", [op.grad(0)], [op.input_grad(0)])


@operator(
    "PrependDim",
    inputs="data",
    outputs="reshaped",
    args={"dim_size": Int(min=1, required=True)},
    inplace=[(0, 0)],
)
class PrependDim:
    """reshaped = data with the first dimension cut in two, of sizes dim_size and the rest.

    data: any type, at least one dimension, the first a multiple of dim_size.
    reshaped: the same type, one dimension more.
    """

    def shape(data: Spec, op: OpView) -> Spec:
        require_dimensions("data", data, 1)
        first, size = data.shape[0], op.args.dim_size
        if first % size:
            raise OperatorError(
                "data", f"has shape {data.shape}; dim_size={size} does not divide it"
            )
        return Spec((size, first // size, *data.shape[1:]), data.dtype)

    def reference(data: Array, op: OpView) -> Array:
        size = op.args.dim_size
        return data.reshape(size, data.shape[0] // size, *data.shape[1:]).copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("MergeDim", [op.grad(0)], [op.input_grad(0)])


@operator("MergeDim", inputs="data", outputs="reshaped", inplace=[(0, 0)])
class MergeDim:
    """reshaped = data with its first two dimensions made one: what undoes PrependDim.

    data: any type, at least two dimensions.  reshaped: the same type, one dimension less.
    """

    def shape(data: Spec) -> Spec:
        require_dimensions("data", data, 2)
        return Spec((data.shape[0] * data.shape[1], *data.shape[2:]), data.dtype)

    def reference(data: Array) -> Array:
        return data.reshape(data.shape[0] * data.shape[1], *data.shape[2:]).copy()
