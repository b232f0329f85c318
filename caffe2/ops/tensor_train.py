# mypy: disable-error-code="misc, no-any-return"
"""Matrices and tables in the tensor-train format: a product of small cores (Oseledets, 2011,
"Tensor-Train Decomposition")."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from caffe2.ops.arguments import Int, Ints, OperatorError
from caffe2.ops.datatypes import FLOAT, INT32, INT64
from caffe2.ops.declaration import (
    GRADIENT_NOT_IMPLEMENTED,
    Array,
    GradientContext,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank

_INT64 = np.dtype(np.int64)


def _core_shapes(args: SimpleNamespace) -> list[tuple[int, int, int, int]]:
    """(input, rank behind, rank before, output) of each core; OperatorError for lists that do not
    go together."""
    inputs, outputs, ranks = args.inp_sizes, args.out_sizes, args.tt_ranks
    if not inputs or len(outputs) != len(inputs) or len(ranks) != len(inputs) + 1:
        problem = f"are {inputs}, {outputs} and {ranks}; needed are n, n and n + 1 numbers"
        raise OperatorError("arguments inp_sizes, out_sizes, tt_ranks", problem)
    if ranks[0] != 1 or ranks[-1] != 1:
        raise OperatorError("argument 'tt_ranks'", f"is {ranks}; the first and last are 1")
    return list(zip(inputs, ranks[1:], ranks[:-1], outputs, strict=True))


@operator(
    "TT",
    inputs="X b cores",
    outputs="Y",
    args={"inp_sizes": Ints(min=1), "out_sizes": Ints(min=1), "tt_ranks": Ints(min=1)},
    types={"X": FLOAT, "b": FLOAT, "cores": FLOAT},
)
class TT:
    """A fully connected layer whose weights are in the tensor-train format (Novikov et al., 2015,
    arXiv 1509.06569): Y = X W + b.

    X: float (N, product of inp_sizes).  b: float (product of out_sizes,).
    cores: float, all cores, the last one first, each (inp_sizes[k], tt_ranks[k + 1], tt_ranks[k],
    out_sizes[k]).  Y: float (N, product of out_sizes).
    tt_ranks: one more than there are cores; the first and the last are 1.
    (The original mixes up the rows of X where there are several.)
    """

    gradient = GRADIENT_NOT_IMPLEMENTED

    def shape(X: Spec, b: Spec, cores: Spec, op: OpView) -> Spec:
        shapes = _core_shapes(op.args)
        require_rank("X", X, 2)
        taken, given = math.prod(op.args.inp_sizes), math.prod(op.args.out_sizes)
        if X.shape[1] != taken:
            raise OperatorError("X", f"has shape {X.shape}; {taken} columns are needed")
        if b.shape != (given,):
            raise OperatorError("b", f"has shape {b.shape}; ({given},) is needed")
        if math.prod(cores.shape) != sum(map(math.prod, shapes)):
            problem = f"has shape {cores.shape}; {sum(map(math.prod, shapes))} elements are needed"
            raise OperatorError("cores", problem)
        return Spec((X.shape[0], given), X.dtype)

    def reference(X: Array, b: Array, cores: Array, op: OpView) -> Array:
        shapes = _core_shapes(op.args)
        wide, at = cores.reshape(-1).astype(np.float64), 0
        # (rows, inputs that are left, rank, outputs so far)
        found = X.astype(np.float64).reshape(len(X), X.shape[1], 1, 1)
        for shape in reversed(shapes):
            core = wide[at : at + math.prod(shape)].reshape(shape)
            at += math.prod(shape)
            left, given = found.shape[1] // shape[0], found.shape[3]
            found = found.reshape(len(X), left, shape[0], shape[1], given)
            found = np.einsum("nlirt,irqo->nlqot", found, core)
            found = found.reshape(len(X), left, shape[2], shape[3] * given)
        return (found.reshape(len(X), math.prod(op.args.out_sizes)) + b).astype(X.dtype)


@operator(
    "TTSparseLengthsSum",
    inputs="core0 core1 core2 index lengths",
    outputs="OUTPUT core0_output core1_output indices",
    helpers=[1, 2, 3],
    args={
        "factor_i": Ints(min=1),
        "factor_j": Ints(min=1),
        "ranks": Ints(min=1),
        "emb_size": Int(64, min=1),
    },
    types={**dict.fromkeys(("core0", "core1", "core2"), FLOAT), "index": INT64, "lengths": INT32},
)
class TTSparseLengthsSum:
    """SparseLengthsSum of a table in the tensor-train format with three cores (Yin et al., 2021,
    arXiv 2101.11714).

    Row (i0 * factor_i[1] + i1) * factor_i[2] + i2 of the table is the product of core0[i0],
    core1[i1] and core2[i2].
    core_k: float (factor_i[k], ranks[k], factor_j[k], ranks[k + 1]); ranks is 1, r1, r2, 1.
    index: int64 (n,).  lengths: int32 (segments,), which sum to n.
    emb_size: columns of the table, the product of factor_j.
    OUTPUT: float (segments, emb_size).  What the gradient needs: core0_output (n, factor_j[0], r1)
    and core1_output (n, factor_j[0] * factor_j[1], r2), products so far, and indices, int64 (n, 3).
    """

    def shape(
        core0: Spec, core1: Spec, core2: Spec, index: Spec, lengths: Spec, op: OpView
    ) -> tuple[Spec, ...]:
        args = op.args
        if len(args.factor_i) != 3 or len(args.factor_j) != 3 or len(args.ranks) != 4:
            problem = f"are {args.factor_i}, {args.factor_j}, {args.ranks}"
            raise OperatorError("arguments factor_i, factor_j, ranks", problem)
        if math.prod(args.factor_j) != args.emb_size or args.ranks[0] != 1 or args.ranks[3] != 1:
            problem = f"is {args.emb_size}; factor_j is {args.factor_j}, ranks {args.ranks}"
            raise OperatorError("argument 'emb_size'", problem)
        for k, core in enumerate((core0, core1, core2)):
            needed = (args.factor_i[k], args.ranks[k], args.factor_j[k], args.ranks[k + 1])
            if core.shape != needed:
                raise OperatorError(f"core{k}", f"has shape {core.shape}; {needed} is needed")
        require_rank("index", index, 1)
        require_rank("lengths", lengths, 1)
        n, (j0, j1, _) = index.shape[0], args.factor_j
        return (
            Spec((lengths.shape[0], args.emb_size), core0.dtype),
            Spec((n, j0, args.ranks[1]), core0.dtype),
            Spec((n, j0 * j1, args.ranks[2]), core0.dtype),
            Spec((n, 3), _INT64),
        )

    def reference(
        core0: Array, core1: Array, core2: Array, index: Array, lengths: Array, op: OpView
    ) -> tuple[Array, ...]:
        rows = math.prod(op.args.factor_i)
        if ((index < 0) | (index >= rows)).any():
            raise OperatorError("index", f"holds {index.tolist()}; there are {rows} rows")
        segments = _segments(lengths, index.size)
        i0, i1, i2 = np.unravel_index(index, op.args.factor_i)
        first = core0[i0, 0]
        second = np.einsum("nib,nbjc->nijc", first, core1[i1]).reshape(
            index.size, math.prod(op.args.factor_j[:2]), op.args.ranks[2]
        )
        each = np.einsum("nsc,nck->nsk", second, core2[i2, ..., 0])
        found = np.zeros((lengths.size, op.args.emb_size))
        np.add.at(found, segments, each.reshape(index.size, op.args.emb_size))
        indices = np.stack([i0, i1, i2], axis=1).astype(np.int64)
        return found.astype(core0.dtype), first, second, indices

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(k) for k in (0, 1, 2, 4)] + [op.output(k) for k in (1, 2, 3)]
        outputs = [op.input_grad(k) for k in range(3)]
        return op.make("TTSparseLengthsSumGradient", [*inputs, op.grad(0)], outputs)


def _segments(lengths: Array, n: int) -> Array:
    if (lengths < 0).any() or lengths.sum(dtype=np.int64) != n:
        raise OperatorError("lengths", f"sums to {lengths.sum()}; there are {n} indices")
    return np.repeat(np.arange(lengths.size), lengths)


@operator(
    "TTSparseLengthsSumGradient",
    inputs="core0 core1 core2 lengths core0_output core1_output indices dY",
    outputs="dCore0 dCore1 dCore2",
    types={
        **dict.fromkeys(("core0", "core1", "core2", "core0_output", "core1_output", "dY"), FLOAT),
        "lengths": INT32,
        "indices": INT64,
    },
)
class TTSparseLengthsSumGradient:
    """The gradient of TTSparseLengthsSum for its cores.

    core0, core1, core2, lengths: its inputs; core0_output, core1_output, indices: its outputs.
    dY: float (segments, columns of the table).  dCore0, dCore1, dCore2: shaped as the cores.
    """

    def shape(
        core0: Spec,
        core1: Spec,
        core2: Spec,
        lengths: Spec,
        core0_output: Spec,
        core1_output: Spec,
        indices: Spec,
        dY: Spec,
    ) -> tuple[Spec, ...]:
        for name, spec in (("core0", core0), ("core1", core1), ("core2", core2)):
            require_rank(name, spec, 4)
        (_, _, j0, r1), (_, b, j1, r2), (_, c, j2, last) = (x.shape for x in (core0, core1, core2))
        if (core0.shape[1], b, c, last) != (1, r1, r2, 1):
            shapes = f"{core0.shape}, {core1.shape}, {core2.shape}"
            raise OperatorError("core1", f"does not go with the others: {shapes}")
        require_rank("indices", indices, 2)
        require_rank("lengths", lengths, 1)
        n = indices.shape[0]
        for name, spec, needed in (
            ("indices", indices, (n, 3)),
            ("core0_output", core0_output, (n, j0, r1)),
            ("core1_output", core1_output, (n, j0 * j1, r2)),
            ("dY", dY, (lengths.shape[0], j0 * j1 * j2)),
        ):
            if spec.shape != needed:
                raise OperatorError(name, f"has shape {spec.shape}; {needed} is needed")
        return core0, core1, core2

    def reference(
        core0: Array,
        core1: Array,
        core2: Array,
        lengths: Array,
        core0_output: Array,
        core1_output: Array,
        indices: Array,
        dY: Array,
    ) -> tuple[Array, ...]:
        segments = _segments(lengths, len(indices))
        sizes = np.array([len(core0), len(core1), len(core2)])
        if ((indices < 0) | (indices >= sizes)).any():
            raise OperatorError("indices", f"holds a row beyond the cores, which have {sizes}")
        i0, i1, i2 = indices.T
        n, (j0, j1, j2) = len(indices), (core0.shape[2], core1.shape[2], core2.shape[2])
        dy = dY[segments].reshape(n, j0 * j1, j2).astype(np.float64)
        second = core1_output.astype(np.float64)
        d_second = np.einsum("nsk,nck->nsc", dy, core2[i2, ..., 0])
        d_second = d_second.reshape(n, j0, j1, core1.shape[3])
        found = [np.zeros(core.shape) for core in (core0, core1, core2)]
        np.add.at(found[2], i2, np.einsum("nsc,nsk->nck", second, dy)[..., None])
        np.add.at(found[1], i1, np.einsum("nib,nijc->nbjc", core0_output, d_second))
        np.add.at(found[0], i0, np.einsum("nijc,nbjc->nib", d_second, core1[i1])[:, None])
        return tuple(each.astype(np.float32) for each in found)
