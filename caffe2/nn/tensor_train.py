"""Tensors as products of small ones, one for each dimension ("tensor train").

I. V. Oseledets, "Tensor-Train Decomposition", SIAM J. Sci. Comput. 33(5), 2011, algorithm 1.
"""

from __future__ import annotations

import math
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


def _require(inp_sizes: Sequence[int], out_sizes: Sequence[int], tt_ranks: Sequence[int]) -> None:
    if len(inp_sizes) != len(out_sizes) or len(tt_ranks) != len(inp_sizes) + 1:
        raise UsageError(
            f"there are {len(inp_sizes)} inp_sizes, {len(out_sizes)} out_sizes and"
            f" {len(tt_ranks)} tt_ranks; n, n and n + 1 are needed"
        )
    if tt_ranks[0] != 1 or tt_ranks[-1] != 1:
        raise UsageError(f"tt_ranks is {list(tt_ranks)}; the first and the last are 1")


def init_tt_cores(
    inp_sizes: Sequence[int],
    out_sizes: Sequence[int],
    tt_ranks: Sequence[int],
    seed: int = 1234,
) -> npt.NDArray[np.float32]:
    """Random cores, one behind the other in a float vector: normal numbers, each core but the last
    made orthogonal, all of one scale.  The same ones for the same seed."""
    _require(inp_sizes, out_sizes, tt_ranks)
    rng = np.random.RandomState(seed)
    count = len(inp_sizes)
    shapes = [(tt_ranks[k] * inp_sizes[k] * out_sizes[k], tt_ranks[k + 1]) for k in range(count)]
    cores = [rng.randn(*shape) for shape in shapes]
    for k in range(count - 1):
        cores[k], rest = np.linalg.qr(cores[k])
        cores[k + 1] = (rest @ cores[k + 1].reshape(tt_ranks[k + 1], -1)).reshape(shapes[k + 1])
    scale = 0.1 / (math.prod(inp_sizes) * math.prod(tt_ranks)) ** (1 / count)
    flat = np.concatenate([core.reshape(-1) for core in cores])
    return np.asarray(flat.astype(np.float32) * np.float32(scale))


def matrix_to_tt(
    W: npt.NDArray[np.floating],
    inp_sizes: Sequence[int],
    out_sizes: Sequence[int],
    tt_ranks: Sequence[int],
) -> npt.NDArray[np.float32]:
    """The cores that make of TT what FC does with the weights W, or the nearest to it that the
    ranks allow.

    W: (product of out_sizes, product of inp_sizes), as FC has it.  The cores: a float vector.
    """
    _require(inp_sizes, out_sizes, tt_ranks)
    if W.shape != (math.prod(out_sizes), math.prod(inp_sizes)):
        needed = (math.prod(out_sizes), math.prod(inp_sizes))
        raise UsageError(f"W has shape {W.shape}; {needed} is needed")
    count = len(inp_sizes)
    # From outputs..., inputs... to pairs (input, output).
    pairs = [axis for k in range(count) for axis in (count + k, k)]
    paired = W.reshape(*out_sizes, *inp_sizes).transpose(pairs)
    sizes = [taken * given for taken, given in zip(inp_sizes, out_sizes, strict=True)]
    cores, ends = tt_svd(paired, sizes, tt_ranks), [0]
    for k in range(count):
        ends.append(ends[-1] + tt_ranks[k] * sizes[k] * tt_ranks[k + 1])
    ordered = []
    for k in reversed(range(count)):
        shape = (tt_ranks[k], inp_sizes[k], out_sizes[k], tt_ranks[k + 1])
        core = cores[ends[k] : ends[k + 1]].reshape(shape)
        ordered.append(core.transpose(1, 3, 0, 2).reshape(-1))
    return np.concatenate(ordered).astype(np.float32)
