# mypy: disable-error-code="misc, no-any-return"
"""Segments said in other ways, and rows packed by segment."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Int, OperatorError
from caffe2.ops.datatypes import INT32, INTS
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_dimensions, require_rank

_INT32 = np.dtype(np.int32)


def _lengths(name: str, values: Array) -> Array:
    if values.size and values.min() < 0:
        raise OperatorError(name, f"holds {values.min()}; lengths are not negative")
    return values.astype(np.int64)


def _starts(lengths: Array) -> Array:
    return np.cumsum(lengths) - lengths


@operator("LengthsToSegmentIds", inputs="lengths", outputs="segment_ids", types={"lengths": INT32})
class LengthsToSegmentIds:
    """segment_ids = the number of its segment for each row.

    lengths: int32, 1-d, not negative.  segment_ids: int32, as many as the lengths sum to.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(lengths: Spec) -> None:
        require_rank("lengths", lengths, 1)

    def reference(lengths: Array) -> Array:
        return np.repeat(np.arange(lengths.size, dtype=_INT32), _lengths("lengths", lengths))


@operator("LengthsRangeFill", inputs="lengths", outputs="range_sequence", types={"lengths": INT32})
class LengthsRangeFill:
    """range_sequence = 0, 1, ... for each segment: the place of each row in its segment.

    lengths: int32, 1-d, not negative.  range_sequence: int32, as many as the lengths sum to.
    """

    gradient = NO_GRADIENT

    def shape(lengths: Spec) -> None:
        require_rank("lengths", lengths, 1)

    def reference(lengths: Array) -> Array:
        sizes = _lengths("lengths", lengths)
        return (np.arange(sizes.sum()) - np.repeat(_starts(sizes), sizes)).astype(_INT32)


@operator("LengthsToRanges", inputs="lengths", outputs="ranges", types={"lengths": INT32})
class LengthsToRanges:
    """ranges[k] = the first row of segment k and its length.

    lengths: int32, 1-d, not negative.  ranges: int32 (segments, 2).
    """

    def shape(lengths: Spec) -> Spec:
        require_rank("lengths", lengths, 1)
        return Spec((*lengths.shape, 2), _INT32)

    def reference(lengths: Array) -> Array:
        sizes = _lengths("lengths", lengths)
        return np.stack([_starts(sizes), sizes], axis=1).astype(_INT32)


@operator(
    "LengthsToOffsets",
    inputs="lengths",
    outputs="offsets",
    args={"include_last_offset": Bool(False)},
    types={"lengths": INT32},
)
class LengthsToOffsets:
    """offsets[k] = the first row of segment k.

    lengths: int32, 1-d, not negative.
    offsets: int32 (segments), and one more, the number of all rows, with include_last_offset.
    """

    def shape(lengths: Spec, op: OpView) -> Spec:
        require_rank("lengths", lengths, 1)
        return Spec((lengths.shape[0] + op.args.include_last_offset,), _INT32)

    def reference(lengths: Array, op: OpView) -> Array:
        sizes = _lengths("lengths", lengths)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return offsets[: len(sizes) + op.args.include_last_offset].astype(_INT32)


@operator("LengthsToShape", inputs="X", outputs="Y", types={"X": INT32})
class LengthsToShape:
    """Y = (number of segments, their length), for segments of one length.

    X: int32, 1-d, not empty, all equal and not negative.  Y: int32 (2).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(X: Spec) -> Spec:
        if len(X.shape) != 1 or X.shape == (0,):
            raise OperatorError("X", f"has shape {X.shape}; 1-d and not empty is needed")
        return Spec((2,), _INT32)

    def reference(X: Array) -> Array:
        if _lengths("X", X).min() != X.max():
            raise OperatorError("X", f"holds {X.min()} to {X.max()}; all must be equal")
        return np.array([X.size, X[0]], dtype=_INT32)


def _counted(segment_ids: Array, data: Array | None) -> Array:
    ids = segment_ids.astype(np.int64)
    if ids.size and (ids[0] < 0 or np.diff(ids).min(initial=0) < 0):
        raise OperatorError("segment_ids", "is not sorted, or holds a negative number")
    count = int(ids[-1]) + 1 if ids.size else 0
    if data is not None:
        if count > len(data):
            raise OperatorError("segment_ids", f"holds {count - 1}; data has {len(data)} rows")
        count = len(data)
    return np.bincount(ids, minlength=count)


def _check_ids(segment_ids: Spec, data: Spec | None) -> tuple[int, ...] | None:
    require_rank("segment_ids", segment_ids, 1)
    if data is None:
        return None
    require_dimensions("data", data, 1)
    return data.shape[:1]


@operator(
    "SegmentIdsToLengths",
    inputs="segment_ids data?",
    outputs="lengths",
    types={"segment_ids": INTS},
)
class SegmentIdsToLengths:
    """lengths[k] = how often k is in segment_ids.

    segment_ids: int32 or int64, 1-d, sorted, not negative.
    lengths: int32, as many as data (any type) has rows, or without it as the last id says.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(segment_ids: Spec, data: Spec | None) -> Spec | None:
        count = _check_ids(segment_ids, data)
        return None if count is None else Spec(count, _INT32)

    def reference(segment_ids: Array, data: Array | None) -> Array:
        return _counted(segment_ids, data).astype(_INT32)


