# mypy: disable-error-code="misc, no-any-return"
"""Sparse values made dense and back: by an id, by a number in the row, by a mask, by ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import (
    INT64_MAX,
    INT64_MIN,
    Argument,
    Bool,
    Float,
    Int,
    Ints,
    OperatorError,
)
from caffe2.ops.datatypes import BOOL, FLOAT, INT32, INT64, INTS
from caffe2.ops.declaration import (
    NO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_dimensions, require_rank

_FLOAT, _INT32 = np.dtype(np.float32), np.dtype(np.int32)

_MASK_ARGS: dict[str, Argument] = {
    "mask": Ints(required=True, min=INT64_MIN, max=INT64_MAX),
    "return_presence_mask": Bool(False),
    "max_skipped_indices": Int(50, min=0),
}


def _require_lengths(name: str, lengths: Array, rows: int) -> Array:
    sizes = lengths.astype(np.int64)
    if sizes.size and sizes.min() < 0:
        raise OperatorError(name, f"holds {sizes.min()}; lengths are not negative")
    if sizes.sum() != rows:
        raise OperatorError(name, f"sums to {sizes.sum()}; there are {rows} values")
    return sizes


def _require_mask(op: OpView) -> None:
    mask = op.args.mask
    if not mask or min(mask) < 0 or len(set(mask)) < len(mask):
        problem = f"is {list(mask)}; needed are ids, none negative and none twice"
        raise OperatorError("argument 'mask'", problem)


def _places(indices: Array, lengths: Array | None, op: OpView) -> tuple[Array, Array, int]:
    """For each index its row and its column, -1 for one without; and the number of rows."""
    columns = {id: column for column, id in enumerate(op.args.mask)}
    found = np.array([columns.get(id, -1) for id in indices.tolist()], dtype=np.int64)
    skipped = int((indices < 0).sum())
    if skipped > op.args.max_skipped_indices:
        problem = f"holds {skipped} negative ids; allowed are {op.args.max_skipped_indices}"
        raise OperatorError("indices", problem)
    if lengths is None:
        return np.zeros(len(indices), np.int64), found, 1
    sizes = _require_lengths("lengths", lengths, len(indices))
    return np.repeat(np.arange(len(sizes)), sizes), found, len(sizes)


@operator(
    "SparseToDenseMask",
    inputs="indices values default_value lengths?",
    outputs="output presence_mask?",
    args=_MASK_ARGS,
    types={"indices": INTS, "lengths": INT32},
)
class SparseToDenseMask:
    """output[b, c] = the value of row b whose index is mask[c], or default_value.

    indices: int32 or int64, 1-d.  Those that are not in mask are left out; of equal ones in a row
    the last counts.  Negative ones are left out, too, but more than max_skipped_indices of them
    are refused.
    values: any type, (indices, ...).  default_value: the same type, shaped like one value.
    lengths: int32, 1-d, how many of the indices belong to each row; they sum to all.
    mask: ids, not negative and all different.
    output: (rows, ids of mask, ...), without lengths (ids of mask, ...).
    presence_mask: bool, which of them are no default; with return_presence_mask.
    """

    def shape(
        indices: Spec, values: Spec, default_value: Spec, lengths: Spec | None, op: OpView
    ) -> tuple[Spec, Spec]:
        _require_mask(op)
        require_rank("indices", indices, 1)
        require_dimensions("values", values, 1)
        if values.shape[0] != indices.shape[0]:
            raise OperatorError("values", f"has shape {values.shape}; indices has {indices.shape}")
        if default_value != Spec(values.shape[1:], values.dtype):
            problem = f"is {default_value.dtype} of shape {default_value.shape}"
            needed = f"{values.dtype} of shape {values.shape[1:]} is needed"
            raise OperatorError("default_value", f"{problem}; {needed}")
        if lengths is not None:
            require_rank("lengths", lengths, 1)
        if len(op.outputs) == 2 and not op.args.return_presence_mask:
            raise OperatorError("presence_mask", "needs the argument return_presence_mask")
        rows = (*(() if lengths is None else lengths.shape), len(op.args.mask))
        return Spec((*rows, *values.shape[1:]), values.dtype), Spec(rows, np.dtype(np.bool_))

    def reference(
        indices: Array, values: Array, default_value: Array, lengths: Array | None, op: OpView
    ) -> tuple[Array, Array]:
        rows, columns, count = _places(indices, lengths, op)
        shape = (count, len(op.args.mask))
        output = np.empty((*shape, *values.shape[1:]), dtype=values.dtype)
        output[...] = default_value
        present = np.zeros(shape, np.bool_)
        for row, column, value in zip(rows, columns, values, strict=True):
            if column >= 0:
                output[row, column], present[row, column] = value, True
        return (output[0], present[0]) if lengths is None else (output, present)

    def gradient(op: GradientContext) -> Any:
        made = [op.input(0), op.grad(0), *op.inputs[3:]]
        return op.make("SparseToDenseMaskGradient", made, [op.input_grad(1)])


@operator(
    "SparseToDenseMaskGradient",
    inputs="indices dY lengths?",
    outputs="dvalues",
    args=_MASK_ARGS,
    types={"indices": INTS, "lengths": INT32},
)
class SparseToDenseMaskGradient:
    """dvalues = the elements of dY that came from each value, 0 for one that went nowhere.

    indices, lengths, mask: as for SparseToDenseMask.
    dY: any type, (rows, ids of mask, ...), without lengths (ids of mask, ...).
    dvalues: dY's type, (indices, ...).
    """

    def shape(indices: Spec, dY: Spec, lengths: Spec | None, op: OpView) -> Spec:
        _require_mask(op)
        require_rank("indices", indices, 1)
        if lengths is not None:
            require_rank("lengths", lengths, 1)
        rows = (*(() if lengths is None else lengths.shape), len(op.args.mask))
        if dY.shape[: len(rows)] != rows:
            raise OperatorError("dY", f"has shape {dY.shape}; {rows} and more are needed")
        return Spec((*indices.shape, *dY.shape[len(rows) :]), dY.dtype)

    def reference(indices: Array, dY: Array, lengths: Array | None, op: OpView) -> Array:
        rows, columns, _ = _places(indices, lengths, op)
        dense = dY[np.newaxis] if lengths is None else dY
        fill = b"" if dY.dtype.kind == "O" else 0
        dvalues = np.full((len(indices), *dense.shape[2:]), fill, dtype=dY.dtype)
        last = {place: j for j, place in enumerate(zip(rows, columns, strict=True))}
        for (row, column), j in last.items():
            if column >= 0:
                dvalues[j] = dense[row, column]
        return dvalues


def _check_numbers(lengths: Array, indices: Array, columns: int) -> tuple[Array, Array]:
    """Row and column of each value."""
    sizes = _require_lengths("lengths", lengths, len(indices))
    if indices.size and not (indices.min() >= 0 and indices.max() < columns):
        problem = f"holds {indices.min()} to {indices.max()}; there are {columns} columns"
        raise OperatorError("indices", problem)
    return np.repeat(np.arange(len(sizes)), sizes), indices


@operator(
    "BatchSparseToDense",
    inputs="lengths indices values output_shape_inference?",
    outputs="dense",
    args={"dense_last_dim": Int(-1, min=-1), "default_value": Float(0.0)},
    types={"lengths": INTS, "indices": INTS, "values": FLOAT},
)
class BatchSparseToDense:
    """dense[b, indices[j]] = values[j] for the values j of row b, all else default_value.

    lengths: int32 or int64, 1-d, how many values each row has; they sum to all.
    indices: int32 or int64, 1-d, 0 <= i < columns; of equal ones in a row the last counts.
    values: float, 1-d, one for each of the indices.
    output_shape_inference: any type, 2-d; dense has as many columns.  Without it dense_last_dim
    says how many, at least 1.  dense: float (rows, columns).
    """

    def shape(
        lengths: Spec,
        indices: Spec,
        values: Spec,
        output_shape_inference: Spec | None,
        op: OpView,
    ) -> Spec:
        require_rank("lengths", lengths, 1)
        require_rank("indices", indices, 1)
        if values.shape != indices.shape:
            raise OperatorError("values", f"has shape {values.shape}; indices has {indices.shape}")
        columns = op.args.dense_last_dim
        if output_shape_inference is not None:
            require_rank("output_shape_inference", output_shape_inference, 2)
            given = output_shape_inference.shape[1]
            if columns > 0 and columns != given:
                problem = f"has {given} columns; dense_last_dim is {columns}"
                raise OperatorError("output_shape_inference", problem)
            columns = given
        elif columns < 1:
            raise OperatorError("argument 'dense_last_dim'", f"is {columns}; it is at least 1")
        return Spec((*lengths.shape, columns), _FLOAT)

    def reference(
        lengths: Array,
        indices: Array,
        values: Array,
        output_shape_inference: Array | None,
        op: OpView,
    ) -> Array:
        like = output_shape_inference
        columns = op.args.dense_last_dim if like is None else like.shape[1]
        dense = np.full((len(lengths), columns), op.args.default_value, dtype=values.dtype)
        dense[_check_numbers(lengths, indices, columns)] = values
        return dense

    def gradient(op: GradientContext) -> Any:
        made = [op.input(0), op.input(1), op.grad(0)]
        return op.make("BatchDenseToSparse", made, [op.input_grad(2)])


@operator(
    "BatchDenseToSparse",
    inputs="lengths indices dense",
    outputs="values",
    types={"lengths": INTS, "indices": INTS, "dense": FLOAT},
)
class BatchDenseToSparse:
    """values[j] = dense[b, indices[j]] for the values j of row b.

    lengths, indices: as for BatchSparseToDense.  dense: float (rows, columns).
    values: float, one for each of the indices.
    """

    def shape(lengths: Spec, indices: Spec, dense: Spec) -> Spec:
        require_rank("lengths", lengths, 1)
        require_rank("indices", indices, 1)
        require_rank("dense", dense, 2)
        if dense.shape[:1] != lengths.shape:
            raise OperatorError("dense", f"has shape {dense.shape}; lengths has {lengths.shape}")
        return Spec(indices.shape, _FLOAT)

    def reference(lengths: Array, indices: Array, dense: Array) -> Array:
        return dense[_check_numbers(lengths, indices, dense.shape[1])]

    def gradient(op: GradientContext) -> Any:
        made = [op.input(0), op.input(1), op.grad(0), op.input(2)]
        return op.make("BatchSparseToDense", made, [op.input_grad(2)])


@operator(
    "BooleanUnmask",
    inputs="mask data others*?",
    outputs="unmasked_data",
    types={"mask": BOOL},
)
class BooleanUnmask:
    """unmasked_data[i] = the next element of the data whose mask is the first that is true at i.

    mask, data, and further pairs of them (others): bool masks of one length, 1-d, and data of one
    type, any, 1-d, with as many elements as are taken.  One mask at least is true at each place.
    """

    gradient = NO_GRADIENT

    def shape(mask: Spec, data: Spec, *others: Spec) -> Spec:
        if len(others) % 2:
            raise OperatorError("", "needs data for each of the masks")
        pairs = (mask, data, *others)
        for one, values in zip(pairs[::2], pairs[1::2], strict=True):
            if one.shape != mask.shape or len(mask.shape) != 1 or one.dtype != np.bool_:
                problem = f"is {one.dtype} of shape {one.shape}; masks are bool, 1-d, of one length"
                raise OperatorError("mask", problem)
            if len(values.shape) != 1 or values.dtype != data.dtype:
                problem = f"is {values.dtype} of shape {values.shape}; data is 1-d and of one type"
                raise OperatorError("data", problem)
        return Spec(mask.shape, data.dtype)

    def reference(mask: Array, data: Array, *others: Array) -> Array:
        masks, values = [mask, *others[::2]], [data, *others[1::2]]
        if not np.any(masks, axis=0).all():
            raise OperatorError("mask", "is false at a place where all others are")
        first = np.argmax(masks, axis=0) if mask.size else np.zeros(0, np.int64)
        result = np.empty(mask.shape, dtype=data.dtype)
        for k, part in enumerate(values):
            if (first == k).sum() != len(part):
                problem = f"{k} has {len(part)} elements; its mask takes {(first == k).sum()}"
                raise OperatorError("data", problem)
            result[first == k] = part
        return result


@operator(
    "BooleanMaskLengths",
    inputs="lengths mask",
    outputs="masked_lengths",
    types={"lengths": INTS, "mask": BOOL},
)
class BooleanMaskLengths:
    """masked_lengths[k] = how often the mask is true in segment k.

    lengths: int32 or int64, 1-d; they sum to all values of mask (bool, 1-d).
    masked_lengths: shaped and typed like lengths.
    """

    gradient = NO_GRADIENT

    def shape(lengths: Spec, mask: Spec) -> Spec:
        require_rank("lengths", lengths, 1)
        require_rank("mask", mask, 1)
        return lengths

    def reference(lengths: Array, mask: Array) -> Array:
        sizes = _require_lengths("lengths", lengths, len(mask))
        kept = np.repeat(np.arange(len(sizes)), sizes)[mask]
        return np.bincount(kept, minlength=len(sizes)).astype(lengths.dtype)


def _check_ranges(DATA: Spec, RANGES: Spec) -> None:
    require_rank("DATA", DATA, 1)
    if len(RANGES.shape) != 3 or RANGES.shape[2] != 2:
        problem = f"has shape {RANGES.shape}; (examples, ranges, 2) is needed"
        raise OperatorError("RANGES", problem)


def _ranges(RANGES: Array, size: int) -> Array:
    """Starts and lengths as int64, (examples, ranges, 2)."""
    wide = RANGES.astype(np.int64)
    starts, sizes = wide[..., 0], wide[..., 1]
    if wide.size and (wide.min() < 0 or sizes.max() > size or (starts + sizes).max() > size):
        raise OperatorError("RANGES", f"holds a range outside of the {size} elements of DATA")
    return wide


@operator(
    "GatherRanges",
    inputs="DATA RANGES",
    outputs="OUTPUT LENGTHS",
    types={"RANGES": INTS},
)
class GatherRanges:
    """OUTPUT = the elements of all ranges, one after the other; LENGTHS how many of each example.

    DATA: any type, 1-d.  RANGES: int32 or int64 (examples, ranges, 2), start and length of each
    range, inside of DATA.  OUTPUT: DATA's type, 1-d.  LENGTHS: int32 (examples).
    """

    def shape(DATA: Spec, RANGES: Spec) -> tuple[None, Spec]:
        _check_ranges(DATA, RANGES)
        return None, Spec(RANGES.shape[:1], _INT32)

    def reference(DATA: Array, RANGES: Array) -> tuple[Array, Array]:
        ranges = _ranges(RANGES, len(DATA))
        parts = [DATA[start : start + size] for start, size in ranges.reshape(-1, 2)]
        return np.concatenate([DATA[:0], *parts]), ranges[..., 1].sum(axis=1).astype(_INT32)


@operator(
    "GatherRangesToDense",
    inputs="DATA RANGES KEY?",
    outputs="OUTPUT*",
    args={
        "lengths": Ints(required=True, min=1),
        "min_observation": Int(10000, min=0, max=INT64_MAX),
        "max_mismatched_ratio": Float(0.01),
        "max_empty_ratio": Float(1.0),
    },
    types={"RANGES": INTS, "KEY": INT64},
)
class GatherRangesToDense:
    """OUTPUT_f[b] = the elements of range f of example b, or 0 where it has another length.

    DATA: any type, 1-d.  RANGES: int32 or int64 (examples, features, 2), start and length of each
    range, inside of DATA.
    KEY: int64, shaped like DATA; elements of a range come in the order of their keys.
    lengths: one for each feature, at least 1.  OUTPUT_f: DATA's type, (examples, lengths[f]).
    Ranges of length 0 are empty, those of another one mismatched.  More of them of one feature than
    max_empty_ratio and max_mismatched_ratio times the examples (min_observation, if that is more)
    are refused.
    """

    gradient = NO_GRADIENT

    def shape(DATA: Spec, RANGES: Spec, KEY: Spec | None, op: OpView) -> tuple[Spec, ...]:
        _check_ranges(DATA, RANGES)
        lengths = op.args.lengths
        if not len(lengths) == len(op.outputs) == RANGES.shape[1]:
            problem = f"are {len(lengths)}; there are {len(op.outputs)} outputs and RANGES"
            raise OperatorError("argument 'lengths'", f"{problem} has shape {RANGES.shape}")
        if KEY is not None and KEY.shape != DATA.shape:
            raise OperatorError("KEY", f"has shape {KEY.shape}; DATA has {DATA.shape}")
        return tuple(Spec((RANGES.shape[0], length), DATA.dtype) for length in lengths)

    def reference(DATA: Array, RANGES: Array, KEY: Array | None, op: OpView) -> tuple[Array, ...]:
        ranges, outputs = _ranges(RANGES, len(DATA)), []
        fill = b"" if DATA.dtype.kind == "O" else 0
        for feature, length in enumerate(op.args.lengths):
            output = np.full((len(ranges), length), fill, dtype=DATA.dtype)
            for row, (start, size) in zip(output, ranges[:, feature], strict=True):
                if size == length:
                    part = slice(start, start + size)
                    order = slice(None) if KEY is None else np.argsort(KEY[part], kind="stable")
                    row[:] = DATA[part][order]
            sizes = ranges[:, feature, 1]
            wrong = {"empty": sizes == 0, "mismatched": (sizes != 0) & (sizes != length)}
            for what, which in wrong.items():
                most = np.float32(getattr(op.args, f"max_{what}_ratio"))
                if which.sum() > float(most) * max(len(sizes), op.args.min_observation):
                    problem = f"has {which.sum()} {what} ranges of feature {feature}"
                    raise OperatorError("RANGES", f"{problem}, more than {most} of all")
            outputs.append(output)
        return tuple(outputs)
