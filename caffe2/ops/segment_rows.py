# mypy: disable-error-code="misc, no-any-return"
"""Rows of segments: padded, split, chosen, packed for recurrent nets; and rows parted by keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caffe2.ops.arguments import INT32_MAX, INT32_MIN, Bool, Float, Int, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT32, INTS
from caffe2.ops.declaration import (
    GRADIENT_NOT_IMPLEMENTED,
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_dimensions, require_rank, require_same_shape, require_single

_FLOAT, _INT32 = np.dtype(np.float32), np.dtype(np.int32)


def _sizes(name: str, lengths: Array, rows: int | None = None) -> Array:
    """Lengths as int64; OperatorError unless they are not negative and sum to the rows."""
    sizes = lengths.astype(np.int64)
    if sizes.size and sizes.min() < 0:
        raise OperatorError(name, f"holds {sizes.min()}; lengths are not negative")
    if rows is not None and sizes.sum() != rows:
        raise OperatorError(name, f"sums to {sizes.sum()}; there are {rows} rows")
    return sizes


def _parts(rows: Array, sizes: Array) -> list[Array]:
    """The rows of each segment."""
    return np.split(rows, np.cumsum(sizes)[:-1]) if len(sizes) else []


@operator(
    "LengthsPad",
    inputs="DATA LENGTHS",
    outputs="OUTPUT",
    args={"padding_value": Float(-1.0), "target_length": Int(required=True, min=1)},
    types={"DATA": FLOAT | DOUBLE | INTS, "LENGTHS": INT32},
)
class LengthsPad:
    """OUTPUT = the segments, each filled up to target_length rows with padding_value.

    DATA: float, double, int32 or int64, at least 1-d.
    LENGTHS: int32, 1-d, none above target_length; they sum to the rows of DATA.
    padding_value: cut to an integer, which fits into int32, where DATA holds integers.
    OUTPUT: (segments * target_length, ...).
    """

    gradient = NO_GRADIENT

    def shape(DATA: Spec, LENGTHS: Spec, op: OpView) -> Spec:
        require_dimensions("DATA", DATA, 1)
        require_rank("LENGTHS", LENGTHS, 1)
        value = op.args.padding_value
        if DATA.dtype.kind == "i" and not INT32_MIN <= value <= INT32_MAX:
            raise OperatorError("argument 'padding_value'", f"is {value}, which is no int32")
        rows = LENGTHS.shape[0] * op.args.target_length
        return Spec((rows, *DATA.shape[1:]), DATA.dtype)

    def reference(DATA: Array, LENGTHS: Array, op: OpView) -> Array:
        sizes, length = _sizes("LENGTHS", LENGTHS, len(DATA)), op.args.target_length
        if sizes.max(initial=0) > length:
            raise OperatorError("LENGTHS", f"holds {sizes.max()}; target_length is {length}")
        padded = np.empty((len(sizes), length, *DATA.shape[1:]), dtype=DATA.dtype)
        padded[...] = DATA.dtype.type(op.args.padding_value)
        padded[np.arange(length) < sizes[:, None]] = DATA
        return padded.reshape(len(sizes) * length, *DATA.shape[1:])


@operator(
    "LengthsSplit",
    inputs="LENGTHS n_split?",
    outputs="Y",
    args={"n_split": Int(min=1)},
    types={"LENGTHS": INT32, "n_split": INT32},
)
class LengthsSplit:
    """Y = each length as a sum of n_split ones, the first of which are larger by 1 where needed.

    LENGTHS: int32, 1-d, not negative.  n_split: at least 1, the argument or an int32 input with
    one element, which comes first.  Y: int32 (lengths * n_split).
    """

    gradient = GRADIENT_NOT_IMPLEMENTED

    def shape(LENGTHS: Spec, n_split: Spec | None, op: OpView) -> Spec | None:
        require_rank("LENGTHS", LENGTHS, 1)
        if n_split is not None:
            require_single("n_split", n_split)
            return None
        if op.args.n_split is None:
            raise OperatorError("argument 'n_split'", "is missing, and so is the input")
        return Spec((LENGTHS.shape[0] * op.args.n_split,), _INT32)

    def reference(LENGTHS: Array, n_split: Array | None, op: OpView) -> Array:
        count = op.args.n_split if n_split is None else int(n_split.reshape(()))
        if count < 1:
            raise OperatorError("n_split", f"is {count}; it is at least 1")
        sizes = _sizes("LENGTHS", LENGTHS)[:, np.newaxis]
        larger = np.arange(count) < sizes % count
        return (sizes // count + larger).reshape(-1).astype(_INT32)


@operator(
    "LengthsGather",
    inputs="ITEMS LENGTHS INDICES",
    outputs="OUTPUT",
    types={"LENGTHS": INT32, "INDICES": INTS},
)
class LengthsGather:
    """OUTPUT = the rows of the segments with these numbers, one after the other.

    ITEMS: any type, at least 1-d.  LENGTHS: int32, 1-d; they sum to the rows of ITEMS.
    INDICES: int32 or int64, 1-d, 0 <= i < segments.  OUTPUT: ITEMS' type.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(ITEMS: Spec, LENGTHS: Spec, INDICES: Spec) -> None:
        require_dimensions("ITEMS", ITEMS, 1)
        require_rank("LENGTHS", LENGTHS, 1)
        require_rank("INDICES", INDICES, 1)

    def reference(ITEMS: Array, LENGTHS: Array, INDICES: Array) -> Array:
        parts = _parts(ITEMS, _sizes("LENGTHS", LENGTHS, len(ITEMS)))
        if INDICES.size and not (INDICES.min() >= 0 and INDICES.max() < len(parts)):
            problem = f"holds {INDICES.min()} to {INDICES.max()}; there are {len(parts)} segments"
            raise OperatorError("INDICES", problem)
        return np.concatenate([ITEMS[:0], *(parts[index] for index in INDICES)])


