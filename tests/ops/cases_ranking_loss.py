"""Harness cases of losses of orders and maps, and of measures of predictions."""

import numpy as np

from caffe2.testing import Bad, Case, distinct, exactly, floats, integers, labels, probabilities
from caffe2.testing.cases import any_shape

F4, I4 = np.float32, np.int32
LISTS = I4([3, 0, 1, 5])

FC = [
    case
    for title, x, w, args in (
        ("", ("N", "K"), ("K", "C"), {}),
        ("axes", ("N", 2, 6), (3, 2, 5), {"axis": 2, "axis_w": 2}),
    )
    for case in (
        Case("FCTransposed", title=title, args=args, X=floats(*x), W=floats(*w), b=floats(w[-1])),
        Case(
            "FCTransposedGradient",
            title=title,
            args=args,
            outputs=3,
            X=floats(*x),
            W=floats(*w),
            dY=floats(*x[:-1], w[-1]),
            mismatch={"X": 0},
        ),
    )
]


def map_loss(title, args, weighted):
    """SpatialSoftmaxWithLoss and its gradient, with points that do not count."""
    weights = {"weight_tensor": floats("N", 2, 3, low=0.5, high=2)} if weighted else {}
    x = floats("N", 4, 2, 3, low=-9, high=9)
    y = integers("N", 2, 3, low=-1, high=3, dtype="i4")
    shares = [floats("N", 4, 2, 3, low=0, high=1), exactly(1.5, F4)]
    names = ["weight_tensor_or_softmax", "softmax_or_loss_grad", "loss_grad"]
    inputs = dict(zip(names, [*weights.values(), *shares], strict=False))
    return [
        Case(
            "SpatialSoftmaxWithLoss",
            title=title,
            args=args,
            loss=1,
            no_gradient=list(weights),
            logits=x,
            labels=y,
            **weights,
            bad=[Bad("a label too large", {"labels": np.full((2, 2, 3), 4, I4)})],
        ),
        Case(
            "SpatialSoftmaxWithLossGradient", title=title, args=args, logits=x, labels=y, **inputs
        ),
    ]


MAPS = [*map_loss("", {}, False), *map_loss("weights", {"scale": 2.5}, True)]

BATCH_AVERAGE = {
    "args": {"average_by_batch_size": 1},
    "title": "average by batch",
    "logits": floats("N", 3),
    "labels": labels("N", classes=3),
    "mismatch": {"logits": 0},
}
SOFTMAX = [
    Case(
        "SoftmaxWithLoss",
        **BATCH_AVERAGE,
        loss=1,
        no_gradient=["weight_tensor"],
        weight_tensor=floats("N", low=0.5, high=2),
    ),
    Case(
        "SoftmaxWithLossGradient",
        **BATCH_AVERAGE,
        weight_tensor_or_softmax=floats("N", low=0.5, high=2),
        softmax_or_loss_grad=probabilities("N", 3),
        loss_grad=exactly(1.5, F4),
    ),
]

MARGINS = [
    Case(
        "MarginRankingCriterion",
        title=title,
        args={"margin": margin},
        X1=floats("N", low=1, high=2),
        X2=floats("N", low=0, high=0.9),
        Y=integers("N", low=-1, high=1, dtype="i4"),
    )
    for title, margin in (("", 3.0), ("negative", -0.05))
] + [
    Case(
        "MarginRankingCriterionGradient",
        X1=floats("N"),
        X2=floats("N"),
        Y=integers("N", low=-1, high=1, dtype="i4"),
        dloss=floats("N"),
    ),
    Case(
        "CosineEmbeddingCriterion",
        args={"margin": 0.5},
        S=floats("N", away=0.1),
        Y=integers("N", low=0, high=1, dtype="i4"),
    ),
    Case(
        "CosineEmbeddingCriterionGradient",
        args={"margin": -0.5},
        S=floats("N"),
        Y=integers("N", low=0, high=1, dtype="i4"),
        dloss=floats("N"),
    ),
]

