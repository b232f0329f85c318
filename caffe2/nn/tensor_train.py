"""Tensors as products of small ones, one for each dimension ("tensor train").

I. V. Oseledets, "Tensor-Train Decomposition", SIAM J. Sci. Comput. 33(5), 2011, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from caffe2.graph.errors import UsageError


def tt_svd(
    W: npt.NDArray[np.floating], sizes: Sequence[int], tt_ranks: Sequence[int]
) -> npt.NDArray[np.float32]:
    """The cores of a tensor, all in one array, one after the other.

    W         the tensor, of any shape with as many values as `sizes` together
    sizes     its dimensions n_1 ... n_d
    tt_ranks  d + 1 ranks, the first and the last one 1: core k is (r_k, n_k, r_k+1); larger ranks
              are closer to W

    float32.  UsageError when the sizes do not fit together.
    """
    dims, ranks = [int(n) for n in sizes], [int(r) for r in tt_ranks]
    if len(ranks) != len(dims) + 1 or ranks[0] != 1 or ranks[-1] != 1:
        raise UsageError(f"{len(dims)} sizes take {len(dims) + 1} ranks from 1 to 1, not {ranks}")
    if int(np.prod(dims)) != W.size:
        raise UsageError(f"sizes {dims} do not make {W.size} values")
    cores, rest = [], np.asarray(W, np.float64)
    for index in range(len(dims) - 1):
        rest = rest.reshape(ranks[index] * dims[index], -1)
        left, scales, right = np.linalg.svd(rest, full_matrices=False)
        rank = ranks[index + 1]
        if rank > len(scales):
            raise UsageError(f"rank {rank} is more than the {len(scales)} that there can be")
        cores.append(left[:, :rank])
        rest = scales[:rank, None] * right[:rank]
    cores.append(rest)
    return np.concatenate([core.reshape(-1) for core in cores]).astype(np.float32)