_TOP = {"k": Int(required=True, min=1)}


@operator(
    "LengthsTopK",
    inputs="DATA LENGTHS",
    outputs="TopKValue TopKIndices",
    args=_TOP,
    types={"DATA": FLOAT, "LENGTHS": INT32},
)
class LengthsTopK:
    """TopKValue[s] = the k largest elements of segment s, the largest first; TopKIndices where.

    DATA: float, 1-d.  LENGTHS: int32, 1-d; they sum to the elements of DATA.
    TopKValue: float (segments, k).  TopKIndices: int32, places in the segment.  Of equal elements
    the first comes first, NaN last; where a segment has fewer than k, the rest is 0, index -1.
    """

    def shape(DATA: Spec, LENGTHS: Spec, op: OpView) -> tuple[Spec, Spec]:
        require_rank("DATA", DATA, 1)
        require_rank("LENGTHS", LENGTHS, 1)
        shape = (*LENGTHS.shape, op.args.k)
        return Spec(shape, _FLOAT), Spec(shape, _INT32)

    def reference(DATA: Array, LENGTHS: Array, op: OpView) -> tuple[Array, Array]:
        sizes = _sizes("LENGTHS", LENGTHS, len(DATA))
        values = np.zeros((len(sizes), op.args.k), dtype=DATA.dtype)
        indices = np.full(values.shape, -1, _INT32)
        for row, part in enumerate(_parts(DATA, sizes)):
            order = np.argsort(-part, kind="stable")[: op.args.k]
            values[row, : len(order)], indices[row, : len(order)] = part[order], order
        return values, indices

    def gradient(op: GradientContext) -> Any:
        made = [op.input(1), op.output(1), op.grad(0)]
        return op.make("LengthsTopKGradient", made, [op.input_grad(0)])


@operator(
    "LengthsTopKGradient",
    inputs="LENGTHS TopKIndices dTopKValue",
    outputs="dDATA",
    args=_TOP,
    types={"LENGTHS": INT32, "TopKIndices": INT32, "dTopKValue": FLOAT},
)
class LengthsTopKGradient:
    """dDATA = dTopKValue where LengthsTopK took its values, and 0 elsewhere.

    LENGTHS, TopKIndices (-1 is left out): as LengthsTopK takes and gives them.
    dTopKValue: float (segments, k).  dDATA: float, as many as the lengths sum to.
    """

    def shape(LENGTHS: Spec, TopKIndices: Spec, dTopKValue: Spec, op: OpView) -> None:
        require_rank("LENGTHS", LENGTHS, 1)
        if TopKIndices.shape != (*LENGTHS.shape, op.args.k):
            problem = f"has shape {TopKIndices.shape}; {(*LENGTHS.shape, op.args.k)} is needed"
            raise OperatorError("TopKIndices", problem)
        require_same_shape("dTopKValue", dTopKValue, "TopKIndices", TopKIndices)

    def reference(LENGTHS: Array, TopKIndices: Array, dTopKValue: Array) -> Array:
        sizes = _sizes("LENGTHS", LENGTHS)
        if np.any((TopKIndices < -1) | (TopKIndices >= sizes[:, np.newaxis])):
            raise OperatorError("TopKIndices", "holds a place outside of its segment")
        dDATA = np.zeros(sizes.sum(), dtype=dTopKValue.dtype)
        starts = (np.cumsum(sizes) - sizes)[:, np.newaxis]
        known = TopKIndices >= 0
        dDATA[(TopKIndices + starts)[known]] = dTopKValue[known]
        return dDATA