RANKS = integers(9, low=0, high=3, dtype="f4")
WRONG_LISTS = [
    Bad("lengths that sum to less", {"lengths": I4([3, 0, 1, 4])}),
    Bad("a negative length", {"lengths": I4([10, 0, 0, -1])}),
]
WRONG_SESSIONS = [
    Bad("lengths that sum to more", {"session_lengths": I4([3, 0, 1, 6])}),
    Bad("a negative length", {"session_lengths": I4([10, 0, 0, -1])}),
]
LISTWISE = [
    Case("PairWiseLoss", no_gradient=["label"], X=floats("N"), label=floats("N")),
    Case(
        "PairWiseLoss", title="column", no_gradient=["label"], X=floats(5, 1, 1), label=floats(5, 1)
    ),
    Case(
        "PairWiseLoss",
        title="lists",
        no_gradient=["label"],
        X=floats(9),
        label=RANKS,
        lengths=exactly(LISTS),
        bad=WRONG_LISTS,
    ),
    Case(
        "PairWiseLossGradient",
        X=floats(9),
        label=RANKS,
        dY=floats(4),
        lengths=exactly(LISTS),
        bad=WRONG_LISTS,
    ),
    *(
        Case(
            "LambdaRankNdcg",
            title=" ".join(args),
            args=args,
            gradient=False,
            y=distinct(9),
            r=RANKS,
            session_lengths=exactly(LISTS),
            bad=WRONG_SESSIONS,
        )
        for args in (
            {},
            {"use_idcg_normalization": 0},
            {"use_ndcg_as_loss": 1, "use_exp_gain": 0},
        )
    ),
    Case(
        "LambdaRankNdcgGradient",
        y=floats(9),
        session_lengths=exactly(LISTS),
        dy_cache=floats(9),
        dloss=floats(4),
        bad=WRONG_SESSIONS,
    ),
]

PADDED = [
    case
    for title, args, x, y in (
        ("", {"pad_value": 0.5}, 6, 4),
        ("shorter first", {"pad_value": 0.5}, 3, 5),
        ("repeated", {"replicate": 1}, 2, 6),
    )
    for inputs in [{"X": floats("N", x), "Y": floats("N", y)}]
    for common in [{"title": title, "args": args, "mismatch": {"X": 0, "Y": 0}}]
    for case in (
        Case(
            "DotProductWithPadding",
            **common,
            **inputs,
            bad=[Bad("no multiple", {"Y": np.ones((2, 7), F4)}, args={"replicate": 1})],
        ),
        Case("DotProductWithPaddingGradient", **common, **inputs, dZ=floats("N")),
    )
]

DIVERGENCE = [
    Case(
        "BernoulliJSD",
        no_gradient=["T"],
        X=floats(any_shape, low=0.1, high=0.9),
        T=floats(any_shape, low=0, high=1),
    ),
    Case(
        "BernoulliJSDGradient",
        dL=floats(any_shape),
        X=floats(any_shape, low=-0.1, high=1.1),
        T=floats(any_shape, low=0, high=1),
    ),
]

MEASURES = [
    Case(
        "MultiClassAccuracy",
        prediction=distinct("N", "C"),
        labels=labels("N", classes="C"),
        mismatch={"prediction": 0},
        bad=[Bad("a label too large", {"labels": I4([0, 3])})],
    ),
    Case("Perplexity", probabilities=floats(any_shape, low=0.01, high=1)),
    Case(
        "APMeter",
        args={"buffer_size": 9},
        predictions=distinct("N", 3),
        labels=integers("N", 3, low=0, high=1, dtype="i4"),
        bad=[Bad("a label of 2", {"labels": np.full((2, 3), 2, I4)})],
    ),
]

CASES = [
    *FC,
    *MAPS,
    *SOFTMAX,
    *MARGINS,
    *LISTWISE,
    *PADDED,
    *DIVERGENCE,
    *MEASURES,
]
LOOSER = {"SpatialSoftmaxWithLossGradient": "four or five inputs"}
