# mypy: disable-error-code="misc, no-any-return"
"""Values as numbers of buckets, ids as hashes, and values that occur again."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import INT32_MAX, INT64_MAX, INT64_MIN, Floats, Int, OperatorError
from caffe2.ops.datatypes import DOUBLE, FLOAT, INT32, INTS, STRING
from caffe2.ops.declaration import SHOULD_NOT_DO_GRADIENT, Array, OpView, Spec, operator
from caffe2.ops.shapes import require_rank

_FLOAT, _INT32 = np.dtype(np.float32), np.dtype(np.int32)


@operator(
    "Bucketize",
    inputs="data",
    outputs="output",
    args={"boundaries": Floats()},
    types={"data": FLOAT},
)
class Bucketize:
    """output = how many of the boundaries are less than each element.

    data: float, any shape.  boundaries: in ascending order.  output: int32, shaped like data; for
    NaN 0.
    """

    def shape(data: Spec, op: OpView) -> Spec:
        boundaries = op.args.boundaries
        if list(boundaries) != sorted(boundaries):
            raise OperatorError("argument 'boundaries'", f"is {boundaries}, not in ascending order")
        return Spec(data.shape, _INT32)

    def reference(data: Array, op: OpView) -> Array:
        boundaries = np.array(op.args.boundaries, dtype=_FLOAT)
        return (data[..., np.newaxis] > boundaries).sum(axis=-1, dtype=_INT32)


@operator(
    "BatchBucketOneHot",
    inputs="data lengths boundaries",
    outputs="output",
    types={"data": FLOAT, "lengths": INT32, "boundaries": FLOAT},
)
class BatchBucketOneHot:
    """output = for each column of data one-hot values of the bucket that the element falls into.

    data: float (rows, columns).
    lengths: int32 (columns), at least 1, how many boundaries each column has.
    boundaries: float, 1-d, those of the first column first, each in ascending order.
    output: float (rows, boundaries + columns).  The bucket is the number of boundaries that are
    less than the element; of equal ones half count, rounded down, so that a boundary given twice
    has a bucket of its own.  Column f has lengths[f] + 1 buckets.
    """

    def shape(data: Spec, lengths: Spec, boundaries: Spec) -> Spec:
        require_rank("data", data, 2)
        require_rank("boundaries", boundaries, 1)
        if lengths.shape != data.shape[1:]:
            raise OperatorError("lengths", f"has shape {lengths.shape}; data has {data.shape}")
        return Spec((data.shape[0], boundaries.shape[0] + lengths.shape[0]), _FLOAT)

    def reference(data: Array, lengths: Array, boundaries: Array) -> Array:
        sizes = lengths.astype(np.int64)
        if sizes.min(initial=1) < 1:
            raise OperatorError("lengths", f"holds {sizes.min()}; each is at least 1")
        if sizes.sum() != len(boundaries):
            problem = f"sums to {sizes.sum()}; there are {len(boundaries)} boundaries"
            raise OperatorError("lengths", problem)
        output = np.zeros((len(data), len(boundaries) + len(sizes)), dtype=_FLOAT)
        start = 0
        for column, size in enumerate(sizes):
            own = boundaries[start - column :][:size]
            if not (own[:-1] <= own[1:]).all():
                raise OperatorError("boundaries", f"of column {column} are not in ascending order")
            values = data[:, column, np.newaxis]
            buckets = start + ((values > own).sum(axis=1) + (values >= own).sum(axis=1)) // 2
            output[np.arange(len(data)), buckets] = 1
            start += size + 1
        return output


@operator(
    "IndexHash",
    inputs="Indices",
    outputs="HashedIndices",
    args={
        "seed": Int(0, min=INT64_MIN, max=INT64_MAX),
        "modulo": Int(required=True, min=1, max=INT64_MAX),
    },
    types={"Indices": INTS},
    inplace=[(0, 0)],
)
class IndexHash:
    """HashedIndices = a hash of each index, 0 <= h < modulo.

    Indices, HashedIndices: int32 or int64, any shape; modulo fits into their type.
    seed: other ones give other hashes.  The hash begins with seed * 0xDEADBEEF and for each byte
    of the index, lowest first and signed, becomes itself * 65537 + byte, in the type of the index.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(Indices: Spec, op: OpView) -> Spec:
        if Indices.dtype == np.int32 and op.args.modulo > INT32_MAX:
            raise OperatorError("argument 'modulo'", f"is {op.args.modulo}, which is no int32")
        return Indices

    def reference(Indices: Array, op: OpView) -> Array:
        size = Indices.dtype.itemsize
        unsigned = np.dtype(f"u{size}")
        bits = np.ascontiguousarray(Indices).astype(f"<i{size}").reshape(-1, 1)
        start = op.args.seed * 0xDEADBEEF % (1 << 8 * size)
        hashes = np.full(Indices.size, start, dtype=unsigned)
        for byte in bits.view(np.int8).reshape(-1, size).T:
            hashes = hashes * unsigned.type(65537) + byte.astype(Indices.dtype).view(unsigned)
        return (hashes.view(Indices.dtype) % op.args.modulo).reshape(Indices.shape)


@operator(
    "FindDuplicateElements",
    inputs="data",
    outputs="indices",
    types={"data": FLOAT | DOUBLE | INTS | STRING},
)
class FindDuplicateElements:
    """indices = the places of the elements that are equal to an earlier one.

    data: float, double, int32, int64 or strings, 1-d.  indices: int64, 1-d.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(data: Spec) -> None:
        require_rank("data", data, 1)

    def reference(data: Array) -> Array:
        seen: set[object] = set()
        found = []
        for place, value in enumerate(data.tolist()):
            if value in seen:
                found.append(place)
            seen.add(value)
        return np.array(found, dtype=np.int64)
