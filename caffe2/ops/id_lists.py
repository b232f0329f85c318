# mypy: disable-error-code="misc, no-any-return"
"""Lists of ids and other features of examples: merged, split, bucketed and padded."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import Int, Ints, OperatorError
from caffe2.ops.datatypes import FLOAT, INT32, INT64
from caffe2.ops.declaration import (
    NO_GRADIENT,
    Array,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def _starts(name: str, lengths: Array, rows: int) -> Array:
    """Where each list begins, and their end; OperatorError unless they have all rows."""
    if (lengths < 0).any():
        raise OperatorError(name, f"holds {lengths.min()}; lengths are not negative")
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if starts[-1] != rows:
        raise OperatorError(name, f"sums to {starts[-1]}, but there are {rows} rows")
    return starts


@operator("MergeIdLists", inputs="lengths_or_values*", outputs="merged_lengths merged_values")
class MergeIdLists:
    """The ids that an example has in any of several lists: each once, in rising order.

    The inputs: lengths, int32 (N,), and values, int32 or int64, for each list.
    merged_lengths: int32 (N,).  merged_values: of the type of the values.
    """

    gradient = NO_GRADIENT

    def shape(*lengths_or_values: Spec, op: OpView) -> tuple[Spec, None]:
        specs = lengths_or_values
        if not specs or len(specs) % 2:
            raise OperatorError("", f"has {len(specs)} inputs; lengths and values are needed")
        for i, spec in enumerate(specs):
            name = f"input {i} ('{op.input(i)}')"
            require_rank(name, spec, 1)
            needed = _INT32 if i % 2 == 0 else specs[1].dtype
            if spec.dtype != needed or spec.dtype not in INT32 | INT64:
                raise OperatorError(name, f"is {spec.dtype}; needed is {needed}, int32 or int64")
            if i % 2 == 0 and spec.shape != specs[0].shape:
                raise OperatorError(name, f"has shape {spec.shape}; the first has {specs[0].shape}")
        return specs[0], None

    def reference(*lengths_or_values: Array, op: OpView) -> tuple[Array, Array]:
        lists = lengths_or_values
        starts = [
            _starts(f"input {i} ('{op.input(i)}')", lists[i], lists[i + 1].size)
            for i in range(0, len(lists), 2)
        ]
        counts, values = [], [lists[1][:0]]
        for n in range(lists[0].size):
            own = [v[s[n] : s[n + 1]] for s, v in zip(starts, lists[1::2], strict=True)]
            values.append(np.unique(np.concatenate(own)))
            counts.append(values[-1].size)
        return np.asarray(counts, np.int32), np.concatenate(values)


@operator(
    "KeySplit",
    inputs="keys",
    outputs="positions*",
    args={"categorical_limit": Int(0, min=0)},
    types={"keys": INT64},
)
class KeySplit:
    """positions_k = where keys holds k, for each k < categorical_limit.

    keys: int64, any shape, all of them in [0, categorical_limit).
    positions_k: int32, in rising order; as many outputs as categorical_limit says.
    """

    def shape(keys: Spec, op: OpView) -> tuple[None, ...]:
        if len(op.outputs) != op.args.categorical_limit:
            problem = f"is {op.args.categorical_limit}; there are {len(op.outputs)} outputs"
            raise OperatorError("argument 'categorical_limit'", problem)
        return (None,) * len(op.outputs)

    def reference(keys: Array, op: OpView) -> tuple[Array, ...]:
        flat = keys.reshape(-1)
        outside = (flat < 0) | (flat >= op.args.categorical_limit)
        if outside.any():
            problem = f"holds {flat[outside][0]}; categorical_limit is {op.args.categorical_limit}"
            raise OperatorError("keys", problem)
        found = [np.flatnonzero(flat == k) for k in range(op.args.categorical_limit)]
        return tuple(each.astype(np.int32) for each in found)


@operator(
    "NGramFromCategorical",
    inputs="floats",
    outputs="output",
    args={
        "col_ids": Ints(min=0, required=True),
        "categorical_limits": Ints(min=1, required=True),
        "vals": Ints(required=True),
    },
    types={"floats": FLOAT},
)
class NGramFromCategorical:
    """output = one number for the values of several columns together.

    Column col_ids[k] has the values vals (categorical_limits[k] of them, one column after the
    other); each counts as its place among them, 0 when it is none of them.  The places are the
    digits of the number, the first column the lowest.

    floats: float (N, columns).  output: int64 (N,).
    """

    gradient = NO_GRADIENT

    def shape(floats: Spec, op: OpView) -> Spec:
        require_rank("floats", floats, 2)
        limits, columns = op.args.categorical_limits, op.args.col_ids
        if len(limits) != len(columns) or sum(limits) != len(op.args.vals):
            problem = f"are {limits} for {len(columns)} columns and {len(op.args.vals)} vals"
            raise OperatorError("argument 'categorical_limits'", problem)
        if max(columns, default=-1) >= floats.shape[1]:
            problem = f"are {columns}; floats has shape {floats.shape}"
            raise OperatorError("argument 'col_ids'", problem)
        product = 1
        for limit in limits:
            product *= limit
        if product > 2**63 - 1:
            raise OperatorError("argument 'categorical_limits'", f"are {limits}: too many numbers")
        return Spec(floats.shape[:1], _INT64)

    def reference(floats: Array, op: OpView) -> Array:
        found, base, at = np.zeros(len(floats), np.int64), 1, 0
        for column, limit in zip(op.args.col_ids, op.args.categorical_limits, strict=True):
            # Of equal values the last one counts; numbers are cut to integers before.
            place = {value: k for k, value in enumerate(op.args.vals[at : at + limit])}
            digits = [_place(value, place) for value in floats[:, column].tolist()]
            found += base * np.asarray(digits, np.int64)
            base, at = base * limit, at + limit
        return found


def _place(value: float, place: dict[int, int]) -> int:
    return place.get(int(value), 0) if abs(value) < 2**31 else 0


@operator(
    "BatchBucketize",
    inputs="feature indices boundaries lengths",
    outputs="output",
    types={"feature": FLOAT, "indices": INT32, "boundaries": FLOAT, "lengths": INT32},
)
class BatchBucketize:
    """output[n, k] = how many boundaries of column indices[k] lie below feature[n, indices[k]].

    feature: float (N, columns).  indices: int32 (K,), columns.
    lengths: int32 (K,), how many boundaries each of these columns has.
    boundaries: float, the boundaries of all, rising for each column.
    output: int32 (N, K).
    """

    gradient = NO_GRADIENT

    def shape(feature: Spec, indices: Spec, boundaries: Spec, lengths: Spec) -> Spec:
        require_rank("feature", feature, 2)
        for name, spec in (("indices", indices), ("boundaries", boundaries), ("lengths", lengths)):
            require_rank(name, spec, 1)
        if lengths.shape != indices.shape:
            raise OperatorError("lengths", f"has shape {lengths.shape}; indices {indices.shape}")
        return Spec((feature.shape[0], indices.shape[0]), _INT32)

    def reference(feature: Array, indices: Array, boundaries: Array, lengths: Array) -> Array:
        starts = _starts("lengths", lengths, boundaries.size)
        if ((indices < 0) | (indices >= feature.shape[1])).any():
            problem = f"holds {indices.tolist()}; feature has {feature.shape[1]} columns"
            raise OperatorError("indices", problem)
        found = np.zeros((len(feature), indices.size), np.int32)
        for k, column in enumerate(indices):
            own = boundaries[starts[k] : starts[k + 1]]
            if (own[1:] < own[:-1]).any():
                raise OperatorError("boundaries", f"holds {own.tolist()} for column {column}")
            found[:, k] = np.searchsorted(own, feature[:, column], side="left")
        return found


@operator(
    "DenseVectorToIdList",
    inputs="values",
    outputs="out_lengths out_values",
    types={"values": FLOAT},
)
class DenseVectorToIdList:
    """The columns of each row that are not 0.

    values: float (N, columns).
    out_lengths: int32 (N,), how many.  out_values: int32, their numbers.
    """

    gradient = NO_GRADIENT

    def shape(values: Spec) -> tuple[Spec, None]:
        require_rank("values", values, 2)
        return Spec(values.shape[:1], _INT32), None

    def reference(values: Array) -> tuple[Array, Array]:
        found = values != 0
        return found.sum(axis=1, dtype=np.int32), np.nonzero(found)[1].astype(np.int32)


@operator(
    "PadEmptySamples",
    inputs="lengths features*?",
    outputs="out_lengths out_features*?",
    types={"lengths": INT32},
)
class PadEmptySamples:
    """Gives each empty list one element: zeros, false or empty strings.

    lengths: int32 (N,).  features: tensors of any type with a row for each element of the lists.
    out_lengths: int32 (N,), 1 in place of 0.  out_features: the tensors with the added rows.
    """

    def shape(lengths: Spec, *features: Spec, op: OpView) -> tuple[Spec | None, ...]:
        require_rank("lengths", lengths, 1)
        if len(op.outputs) != 1 + len(features):
            raise OperatorError("", f"has {len(op.outputs)} outputs for {len(features)} features")
        for i, spec in enumerate(features):
            if not spec.shape:
                raise OperatorError(f"input {i + 1} ('{op.input(i + 1)}')", "is a scalar")
        return (lengths, *(None for _ in features))

    def reference(lengths: Array, *features: Array, op: OpView) -> tuple[Array, ...]:
        starts = _starts("lengths", lengths, len(features[0]) if features else int(lengths.sum()))
        where = starts[:-1][lengths == 0]
        found = [np.maximum(lengths, 1)]
        for i, rows in enumerate(features):
            if len(rows) != starts[-1]:
                problem = f"has shape {rows.shape}; lengths sums to {starts[-1]}"
                raise OperatorError(f"input {i + 1} ('{op.input(i + 1)}')", problem)
            empty = b"" if rows.dtype == object else 0
            found.append(np.insert(rows, where, empty, axis=0))
        return tuple(found)