@operator(
    "LengthsToWeights",
    inputs="lengths",
    outputs="weights",
    args={"power": Float(0.5)},
    types={"lengths": INTS},
)
class LengthsToWeights:
    """weights = 1 / length^power of its segment for each row.

    lengths: int32 or int64, 1-d, not negative.  weights: float, as many as the lengths sum to.
    """

    def shape(lengths: Spec) -> None:
        require_rank("lengths", lengths, 1)

    def reference(lengths: Array, op: OpView) -> Array:
        sizes = _sizes("lengths", lengths)
        rows = np.repeat(sizes, sizes)
        return (1 / rows.astype(np.float64) ** np.float32(op.args.power)).astype(_FLOAT)


@operator(
    "PackRNNSequence",
    inputs="values lengths",
    outputs="output",
    types={"lengths": INT32},
)
class PackRNNSequence:
    """output[t, s] = row t of sequence s, 0 where it has no such row.

    values: any type, at least 2-d, the rows of all sequences.
    lengths: int32, 1-d, not negative; they sum to the rows.
    output: (longest length, sequences, ...).
    """

    def shape(values: Spec, lengths: Spec) -> None:
        require_dimensions("values", values, 2)
        require_rank("lengths", lengths, 1)

    def reference(values: Array, lengths: Array) -> Array:
        sizes = _sizes("lengths", lengths, len(values))
        fill = b"" if values.dtype.kind == "O" else 0
        shape = (len(sizes), int(sizes.max(initial=0)), *values.shape[1:])
        packed = np.full(shape, fill, dtype=values.dtype)
        packed[np.arange(shape[1]) < sizes[:, None]] = values
        return packed.swapaxes(0, 1).copy()

    def gradient(op: GradientContext) -> Any:
        return op.make("UnpackRNNSequence", [op.grad(0), op.input(1)], [op.input_grad(0)])


@operator(
    "UnpackRNNSequence",
    inputs="values lengths",
    outputs="output",
    types={"lengths": INT32},
)
class UnpackRNNSequence:
    """output = the rows of all sequences, one after the other: what undoes PackRNNSequence.

    values: any type, (steps, sequences, ...), at least 3-d.
    lengths: int32, 1-d, one for each sequence, none above the number of steps.
    """

    def shape(values: Spec, lengths: Spec) -> None:
        require_dimensions("values", values, 3)
        if lengths.shape != values.shape[1:2]:
            raise OperatorError("lengths", f"has shape {lengths.shape}; values has {values.shape}")

    def reference(values: Array, lengths: Array) -> Array:
        sizes = _sizes("lengths", lengths)
        if sizes.max(initial=0) > len(values):
            raise OperatorError("lengths", f"holds {sizes.max()}; values has {len(values)} steps")
        return values.swapaxes(0, 1)[np.arange(len(values)) < sizes[:, None]]

    def gradient(op: GradientContext) -> Any:
        return op.make("PackRNNSequence", [op.grad(0), op.input(1)], [op.input_grad(0)])


# Rows parted by keys


def _require_rows(keys: Spec, others: Sequence[Spec]) -> None:
    for spec in others:
        if spec.shape[: len(keys.shape)] != keys.shape:
            problem = f"has shape {spec.shape}; it begins with that of the keys, {keys.shape}"
            raise OperatorError("others", problem)


def _parted(inputs: int, op: OpView) -> int:
    """How many parts."""
    if len(op.outputs) % inputs:
        problem = f"are {len(op.outputs)}; needed is a multiple of the {inputs} inputs"
        raise OperatorError("", f"outputs {problem}")
    return len(op.outputs) // inputs


