# mypy: disable-error-code="misc, no-any-return"
"""Tensors joined along an axis, and cut along it: Concat, Split."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import INT64_MAX, Argument, Bool, Int, Ints, OperatorError, Str
from caffe2.ops.datatypes import INT32
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import canonical_axis, require_rank, require_same_types

_ORDER = Str("NCHW", choices=("NCHW", "NHWC"))
_ALONG: dict[str, Argument] = {"axis": Int(None), "order": _ORDER, "add_axis": Bool(False)}


def _axis(op: OpView, rank: int) -> int:
    """The argument `axis`, or that of the channels of an image."""
    axis = op.args.axis
    if axis is None:
        axis = 1 if op.args.order == "NCHW" else 3
    return canonical_axis(axis, rank)


class _Concat:
    """concat_result = the inputs, one after the other along an axis.

    inputs: tensors of one type, equal in all dimensions but that of the axis.
    concat_result: the same type.
    split_info: int32 (number of inputs), the size of each input along the axis; what Split takes.
    axis: of concat_result; negative from the end.  Without it `order` says which: 1 for NCHW, 3
    for NHWC.
    add_axis: the axis is new, and all inputs have one shape.
    """

    def shape(*inputs: Spec, op: OpView) -> tuple[Spec, Spec]:
        require_same_types(inputs, op)
        first, add = inputs[0].shape, op.args.add_axis
        axis = _axis(op, len(first) + add)
        for index, spec in enumerate(inputs):
            other = spec.shape
            if add:
                fits = other == first
            else:
                fits = len(other) == len(first)
                fits = (
                    fits and other[:axis] == first[:axis] and other[axis + 1 :] == first[axis + 1 :]
                )
            if not fits:
                name = f"input {index} ('{op.input(index)}')"
                raise OperatorError(name, f"has shape {other}; the first has {first}, axis {axis}")
        size = len(inputs) if add else sum(spec.shape[axis] for spec in inputs)
        rest = first[axis:] if add else first[axis + 1 :]
        joined = Spec((*first[:axis], size, *rest), inputs[0].dtype)
        return joined, Spec((len(inputs),), np.dtype(np.int32))

    def reference(*inputs: Array, op: OpView) -> tuple[Array, Array]:
        axis = _axis(op, inputs[0].ndim + op.args.add_axis)
        sizes = [1 if op.args.add_axis else array.shape[axis] for array in inputs]
        join = np.stack if op.args.add_axis else np.concatenate
        return join(inputs, axis=axis), np.array(sizes, dtype=np.int32)

    def gradient(op: GradientContext) -> Any:
        grads = [op.input_grad(index) for index in range(len(op.inputs))]
        return op.make("Split", [op.grad(0), op.output(1)], grads)


for _name in ("Concat", "DepthConcat"):
    operator(_name, inputs="inputs*", outputs="concat_result split_info", args=_ALONG, helpers=[1])(
        _Concat
    )


def _part_shapes(X: Spec, sizes: list[int], axis: int, op: OpView) -> tuple[Spec, ...]:
    if sum(sizes) != X.shape[axis] or min(sizes, default=0) < 0:
        raise OperatorError("", f"cannot cut {X.shape} into sizes {sizes} along axis {axis}")
    if op.args.add_axis and set(sizes) - {1}:
        raise OperatorError("", f"cannot take an axis away from sizes {sizes}; all must be 1")
    before, after = X.shape[:axis], X.shape[axis + 1 :]
    kept = ([] if op.args.add_axis else [size] for size in sizes)
    return tuple(Spec((*before, *part, *after), X.dtype) for part in kept)


def _parts(X: Array, sizes: list[int], op: OpView) -> tuple[Array, ...]:
    axis = _axis(op, X.ndim)
    shapes = _part_shapes(Spec(X.shape, X.dtype), sizes, axis, op)
    parts = np.split(X, np.cumsum(sizes)[:-1], axis=axis)
    return tuple(part.reshape(spec.shape).copy() for part, spec in zip(parts, shapes, strict=True))


def _joined_again(op: GradientContext) -> Any:
    grads = [op.grad(index) for index in range(len(op.outputs))]
    grad = op.input_grad(0)
    return op.make("Concat", grads, [grad, f"_{grad}_dims"])


def _equal_sizes(X: Spec, axis: int, op: OpView) -> list[int]:
    count = len(op.outputs)
    if X.shape[axis] % count:
        problem = f"has shape {X.shape}, which does not divide among {count} along axis {axis}"
        raise OperatorError("input", problem)
    return [X.shape[axis] // count] * count


class _Split:
    """The outputs are the pieces of the input along an axis, in order.

    input: any type.  outputs: the same type, one per piece.
    split: the size of each piece, as the argument or as an int32 input of one dimension, not both;
    without it all pieces are equal.  The sizes sum to that of the axis.
    axis, order: as for Concat.  add_axis: all sizes are 1, and the pieces do not have the axis.
    """

    def shape(input: Spec, split: Spec | None, op: OpView) -> tuple[Spec | None, ...]:
        axis = _axis(op, len(input.shape))
        if split is not None:
            if op.args.split:
                raise OperatorError("argument 'split'", "is given, and an input split, too")
            if split.shape != (len(op.outputs),):
                problem = f"has shape {split.shape}; there are {len(op.outputs)} outputs"
                raise OperatorError("split", problem)
            return (None,) * len(op.outputs)
        sizes = list(op.args.split) or _equal_sizes(input, axis, op)
        if len(sizes) != len(op.outputs):
            problem = f"has {len(sizes)} sizes; there are {len(op.outputs)} outputs"
            raise OperatorError("argument 'split'", problem)
        return _part_shapes(input, sizes, axis, op)

    def reference(input: Array, split: Array | None, op: OpView) -> tuple[Array, ...]:
        spec = Spec(input.shape, input.dtype)
        if split is not None:
            return _parts(input, split.tolist(), op)
        sizes = list(op.args.split) or _equal_sizes(spec, _axis(op, input.ndim), op)
        return _parts(input, sizes, op)

    gradient = _joined_again


for _name in ("Split", "DepthSplit"):
    operator(
        _name,
        inputs="input split?",
        outputs="outputs*",
        args={**_ALONG, "split": Ints(min=0, max=INT64_MAX)},
        types={"split": INT32},
    )(_Split)


@operator(
    "SplitByLengths",
    inputs="input lengths",
    outputs="outputs*",
    args={**_ALONG, "use_scaling_lengths": Bool(False)},
    types={"lengths": INT32},
)
class SplitByLengths:
    """Split with the size of each piece as a sum: each of n outputs takes 1/n of the lengths.

    input: any type.  outputs: the same type.  axis, order, add_axis: as for Split.
    lengths: int32, 1-d, as many for each output; their sum is the size of the axis.
    use_scaling_lengths: the size of the axis may also be a multiple of the sum; then the pieces
    are as many times larger.
    """

    def shape(input: Spec, lengths: Spec, op: OpView) -> tuple[None, ...]:
        _axis(op, len(input.shape))
        require_rank("lengths", lengths, 1)
        if lengths.shape[0] % len(op.outputs):
            problem = f"has {lengths.shape[0]} values, not as many for each of the outputs"
            raise OperatorError("lengths", f"{problem}, {len(op.outputs)}")
        return (None,) * len(op.outputs)

    def reference(input: Array, lengths: Array, op: OpView) -> tuple[Array, ...]:
        if lengths.size and lengths.min() < 0:
            raise OperatorError("lengths", f"holds {lengths.min()}; lengths are not negative")
        sizes = lengths.reshape(len(op.outputs), -1).sum(axis=1, dtype=np.int64)
        whole, total = input.shape[_axis(op, input.ndim)], int(sizes.sum())
        if op.args.use_scaling_lengths and total and whole % total == 0:
            sizes *= whole // total
        return _parts(input, sizes.tolist(), op)

    gradient = _joined_again
