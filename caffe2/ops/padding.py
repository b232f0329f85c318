# mypy: disable-error-code="misc, no-any-return"
"""Rows put before and behind each segment, taken away again, and turned around."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe2.ops.arguments import Int, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT32, INTS
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_dimensions, require_rank

_WIDTHS = {"padding_width": Int(1, min=0), "end_padding_width": Int(-1, min=-1)}
_INT32 = np.dtype(np.int32)


def _widths(op: OpView) -> tuple[int, int]:
    before, behind = op.args.padding_width, op.args.end_padding_width
    return before, before if behind < 0 else behind


def _segments(data_in: Array, lengths: Array | None, least: int) -> tuple[Array, list[Array]]:
    """The lengths, and the rows of each segment, of which there are at least so many."""
    sizes = np.array([len(data_in)]) if lengths is None else lengths.astype(np.int64)
    if (sizes.size and sizes.min() < least) or sizes.sum() != len(data_in):
        problem = f"{sizes.tolist()} for {len(data_in)} rows; {least} at least are needed for each"
        raise OperatorError("", f"has segments of {problem}")
    return sizes, np.split(data_in, np.cumsum(sizes)[:-1]) if sizes.size else []


def _counted(data_in: Spec, lengths: Spec | None) -> int:
    require_dimensions("data_in", data_in, 1)
    if lengths is None:
        return 1
    require_rank("lengths", lengths, 1)
    return lengths.shape[0]


def _joined(parts: Sequence[Array], like: Array) -> Array:
    return np.concatenate([like[:0], *parts])


@operator(
    "AddPadding",
    inputs="data_in lengths? start_padding? end_padding?",
    outputs="data_out lengths_out?",
    args=_WIDTHS,
    types={"lengths": INT32},
)
class AddPadding:
    """data_out = data_in with rows before and behind each segment.

    data_in: any type, at least 1-d.  lengths: int32, 1-d, the rows of each segment; without it all
    rows are one.  start_padding, end_padding: the rows that are put there, of data_in's type;
    without end_padding it is start_padding, without both zeros.
    padding_width, end_padding_width: how many; -1 is as many behind as before.
    data_out: data_in's type.  lengths_out: int32, the new lengths.
    """

    def shape(
        data_in: Spec,
        lengths: Spec | None,
        start_padding: Spec | None,
        end_padding: Spec | None,
        op: OpView,
    ) -> tuple[Spec, Spec]:
        count = _counted(data_in, lengths)
        for name, spec in (("start_padding", start_padding), ("end_padding", end_padding)):
            if spec is not None and spec != Spec(data_in.shape[1:], data_in.dtype):
                problem = f"is {spec.dtype} of shape {spec.shape}; it must be a row of data_in"
                raise OperatorError(name, problem)
        rows = data_in.shape[0] + count * sum(_widths(op))
        return Spec((rows, *data_in.shape[1:]), data_in.dtype), Spec((count,), _INT32)

    def reference(
        data_in: Array,
        lengths: Array | None,
        start_padding: Array | None,
        end_padding: Array | None,
        op: OpView,
    ) -> tuple[Array, Array]:
        before, behind = _widths(op)
        sizes, segments = _segments(data_in, lengths, 0)
        empty = b"" if data_in.dtype.kind == "O" else 0
        start = np.full(data_in.shape[1:], empty, data_in.dtype)
        start = start if start_padding is None else start_padding
        end = start if end_padding is None else end_padding
        parts = []
        for rows in segments:
            parts += [np.stack([start] * before) if before else rows[:0], rows]
            parts += [np.stack([end] * behind) if behind else rows[:0]]
        return _joined(parts, data_in), (sizes + before + behind).astype(_INT32)

    def gradient(op: GradientContext) -> Any:
        lengths = [op.output(1)] if len(op.outputs) == 2 else []
        if len(op.inputs) > 1 and not lengths:
            raise OperatorError("lengths_out", "is missing; the gradient of AddPadding needs it")
        made = [op.make("RemovePadding", [op.grad(0), *lengths], [op.input_grad(0)])]
        paddings = [op.input_grad(index) for index in range(2, len(op.inputs))]
        if paddings:
            made.append(op.make("GatherPadding", [op.grad(0), *lengths], paddings))
        return made


@operator(
    "RemovePadding",
    inputs="data_in lengths?",
    outputs="data_out lengths_out?",
    args=_WIDTHS,
    types={"lengths": INT32},
)
class RemovePadding:
    """data_out = data_in without the first and last rows of each segment: undoes AddPadding.

    data_in: any type, at least 1-d.  lengths, padding_width, end_padding_width: as for AddPadding;
    each segment has as many rows as are taken away, at least.
    data_out: data_in's type.  lengths_out: int32, the new lengths.
    """

    def shape(data_in: Spec, lengths: Spec | None, op: OpView) -> tuple[Spec, Spec]:
        count = _counted(data_in, lengths)
        rows = data_in.shape[0] - count * sum(_widths(op))
        if rows < 0:
            raise OperatorError("data_in", f"has shape {data_in.shape}, less than the padding")
        return Spec((rows, *data_in.shape[1:]), data_in.dtype), Spec((count,), _INT32)

    def reference(data_in: Array, lengths: Array | None, op: OpView) -> tuple[Array, Array]:
        before, behind = _widths(op)
        sizes, segments = _segments(data_in, lengths, before + behind)
        parts = [rows[before : len(rows) - behind] for rows in segments]
        return _joined(parts, data_in), (sizes - before - behind).astype(_INT32)

    def gradient(op: GradientContext) -> Any:
        lengths = [op.output(1)] if len(op.outputs) == 2 else []
        if len(op.inputs) > 1 and not lengths:
            raise OperatorError("lengths_out", "is missing; the gradient of RemovePadding needs it")
        return op.make("AddPadding", [op.grad(0), *lengths], [op.input_grad(0)])


@operator(
    "GatherPadding",
    inputs="data_in lengths",
    outputs="padding_sum end_padding_sum?",
    args=_WIDTHS,
    types={"data_in": FLOAT | DOUBLE | INTS, "lengths": INT32},
)
class GatherPadding:
    """padding_sum, end_padding_sum = the sums of the first and of the last rows of all segments.

    data_in: float, double, int32 or int64, at least 1-d.  lengths, padding_width,
    end_padding_width: as for RemovePadding.
    padding_sum, end_padding_sum: the shape of a row; padding_sum alone is the sum of both.
    """

    def shape(data_in: Spec, lengths: Spec, op: OpView) -> tuple[Spec, Spec]:
        _counted(data_in, lengths)
        row = Spec(data_in.shape[1:], data_in.dtype)
        return row, row

    def reference(data_in: Array, lengths: Array, op: OpView) -> tuple[Array, Array]:
        before, behind = _widths(op)
        _, segments = _segments(data_in, lengths, before + behind)
        wide = np.float64 if data_in.dtype.kind == "f" else data_in.dtype
        first = _joined([rows[:before] for rows in segments], data_in).sum(axis=0, dtype=wide)
        last = _joined([rows[len(rows) - behind :] for rows in segments], data_in)
        last = last.sum(axis=0, dtype=wide)
        if len(op.outputs) == 1:
            first = first + last
        return first.astype(data_in.dtype), last.astype(data_in.dtype)


@operator(
    "ReversePackedSegs",
    inputs="data lengths",
    outputs="reversed_data",
    types={"lengths": INTS},
)
class ReversePackedSegs:
    """reversed_data = data with the rows of each segment in reverse order.

    data: any type, (length, segments, values); row j of segment k is data[j, k].
    lengths: int32 or int64 (segments), 0 <= n <= length; rows behind stay where they are.
    """

    def shape(data: Spec, lengths: Spec) -> Spec:
        require_rank("data", data, 3)
        if lengths.shape != data.shape[1:2]:
            raise OperatorError("lengths", f"has shape {lengths.shape}; data has {data.shape}")
        return data

    def reference(data: Array, lengths: Array) -> Array:
        if lengths.size and not (lengths.min() >= 0 and lengths.max() <= len(data)):
            problem = f"holds {lengths.min()} to {lengths.max()}; data has shape {data.shape}"
            raise OperatorError("lengths", problem)
        result = data.copy()
        for k, length in enumerate(lengths.tolist()):
            result[:length, k] = data[:length, k][::-1]
        return result

    def gradient(op: GradientContext) -> Any:
        return op.make("ReversePackedSegs", [op.grad(0), op.input(1)], [op.input_grad(0)])


@operator(
    "VariableLengthSequencePadding",
    inputs="input lengths",
    outputs="output",
    types={"input": FLOAT, "lengths": INT32},
    inplace=[(0, 0)],
)
class VariableLengthSequencePadding:
    """output = input with 0 behind the end of each sequence: output[t, k] = 0 for t >= lengths[k].

    input: float (time, sequences, ...), at least 3-d.  lengths: int32 (sequences,).
    output: float, shaped like input.  (The original does so only in place.)
    """

    def shape(input: Spec, lengths: Spec) -> Spec:
        require_dimensions("input", input, 3)
        if lengths.shape != input.shape[1:2]:
            problem = f"has shape {lengths.shape}; {input.shape[1:2]} is needed"
            raise OperatorError("lengths", problem)
        return input

    def reference(input: Array, lengths: Array) -> Array:
        there = np.arange(len(input)).reshape(-1, 1) < lengths
        return np.where(there.reshape(*there.shape, *[1] * (input.ndim - 2)), input, np.float32(0))