def _part(keys: Array, others: Sequence[Array], parts: int, packed: bool) -> list[list[Array]]:
    """Keys and rows of each part."""
    which = keys.reshape(-1) % parts
    rows = [other.reshape(keys.size, *other.shape[keys.ndim :]) for other in others]
    flat = keys.reshape(-1)
    first = (flat // parts).astype(keys.dtype) if packed else flat
    return [[one[which == part] for one in (first, *rows)] for part in range(parts)]


_PACK = {"pack_first_input": Bool(False)}


@operator(
    "Partition",
    inputs="keys others*?",
    outputs="partitions*",
    args=_PACK,
    types={"keys": INTS},
)
class Partition:
    """Parts keys, and rows that belong to them: key k goes to part k modulo the number of parts.

    keys: int32 or int64 of any shape.  others: any types; their shapes begin with that of keys.
    partitions: for each part its keys, 1-d, and its rows of each of the others, in the order in
    which they come; there are as many parts as these outputs say.
    pack_first_input: keys become k / parts, rounded down.
    """

    gradient = NO_GRADIENT

    def shape(keys: Spec, *others: Spec, op: OpView) -> tuple[None, ...]:
        _parted(1 + len(others), op)
        _require_rows(keys, others)
        return (None,) * len(op.outputs)

    def reference(keys: Array, *others: Array, op: OpView) -> tuple[Array, ...]:
        parts = _part(keys, others, _parted(1 + len(others), op), op.args.pack_first_input)
        return tuple(one for part in parts for one in part)


@operator(
    "LengthsPartition",
    inputs="lengths keys others*?",
    outputs="partitions*",
    args=_PACK,
    types={"lengths": INT32, "keys": INTS},
)
class LengthsPartition:
    """The same as Partition for the keys of segments: each part has lengths of its own, too.

    lengths: int32, 1-d; they sum to the keys.  keys, others, pack_first_input: as for Partition,
    with keys 1-d.
    partitions: for each part its lengths (as many as there are segments), keys and rows.
    """

    gradient = NO_GRADIENT

    def shape(lengths: Spec, keys: Spec, *others: Spec, op: OpView) -> tuple[Any, ...]:
        parts = _parted(2 + len(others), op)
        require_rank("lengths", lengths, 1)
        require_rank("keys", keys, 1)
        _require_rows(keys, others)
        return (lengths, *(None,) * (1 + len(others))) * parts

    def reference(lengths: Array, keys: Array, *others: Array, op: OpView) -> tuple[Array, ...]:
        sizes = _sizes("lengths", lengths, len(keys))
        count = _parted(2 + len(others), op)
        ids = np.repeat(np.arange(len(sizes)), sizes)
        found: list[Array] = []
        parts = _part(keys, others, count, op.args.pack_first_input)
        for number, part in enumerate(parts):
            own = np.bincount(ids[keys % count == number], minlength=len(sizes))
            found += [own.astype(_INT32), *part]
        return tuple(found)


@operator(
    "GatherByKey",
    inputs="keys sharded_values*",
    outputs="values",
    types={"keys": INTS},
)
class GatherByKey:
    """values[j] = the next row of shard keys[j] modulo the number of shards: undoes Partition.

    keys: int32 or int64, 1-d.  sharded_values: one type, any, at least 1-d; each shard has as many
    rows as keys go to it, all of one shape.
    values: one row for each key.
    """

    def shape(keys: Spec, *sharded_values: Spec) -> Spec:
        require_rank("keys", keys, 1)
        first = sharded_values[0]
        for spec in sharded_values:
            require_dimensions("sharded_values", spec, 1)
            if spec.shape[1:] != first.shape[1:] or spec.dtype != first.dtype:
                problem = f"is {spec.dtype} of shape {spec.shape}; the first is {first.dtype}"
                raise OperatorError("sharded_values", f"{problem} of shape {first.shape}")
        return Spec((*keys.shape, *first.shape[1:]), first.dtype)

    def reference(keys: Array, *sharded_values: Array) -> Array:
        first = sharded_values[0]
        values = np.empty((len(keys), *first.shape[1:]), dtype=first.dtype)
        which = keys % len(sharded_values)
        for number, shard in enumerate(sharded_values):
            if (which == number).sum() != len(shard):
                problem = f"{number} has {len(shard)} rows; {(which == number).sum()} keys go to it"
                raise OperatorError("sharded_values", problem)
            values[which == number] = shard
        return values

    def gradient(op: GradientContext) -> Any:
        outputs = []
        for index in range(1, len(op.inputs)):
            grad = op.input_grad(index)
            outputs += [f"_{grad}_keys", grad]
        made = [op.input(0), op.grad(0)]
        return op.make("Partition", made, outputs, pack_first_input=0)
