# mypy: disable-error-code="misc, no-any-return"
"""SequenceMask: what lies outside of a sequence, a window or a triangle is filled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, Int, OperatorError, Str
from caffe2.ops.datatypes import FLOAT, INT32
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import canonical_axis, require_rank

_MODES = ("sequence", "window", "upper", "lower", "upperdiag", "lowerdiag")


def _sizes(shape: tuple[int, ...], op: OpView) -> tuple[int, int, int, int]:
    """The tensor as (batches, rows, columns, repeats)."""
    axis = canonical_axis(op.args.axis, len(shape))
    repeat, batch = len(shape), 0
    if op.args.repeat_from_axis is not None:
        if op.args.mode != "sequence":
            raise OperatorError("argument 'repeat_from_axis'", "is for the mode 'sequence' only")
        repeat = canonical_axis(op.args.repeat_from_axis, len(shape), "repeat_from_axis")
        if repeat <= axis:
            raise OperatorError("argument 'repeat_from_axis'", f"is {repeat}; axis is {axis}")
    if op.args.batch is not None:
        batch = 1 + canonical_axis(op.args.batch, len(shape), "batch")
        if batch > axis:
            raise OperatorError("argument 'batch'", f"is {batch - 1}; it is less than axis, {axis}")
    parts = shape[:batch], shape[batch:axis], shape[axis:repeat], shape[repeat:]
    batches, rows, columns, repeats = map(math.prod, parts)
    return batches, rows, columns, repeats


@operator(
    "SequenceMask",
    inputs="input sequence_lengths?",
    outputs="masked_tensor",
    args={
        "mode": Str(required=True, choices=_MODES),
        "axis": Int(1),
        "batch": Int(),
        "repeat_from_axis": Int(),
        "radius": Int(10),
        "fill_val": Float(-math.inf),
        "grad": Bool(False),
    },
    types={"input": FLOAT, "sequence_lengths": INT32},
)
class SequenceMask:
    """masked_tensor = input, and fill_val outside of what the mode keeps.

    input is seen as a matrix: rows are the places of the dimensions before axis, columns those
    from axis on.  Kept are in row i the columns j
        sequence               j < sequence_lengths[i]
        window                 |j - sequence_lengths[i]| <= radius
        upper, lower           j <= i, j >= i
        upperdiag, lowerdiag   j < i, j > i
    input, masked_tensor: float tensors of one shape.
    sequence_lengths: int32, one for each row at least, for sequence and window only.
    batch: the dimensions up to this one only number matrices, each with the rows behind it.
    repeat_from_axis: columns are those before this dimension, and each says it for all behind.
    grad: outside is 0, as the gradient needs it.
    """

    def shape(input: Spec, sequence_lengths: Spec | None, op: OpView) -> Spec:
        _, rows, _, _ = _sizes(input.shape, op)
        if op.args.mode in ("sequence", "window"):
            if sequence_lengths is None:
                raise OperatorError("sequence_lengths", f"is needed for the mode '{op.args.mode}'")
            require_rank("sequence_lengths", sequence_lengths, 1)
            if sequence_lengths.shape[0] < rows:
                problem = f"has shape {sequence_lengths.shape}; there are {rows} rows"
                raise OperatorError("sequence_lengths", problem)
        return input

    def reference(input: Array, sequence_lengths: Array | None, op: OpView) -> Array:
        sizes = _sizes(input.shape, op)
        mode = op.args.mode
        row = np.arange(sizes[1])[:, np.newaxis]
        column = np.arange(sizes[2])
        if sequence_lengths is not None and mode in ("sequence", "window"):
            row = sequence_lengths[: sizes[1], np.newaxis].astype(np.int64)
        keep = {
            "sequence": column < row,
            "window": np.abs(column - row) <= op.args.radius,
            "upper": column <= row,
            "lower": column >= row,
            "upperdiag": column < row,
            "lowerdiag": column > row,
        }[mode]
        fill = input.dtype.type(0 if op.args.grad else op.args.fill_val)
        return np.where(keep[..., np.newaxis], input.reshape(sizes), fill).reshape(input.shape)

    def gradient(op: GradientContext) -> Any:
        made = [op.grad(0), *op.inputs[1:]]
        return op.make("SequenceMask", made, [op.input_grad(0)], grad=True)
