# mypy: disable-error-code="misc, no-any-return"
"""Rows in another order, taken out, and found by value."""

from __future__ import annotations

from typing import Any

import numpy as np

from caffe2.ops.arguments import Int, OperatorError
from caffe2.ops.datatypes import FLOAT, INT32, INT64, INTS
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import (
    require_dimensions,
    require_rank,
    require_same_types,
    require_single,
)


def _require_permutation(indices: Array) -> None:
    if not np.array_equal(np.sort(indices), np.arange(indices.size)):
        raise OperatorError("indices", f"is no permutation of 0 to {indices.size - 1}")


def _permuted(rows: Spec, indices: Spec) -> Spec:
    if indices.shape != rows.shape[:1] or not rows.shape:
        raise OperatorError("indices", f"has shape {indices.shape}; the rows are {rows.shape}")
    return rows


@operator("BatchPermutation", inputs="X indices", outputs="Y", types={"X": FLOAT, "indices": INT32})
class BatchPermutation:
    """Y[j] = X[indices[j]].

    X, Y: float, at least 1-d.  indices: int32, a permutation of the numbers of the rows.
    """

    def shape(X: Spec, indices: Spec) -> Spec:
        return _permuted(X, indices)

    def reference(X: Array, indices: Array) -> Array:
        _require_permutation(indices)
        return X[indices]

    def gradient(op: GradientContext) -> Any:
        return op.make("BatchPermutationGradient", [op.input(1), op.grad(0)], [op.input_grad(0)])


@operator(
    "BatchPermutationGradient",
    inputs="indices dY",
    outputs="dX",
    types={"indices": INT32, "dY": FLOAT},
)
class BatchPermutationGradient:
    """dX[indices[j]] = dY[j].

    dY, dX: float, at least 1-d.  indices: int32, a permutation of the numbers of the rows.
    """

    def shape(indices: Spec, dY: Spec) -> Spec:
        return _permuted(dY, indices)

    def reference(indices: Array, dY: Array) -> Array:
        _require_permutation(indices)
        dX = np.empty_like(dY)
        dX[indices] = dY
        return dX


@operator("RemoveDataBlocks", inputs="data indices", outputs="shrunk_data", types={"indices": INTS})
class RemoveDataBlocks:
    """shrunk_data = data without the rows that indices name.

    data: any type, at least 1-d.  indices: int32 or int64, 1-d, 0 <= i < rows of data, in any
    order; one may be there several times.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(data: Spec, indices: Spec) -> None:
        require_dimensions("data", data, 1)
        require_rank("indices", indices, 1)

    def reference(data: Array, indices: Array) -> Array:
        if indices.size and not (indices.min() >= 0 and indices.max() < len(data)):
            problem = f"holds {indices.min()} to {indices.max()}; data has {len(data)} rows"
            raise OperatorError("indices", problem)
        return np.delete(data, indices, axis=0)


@operator(
    "Find",
    inputs="index query",
    outputs="query_indices",
    args={"missing_value": Int(-1)},
    types={"index": INTS, "query": INTS},
)
class Find:
    """query_indices[j] = the last place of query[j] in index, or missing_value.

    index, query: int32 or int64, both the same, any shapes; index counts as 1-d.
    query_indices: int32 with the shape of query.
    """

    def shape(index: Spec, query: Spec, op: OpView) -> Spec:
        require_same_types((index, query), op)
        return Spec(query.shape, np.dtype(np.int32))

    def reference(index: Array, query: Array, op: OpView) -> Array:
        places = {value: place for place, value in enumerate(index.reshape(-1).tolist())}
        found = [places.get(value, op.args.missing_value) for value in query.reshape(-1).tolist()]
        return np.array(found, dtype=np.int32).reshape(query.shape)


@operator(
    "SegmentOneHot",
    inputs="lengths indices index_size_tensor",
    outputs="one_hots",
    types={"lengths": INT32, "indices": INT64, "index_size_tensor": INT64},
)
class SegmentOneHot:
    """one_hots[k, i] = 1 for each index i of segment k, all else 0.

    lengths: int32, 1-d, not negative; they sum to the number of indices.
    indices: int64, 1-d, 0 <= i < size.  index_size_tensor: int64 with one element, the size.
    one_hots: float (segments, size).
    """

    gradient = NO_GRADIENT

    def shape(lengths: Spec, indices: Spec, index_size_tensor: Spec) -> None:
        require_rank("lengths", lengths, 1)
        require_rank("indices", indices, 1)
        require_single("index_size_tensor", index_size_tensor)

    def reference(lengths: Array, indices: Array, index_size_tensor: Array) -> Array:
        width = int(index_size_tensor.reshape(()))
        if indices.size and not (indices.min() >= 0 and indices.max() < width):
            problem = f"holds {indices.min()} to {indices.max()}; allowed is [0, {width})"
            raise OperatorError("indices", problem)
        if min(lengths.min(initial=0), width) < 0 or lengths.sum(dtype=np.int64) != indices.size:
            problem = f"is {lengths.tolist()} for {indices.size} indices, size {width}"
            raise OperatorError("lengths", problem)
        one_hots = np.zeros((len(lengths), width), dtype=np.float32)
        one_hots[np.repeat(np.arange(len(lengths)), lengths), indices] = 1
        return one_hots


@operator(
    "BatchOneHot",
    inputs="data lengths values",
    outputs="output",
    types={"data": INTS, "lengths": INT32, "values": INTS},
)
class BatchOneHot:
    """output[i, p] = whether data[i, k] is values[p], where p belongs to column k.

    data: int32 or int64 (rows, columns).  lengths: int32, one for each column: how many of values
    belong to it.  values: data's type, 1-d, those of the columns in turn.
    output: data's type, 0 or 1, (rows, number of values).
    """

    gradient = NO_GRADIENT

    def shape(data: Spec, lengths: Spec, values: Spec) -> Spec:
        require_rank("data", data, 2)
        require_rank("values", values, 1)
        if lengths.shape != data.shape[1:]:
            raise OperatorError("lengths", f"has shape {lengths.shape}; data has {data.shape}")
        if values.dtype != data.dtype:
            raise OperatorError("values", f"is {values.dtype}; data is {data.dtype}")
        return Spec((data.shape[0], values.shape[0]), data.dtype)

    def reference(data: Array, lengths: Array, values: Array) -> Array:
        if lengths.min(initial=0) < 0 or lengths.sum(dtype=np.int64) != values.size:
            raise OperatorError("lengths", f"is {lengths.tolist()}; there are {values.size} values")
        return (np.repeat(data, lengths, axis=1) == values).astype(data.dtype)
