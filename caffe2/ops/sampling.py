# mypy: disable-error-code="misc, no-any-return"
"""Random choices: places drawn by weight, lists of ids dropped or replaced."""

from __future__ import annotations

import numpy as np

from caffe2.ops.arguments import INT64_MAX, INT64_MIN, Argument, Float, Int, OperatorError
from caffe2.ops.datatypes import FLOAT, INT32, INT64
from caffe2.ops.declaration import (
    NO_GRADIENT,
    SHOULD_NOT_DO_GRADIENT,
    Array,
    OpView,
    Spec,
    operator,
)
from caffe2.ops.shapes import require_rank, require_same_shape

_INT32 = np.dtype(np.int32)


@operator(
    "WeightedSample",
    inputs="sampling_weights sampling_values?",
    outputs="sampled_indexes sampled_values?",
    types={"sampling_weights": FLOAT, "sampling_values": FLOAT},
    kind="random",
)
class WeightedSample:
    """sampled_indexes = a column of each row, drawn with the probability weight / sum of the row;
    0 where the sum is 0.

    sampling_weights: float (N, columns), not negative.
    sampling_values: float of that shape, needed for sampled_values.
    sampled_indexes: int32 (N, 1).  sampled_values: float (N, 1), the values there.
    Both have the shape (0,) when there is no row or no column.
    """

    gradient = SHOULD_NOT_DO_GRADIENT

    def shape(
        sampling_weights: Spec, sampling_values: Spec | None, op: OpView
    ) -> tuple[Spec, Spec]:
        require_rank("sampling_weights", sampling_weights, 2)
        if sampling_values is not None:
            require_same_shape(
                "sampling_values", sampling_values, "sampling_weights", sampling_weights
            )
        if len(op.outputs) > len(op.inputs):
            raise OperatorError("sampled_values", "is wanted, but there are no sampling_values")
        shape = (0,) if 0 in sampling_weights.shape else (sampling_weights.shape[0], 1)
        return Spec(shape, _INT32), Spec(shape, np.dtype(np.float32))

    def reference(
        sampling_weights: Array, sampling_values: Array | None, op: OpView
    ) -> tuple[Array, ...]:
        weights = sampling_weights
        if not (weights >= 0).all():
            raise OperatorError("sampling_weights", "holds a number that is not 0 or more")
        if not weights.size:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        sums = np.cumsum(weights.astype(np.float64), axis=1)
        drawn = op.rng.random((len(weights), 1)) * sums[:, -1:]
        found = (sums <= drawn).sum(axis=1, keepdims=True)
        last = weights.shape[1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=1, keepdims=True)
        found = np.where(sums[:, -1:] > 0, np.minimum(found, last), 0).astype(np.int32)
        if sampling_values is None:
            return (found,)
        return found, np.take_along_axis(sampling_values, found.astype(np.int64), axis=1)


@operator(
    "WeightedMultiSampling",
    inputs="sampling_cdf shape_tensor?",
    outputs="sampled_indexes",
    args={"num_samples": Int(0, min=0, max=INT64_MAX)},
    types={"sampling_cdf": FLOAT},
    kind="random",
)
class WeightedMultiSampling:
    """sampled_indexes = places drawn by the cumulated weights sampling_cdf, with replacement.

    sampling_cdf: float (n,), rising; the last one is the sum of all weights.
    shape_tensor: its shape is that of the output; (num_samples,) when left out.
    sampled_indexes: int32; (0,) when sampling_cdf is empty.
    """

    def shape(sampling_cdf: Spec, shape_tensor: Spec | None, op: OpView) -> Spec:
        require_rank("sampling_cdf", sampling_cdf, 1)
        if sampling_cdf.shape == (0,):
            return Spec((0,), _INT32)
        shape = (op.args.num_samples,) if shape_tensor is None else shape_tensor.shape
        return Spec(shape, _INT32)

    def reference(sampling_cdf: Array, shape_tensor: Array | None, op: OpView) -> Array:
        if not sampling_cdf.size:
            return np.zeros(0, np.int32)
        shape = (op.args.num_samples,) if shape_tensor is None else shape_tensor.shape
        drawn = op.rng.random(shape) * sampling_cdf[-1]
        found = np.searchsorted(sampling_cdf, drawn, side="left")
        return np.minimum(found, sampling_cdf.size - 1).astype(np.int32)


_DROPOUT: dict[str, Argument] = {
    "ratio": Float(0.0, min=0, max=1),
    "replacement_value": Int(0, min=INT64_MIN, max=INT64_MAX),
}


def _require_lists(X: Spec, Lengths: Spec) -> None:
    require_rank("X", X, 1)
    require_rank("Lengths", Lengths, 1)


def _check_sum(X: Array, Lengths: Array) -> None:
    if (Lengths < 0).any() or Lengths.sum(dtype=np.int64) != X.size:
        raise OperatorError("Lengths", f"sums to {Lengths.sum()}; X has shape {X.shape}")


@operator(
    "SparseDropoutWithReplacement",
    inputs="X Lengths",
    outputs="Y OutputLengths",
    args=_DROPOUT,
    types={"X": INT64, "Lengths": INT32},
    kind="random",
)
class SparseDropoutWithReplacement:
    """Replaces, with probability `ratio`, the list of an example by replacement_value alone.

    X: int64 (n,), the ids of all lists.  Lengths: int32 (N,).
    Y: int64, the ids of all new lists.  OutputLengths: int32 (N,).
    """

    gradient = NO_GRADIENT

    def shape(X: Spec, Lengths: Spec) -> tuple[None, Spec]:
        _require_lists(X, Lengths)
        return None, Lengths

    def reference(X: Array, Lengths: Array, op: OpView) -> tuple[Array, Array]:
        _check_sum(X, Lengths)
        dropped = op.rng.random(Lengths.size) < op.args.ratio
        lists = np.split(X, np.cumsum(Lengths)[:-1]) if Lengths.size else []
        one = np.asarray([op.args.replacement_value], X.dtype)
        found = [one if drop else ids for drop, ids in zip(dropped, lists, strict=True)]
        return np.concatenate([X[:0], *found]), np.where(dropped, np.int32(1), Lengths)


@operator(
    "SparseItemwiseDropoutWithReplacement",
    inputs="X Lengths",
    outputs="Y OutputLengths",
    args=_DROPOUT,
    types={"X": INT64, "Lengths": INT32},
    kind="random",
)
class SparseItemwiseDropoutWithReplacement:
    """Replaces each id, with probability `ratio`, by replacement_value.

    X: int64 (n,), the ids of all lists.  Lengths: int32 (N,).
    Y: int64 (n,).  OutputLengths: int32 (N,), as Lengths.
    """

    gradient = NO_GRADIENT

    def shape(X: Spec, Lengths: Spec) -> tuple[Spec, Spec]:
        _require_lists(X, Lengths)
        return X, Lengths

    def reference(X: Array, Lengths: Array, op: OpView) -> tuple[Array, Array]:
        _check_sum(X, Lengths)
        dropped = op.rng.random(X.size) < op.args.ratio
        return np.where(dropped, np.int64(op.args.replacement_value), X), Lengths.copy()
