# mypy: disable-error-code="misc, no-any-return"
"""Losses of orders: MarginRankingCriterion, CosineEmbeddingCriterion, PairWiseLoss,
LambdaRankNdcg."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from caffe2.ops.arguments import Bool, Float, OperatorError
from caffe2.ops.datatypes import FLOAT, INT32
from caffe2.ops.declaration import Array, GradientContext, OpView, Spec, operator
from caffe2.ops.shapes import require_rank, require_same_shape, require_same_size, size


def _margin_excess(X1: Array, X2: Array, Y: Array, margin: float) -> tuple[Array, ...]:
    """Y and margin - Y * (X1 - X2), in float32 as the sign at the margin depends on it."""
    y = Y.reshape(-1).astype(np.float32)
    return y, np.float32(margin) - y * (X1.reshape(-1) - X2.reshape(-1))


@operator(
    "MarginRankingCriterion",
    inputs="X1 X2 Y",
    outputs="loss",
    args={"margin": Float(1.0)},
    types={"X1": FLOAT, "X2": FLOAT, "Y": INT32},
)
class MarginRankingCriterion:
    """loss = max(0, margin - Y * (X1 - X2)), element by element: Y says which is to be larger.

    X1, X2: float.  Y: int32, 1 where X1 is to be larger, -1 where X2 is.  Equally many elements.
    loss: float with the shape of X1.
    """

    def shape(X1: Spec, X2: Spec, Y: Spec) -> Spec:
        require_same_size("X2", X2, "X1", X1)
        require_same_size("Y", Y, "X1", X1)
        return X1

    def reference(X1: Array, X2: Array, Y: Array, op: OpView) -> Array:
        _, excess = _margin_excess(X1, X2, Y, op.args.margin)
        return np.maximum(excess, 0).reshape(X1.shape)

    def gradient(op: GradientContext) -> Any:
        return op.make(
            "MarginRankingCriterionGradient",
            [op.input(0), op.input(1), op.input(2), op.grad(0)],
            [op.input_grad(0), op.input_grad(1)],
        )


@operator(
    "MarginRankingCriterionGradient",
    inputs="X1 X2 Y dloss",
    outputs="dX1 dX2",
    args={"margin": Float(1.0)},
    types={"X1": FLOAT, "X2": FLOAT, "Y": INT32, "dloss": FLOAT},
)
class MarginRankingCriterionGradient:
    """dX1 = -Y * dloss where margin - Y * (X1 - X2) >= 0, else 0; dX2 = -dX1.

    X1, X2, Y: as for MarginRankingCriterion.  dloss: float with as many elements.
    dX1, dX2: float with the shapes of X1 and X2.
    """

    def shape(X1: Spec, X2: Spec, Y: Spec, dloss: Spec) -> tuple[Spec, Spec]:
        require_same_size("X2", X2, "X1", X1)
        require_same_size("Y", Y, "X1", X1)
        require_same_size("dloss", dloss, "X1", X1)
        return X1, X2

    def reference(X1: Array, X2: Array, Y: Array, dloss: Array, op: OpView) -> tuple[Array, Array]:
        y, excess = _margin_excess(X1, X2, Y, op.args.margin)
        dx = np.where(excess >= 0, -y * dloss.reshape(-1), np.float32(0))
        return dx.reshape(X1.shape), -dx.reshape(X2.shape)


@operator(
    "CosineEmbeddingCriterion",
    inputs="S Y",
    outputs="loss",
    args={"margin": Float(0.0)},
    types={"S": FLOAT, "Y": INT32},
)
class CosineEmbeddingCriterion:
    """loss = 1 - S where Y is 1, else max(0, S - margin): S is a cosine of two embeddings.

    S: float, any shape.  Y: int32 with as many elements, 1 for a pair that is alike.
    loss: float with the shape of S.
    """

    def shape(S: Spec, Y: Spec) -> Spec:
        require_same_size("Y", Y, "S", S)
        return S

    def reference(S: Array, Y: Array, op: OpView) -> Array:
        apart = np.maximum(S - np.float32(op.args.margin), 0)
        return np.where(Y.reshape(S.shape) == 1, 1 - S, apart)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.grad(0)]
        return op.make("CosineEmbeddingCriterionGradient", inputs, [op.input_grad(0)])


@operator(
    "CosineEmbeddingCriterionGradient",
    inputs="S Y dloss",
    outputs="dS",
    args={"margin": Float(0.0)},
    types={"S": FLOAT, "Y": INT32, "dloss": FLOAT},
)
class CosineEmbeddingCriterionGradient:
    """dS = -dloss where Y is 1; of the others dloss where S >= margin, else 0.

    S, Y: as for CosineEmbeddingCriterion.  dloss: float with as many elements.
    dS: float with the shape of S.
    """

    def shape(S: Spec, Y: Spec, dloss: Spec) -> Spec:
        require_same_size("Y", Y, "S", S)
        require_same_size("dloss", dloss, "S", S)
        return S

    def reference(S: Array, Y: Array, dloss: Array, op: OpView) -> Array:
        d = dloss.reshape(S.shape)
        apart = np.where(np.float32(op.args.margin) <= S, d, np.float32(0))
        return np.where(Y.reshape(S.shape) == 1, -d, apart)


def _check_pairs(X: Spec, label: Spec, lengths: Spec | None) -> int:
    """How many lists there are."""
    if len(label.shape) != 1 and (len(label.shape) != 2 or label.shape[1] != 1):
        raise OperatorError("label", f"has shape {label.shape}; (N,) or (N, 1) is needed")
    require_same_size("label", label, "X", X)
    if lengths is None:
        return min(size(X), 1)
    require_rank("lengths", lengths, 1)
    return lengths.shape[0]


def _lists(name: str, lengths: Array | None, rows: int) -> Iterator[slice]:
    """The rows of each list; without lengths all rows are one."""
    if lengths is None:
        yield from [slice(0, rows)] if rows else []
        return
    if (lengths < 0).any() or lengths.sum() != rows:
        problem = f"holds {lengths.tolist()}; lengths that sum to {rows} are needed"
        raise OperatorError(name, problem)
    ends = np.cumsum(lengths)
    for begin, end in zip(ends - lengths, ends, strict=True):
        yield slice(int(begin), int(end))


def _pair_signs(labels: Array) -> tuple[Array, int]:
    """sign(label[i] - label[j]), and the number of pairs of different labels."""
    signs = np.sign(labels[:, None] - labels[None, :])
    return signs, int(np.count_nonzero(signs > 0))


def _flat(array: Array) -> Array:
    return array.reshape(-1).astype(np.float64)


@operator(
    "PairWiseLoss",
    inputs="X label lengths?",
    outputs="Y",
    types={"X": FLOAT, "label": FLOAT, "lengths": INT32},
)
class PairWiseLoss:
    """Y = for each list, the mean of log(1 + exp(X[j] - X[i])) over all pairs with
    label[i] > label[j] (RankNet; Burges et al., 2005); 0 where there is no such pair.

    X: float, N elements in any shape.  label: float (N,) or (N, 1).
    lengths: int32 (L,), the lengths of lists that follow one another; one list when left out.
    Y: float (L,); (1,) without lengths, (0,) when N is 0 as well.
    """

    def shape(X: Spec, label: Spec, lengths: Spec | None) -> Spec:
        return Spec((_check_pairs(X, label, lengths),), X.dtype)

    def reference(X: Array, label: Array, lengths: Array | None) -> Array:
        losses = []
        for part in _lists("lengths", lengths, X.size):
            x = _flat(X)[part]
            signs, pairs = _pair_signs(_flat(label)[part])
            terms = np.logaddexp(0, x[None, :] - x[:, None])[signs > 0]
            losses.append(terms.sum() / max(pairs, 1))
        return np.asarray(losses, dtype=X.dtype)

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(1), op.grad(0), *op.inputs[2:]]
        return op.make("PairWiseLossGradient", inputs, [op.input_grad(0)])


@operator(
    "PairWiseLossGradient",
    inputs="X label dY lengths?",
    outputs="dX",
    types={"X": FLOAT, "label": FLOAT, "dY": FLOAT, "lengths": INT32},
)
class PairWiseLossGradient:
    """The gradient of PairWiseLoss with respect to X.

    X, label, lengths: as there.  dY: float, one for each list.  dX: float with the shape of X.
    """

    def shape(X: Spec, label: Spec, dY: Spec, lengths: Spec | None) -> Spec:
        lists = _check_pairs(X, label, lengths)
        require_same_size("dY", dY, "the result", Spec((lists,), X.dtype))
        return X

    def reference(X: Array, label: Array, dY: Array, lengths: Array | None) -> Array:
        dx = np.zeros(X.size)
        for part, dy in zip(_lists("lengths", lengths, X.size), _flat(dY), strict=True):
            x = _flat(X)[part]
            signs, pairs = _pair_signs(_flat(label)[part])
            pull = signs / (1 + np.exp(signs * (x[:, None] - x[None, :])))
            dx[part] = -pull.sum(axis=1) * dy / max(pairs, 1)
        return dx.astype(X.dtype).reshape(X.shape)


_NDCG_ARGS = {
    "use_ndcg_as_loss": Bool(False),
    "use_exp_gain": Bool(True),
    "use_idcg_normalization": Bool(True),
}


def _places(values: Array) -> Array:
    """The place of each value in descending order; equal ones keep their order."""
    places = np.empty(values.size, np.int64)
    places[np.argsort(-values, kind="stable")] = np.arange(values.size)
    return places


def _ndcg(y: Array, r: Array, op: OpView) -> tuple[float, Array]:
    """Loss of one session and its lambdas."""
    exponential = op.args.use_exp_gain or not op.args.use_ndcg_as_loss
    gains = 2**r if exponential else r
    discounts = 1 / np.log2(_places(y) + 2)
    ideal = float((gains / np.log2(_places(r) + 2)).sum())
    scale = 1.0
    if op.args.use_idcg_normalization:
        scale = 1 / ideal if ideal > 0 else 0.0
    change = np.abs((gains[:, None] - gains[None, :]) * (discounts[:, None] - discounts[None, :]))
    signs = np.where(r[:, None] > r[None, :], 1, -1)
    ahead = signs * (y[:, None] - y[None, :])
    lambdas = -(signs * change / (1 + np.exp(ahead))).sum(axis=1) * scale
    if op.args.use_ndcg_as_loss:
        return (ideal - float((gains * discounts).sum())) * scale, lambdas
    return float((change * np.logaddexp(0, -ahead)).sum()) * scale, lambdas


@operator(
    "LambdaRankNdcg",
    inputs="y r session_lengths",
    outputs="loss dy",
    helpers=[1],
    args=_NDCG_ARGS,
    types={"y": FLOAT, "r": FLOAT, "session_lengths": INT32},
)
class LambdaRankNdcg:
    """LambdaRank (Burges, 2010, MSR-TR-2010-82) for the measure NDCG: a loss for each session.

    G[i] is the gain of a document, D[i] = 1 / log2(2 + place) its discount at its place by y (by
    the order of equal ones), IDCG the sum of gains times discounts at the places by r.
        loss = sum over i, j of |G[i] - G[j]| |D[i] - D[j]| log(1 + exp(-(y[i] - y[j]))) / IDCG,
               over pairs in both orders, each with the better one as i
        dy   = the lambdas: half of what the derivative of this loss is while places stay

    y: float (N,), scores.  r: float (N,), relevances.
    session_lengths: int32 (S,), not negative, summing to N.
    loss: float (S,).  dy: float (N,).
    use_exp_gain: G = 2^r, else r; without use_ndcg_as_loss it is always 2^r.
    use_ndcg_as_loss: loss = (IDCG - DCG) / IDCG; dy stays.
    use_idcg_normalization: 0 leaves out the division by IDCG.  Nothing is lost where IDCG is 0.
    """

    def shape(y: Spec, r: Spec, session_lengths: Spec) -> tuple[Spec, Spec]:
        require_rank("y", y, 1)
        require_same_shape("r", r, "y", y)
        require_rank("session_lengths", session_lengths, 1)
        return Spec(session_lengths.shape, y.dtype), y

    def reference(y: Array, r: Array, session_lengths: Array, op: OpView) -> tuple[Array, Array]:
        losses, dy = np.zeros(session_lengths.size, y.dtype), np.zeros_like(y)
        for place, part in enumerate(_lists("session_lengths", session_lengths, y.size)):
            losses[place], dy[part] = _ndcg(_flat(y)[part], _flat(r)[part], op)
        return losses, dy

    def gradient(op: GradientContext) -> Any:
        inputs = [op.input(0), op.input(2), op.output(1), op.grad(0)]
        return op.make("LambdaRankNdcgGradient", inputs, [op.input_grad(0)])


@operator(
    "LambdaRankNdcgGradient",
    inputs="y session_lengths dy_cache dloss",
    outputs="dy",
    args=_NDCG_ARGS,
    types={"y": FLOAT, "session_lengths": INT32, "dy_cache": FLOAT, "dloss": FLOAT},
)
class LambdaRankNdcgGradient:
    """dy = dy_cache * the dloss of the session: the gradient of LambdaRankNdcg.

    y, session_lengths: as there.  dy_cache: float (N,), its output dy.  dloss: float (S,).
    dy: float (N,).
    """

    def shape(y: Spec, session_lengths: Spec, dy_cache: Spec, dloss: Spec) -> Spec:
        require_rank("y", y, 1)
        require_rank("session_lengths", session_lengths, 1)
        require_same_shape("dy_cache", dy_cache, "y", y)
        require_same_shape("dloss", dloss, "session_lengths", session_lengths)
        return y

    def reference(y: Array, session_lengths: Array, dy_cache: Array, dloss: Array) -> Array:
        dy = dy_cache.copy()
        for part, d in zip(_lists("session_lengths", session_lengths, y.size), dloss, strict=True):
            dy[part] *= d
        return dy
