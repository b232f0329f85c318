# mypy: disable-error-code="misc, no-any-return"
"""Products of all pairs of vectors, of which some are taken."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import OperatorError
from caffe2.ops.datatypes import FLOAT, INT32
from caffe2.ops.declaration import Array, OpView, Spec, operator
from caffe2.ops.shapes import require_rank, require_same_shape


@operator(
    "ConcatBatchMatMulBatchGatherOp",
    inputs="indices vectors*",
    outputs="Y",
    types={"indices": INT32, "vectors": FLOAT},
)
class ConcatBatchMatMulBatchGatherOp:
    """Y[n, k] = vectors[i][n] . vectors[j][n], where i and j are indices[k] divided by the number
    of `vectors`, and the rest: how features meet in recommendation models (Naumov et al.,
    2019, arXiv 1906.00091).

    indices: int32 (pairs,).  vectors: at least one float tensor, all (rows, columns).
    Y: float (rows, pairs).  (The original also takes matrices of which each is one row.)
    """

    def shape(indices: Spec, *vectors: Spec, op: OpView) -> Spec:
        require_rank("indices", indices, 1)
        if not vectors:
            raise OperatorError("", "has no vectors, only indices")
        require_rank("vectors", vectors[0], 2)
        for index, spec in enumerate(vectors[1:], 2):
            require_same_shape(f"input {index}", spec, "vectors", vectors[0])
        return Spec((vectors[0].shape[0], *indices.shape), vectors[0].dtype)

    def reference(indices: Array, *vectors: Array, op: OpView) -> Array:
        count = len(vectors)
        if indices.size and not (indices.min() >= 0 and indices.max() < count * count):
            problem = f"holds {indices.min()} to {indices.max()}; there are {count * count} pairs"
            raise OperatorError("indices", problem)
        stacked = np.stack(vectors).astype(np.float64)
        products = (stacked[indices // count] * stacked[indices % count]).sum(axis=2)
        return products.T.astype(vectors[0].dtype)