@operator(
    "SegmentIdsToRanges",
    inputs="segment_ids data?",
    outputs="lengths",
    types={"segment_ids": INTS},
)
class SegmentIdsToRanges:
    """lengths[k] = the place of the first k in segment_ids, and how often it is there.

    segment_ids, data: as for SegmentIdsToLengths.  lengths: int32 (segments, 2).
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(segment_ids: Spec, data: Spec | None) -> Spec | None:
        count = _check_ids(segment_ids, data)
        return None if count is None else Spec((*count, 2), _INT32)

    def reference(segment_ids: Array, data: Array | None) -> Array:
        sizes = _counted(segment_ids, data)
        return np.stack([_starts(sizes), sizes], axis=1).astype(_INT32)


@operator("LengthsTile", inputs="DATA LENGTHS", outputs="OUTPUT", types={"LENGTHS": INT32})
class LengthsTile:
    """OUTPUT = row k of DATA LENGTHS[k] times, for each row in turn.

    DATA: any type, at least 1-d.  LENGTHS: int32, not negative, one for each row.
    OUTPUT: DATA's type, as many rows as the lengths sum to.
    """

    def shape(DATA: Spec, LENGTHS: Spec) -> None:
        require_dimensions("DATA", DATA, 1)
        if LENGTHS.shape != DATA.shape[:1]:
            raise OperatorError("LENGTHS", f"has shape {LENGTHS.shape}; DATA has {DATA.shape}")

    def reference(DATA: Array, LENGTHS: Array) -> Array:
        return np.repeat(DATA, _lengths("LENGTHS", LENGTHS), axis=0)

    def gradient(op: GradientContext) -> Any:
        return op.make("LengthsSum", [op.grad(0), op.input(1)], [op.input_grad(0)])


_MAX_LENGTH = Int(-1, min=-1)


@operator(
    "PackSegments",
    inputs="lengths tensor",
    outputs="packed_tensor presence_mask?",
    args={
        "max_length": _MAX_LENGTH,
        "pad_minf": Bool(False),
        "return_presence_mask": Bool(False),
    },
    types={"lengths": INTS},
)
class PackSegments:
    """packed_tensor[k] = the rows of segment k, filled up to one length.

    lengths: int32 or int64, 1-d, not negative; they sum to the rows of tensor.
    tensor: any type, at least 1-d.
    packed_tensor: (segments, length, ...); length is max_length, which cuts longer segments, or
    that of the longest segment.  Rows that are missing are 0, "" or, with pad_minf, minus infinity
    (float and double only).
    presence_mask: bool (segments, length), which rows are there; with return_presence_mask, which
    has to be set where this output is.
    The gradient has the rows that are kept: it fits to tensor where max_length cuts nothing.
    """

    def shape(lengths: Spec, tensor: Spec, op: OpView) -> tuple[Spec | None, Spec | None]:
        require_rank("lengths", lengths, 1)
        require_dimensions("tensor", tensor, 1)
        if len(op.outputs) == 2 and not op.args.return_presence_mask:
            raise OperatorError("presence_mask", "needs the argument return_presence_mask")
        if op.args.pad_minf and tensor.dtype.kind != "f":
            raise OperatorError("tensor", f"is {tensor.dtype}; pad_minf needs floats")
        if op.args.max_length < 0:
            return None, None
        shape = (*lengths.shape, op.args.max_length)
        packed = Spec((*shape, *tensor.shape[1:]), tensor.dtype)
        return packed, Spec(shape, np.dtype(np.bool_))

    def reference(lengths: Array, tensor: Array, op: OpView) -> tuple[Array, Array]:
        sizes = _lengths("lengths", lengths)
        if sizes.sum() != len(tensor):
            raise OperatorError("lengths", f"sums to {sizes.sum()}; tensor has {len(tensor)} rows")
        length = op.args.max_length if op.args.max_length >= 0 else int(sizes.max(initial=0))
        mask = np.arange(length) < sizes[:, None]
        fill = -np.inf if op.args.pad_minf else b"" if tensor.dtype.kind == "O" else 0
        packed = np.full((len(sizes), length, *tensor.shape[1:]), fill, dtype=tensor.dtype)
        places = np.arange(len(tensor)) - np.repeat(_starts(sizes), sizes)
        packed[mask] = tensor[places < length]
        return packed, mask

    def gradient(op: GradientContext) -> Any:
        return op.make("UnpackSegments", [op.input(0), op.grad(0)], [op.input_grad(1)])


@operator(
    "UnpackSegments",
    inputs="lengths tensor",
    outputs="packed_tensor",
    args={"max_length": _MAX_LENGTH},
    types={"lengths": INTS},
)
class UnpackSegments:
    """packed_tensor = the rows of all segments, one after the other: what undoes PackSegments.

    lengths: int32 or int64, 1-d, not negative, one for each segment.
    tensor: any type, (segments, length, ...).
    max_length: where it is given, the length of tensor; longer segments are cut to it, and without
    it refused.
    """

    def shape(lengths: Spec, tensor: Spec, op: OpView) -> None:
        require_rank("lengths", lengths, 1)
        require_dimensions("tensor", tensor, 2)
        if lengths.shape[0] != tensor.shape[0]:
            raise OperatorError("tensor", f"has shape {tensor.shape}; lengths has {lengths.shape}")
        if op.args.max_length not in (-1, tensor.shape[1]):
            problem = f"has shape {tensor.shape}; max_length={op.args.max_length} is not the second"
            raise OperatorError("tensor", problem)

    def reference(lengths: Array, tensor: Array, op: OpView) -> Array:
        sizes, length = _lengths("lengths", lengths), tensor.shape[1]
        if op.args.max_length < 0 and sizes.max(initial=0) > length:
            raise OperatorError("lengths", f"holds {sizes.max()}; tensor has shape {tensor.shape}")
        return tensor[np.arange(length) < sizes[:, None]]

    def gradient(op: GradientContext) -> Any:
        return op.make("PackSegments", [op.input(0), op.grad(0)], [op.input_grad(1)])
