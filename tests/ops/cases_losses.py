"""Harness cases of distances and losses."""

import numpy as np

from caffe2.testing import Bad, Case, floats, probabilities

F4, I4 = np.float32, np.int32
MATRIX = {"N": (7, 0, 1, 33), "C": (17, 7, 65)}


def distance(type):
    """A distance of rows, apart enough to have a derivative, and its gradient."""
    x, y = floats("N", "C", low=1, high=2), floats("N", "C", low=-2, high=0.5)
    return [
        Case(type, sizes=MATRIX, X=x, Y=y),
        Case(
            type, title="deep", X=floats("N", "C", 2, low=1, high=2), Y=floats("N", "C", 2, high=0)
        ),
        Case(f"{type}Gradient", sizes=MATRIX, X=x, Y=y, dZ=floats("N")),
    ]


DISTANCES = [
    case
    for type in ("DotProduct", "SquaredL2Distance", "L1Distance", "CosineSimilarity")
    for case in distance(type)
] + [Case("DotProduct", title="vectors", X=floats(5), Y=floats(5))]


def logit_loss(type, **more):
    """A loss of logits with the arguments it may have, and its gradient."""
    x, t = floats("N", "C", low=-9, high=9), floats("N", "C", low=0, high=1)
    still = ["targets", *more]
    variants = [{}] if more else [{}, {"log_D_trick": 1}, {"unjoined_lr_loss": 1}]
    both = [] if more else [Bad("both", args={"log_D_trick": 1, "unjoined_lr_loss": 1})]
    return [
        Case(
            type,
            title="scalar",
            logits=floats(),
            targets=floats(),
            no_gradient=still,
            **{name: floats() for name in more},
        ),
        *(
            case
            for args in variants
            for common in [{"args": args, "title": " ".join(args), "sizes": MATRIX, "bad": both}]
            for case in (
                Case(type, **common, no_gradient=still, logits=x, targets=t, **more),
                Case(f"{type}Gradient", **common, g=floats("N"), logits=x, targets=t, **more),
            )
        ),
    ]


ENTROPIES = [
    Case(
        "CrossEntropy",
        sizes=MATRIX,
        no_gradient=["label"],
        X=probabilities("N", "C"),
        label=probabilities("N", "C"),
    ),
    Case(
        "CrossEntropyGradient",
        sizes=MATRIX,
        X=probabilities("N", "C"),
        label=probabilities("N", "C"),
        dY=floats("N"),
    ),
    Case(
        "MakeTwoClassGradient", dY=floats("N", 2), bad=[Bad("3 classes", {"dY": F4([[1, 2, 3]])})]
    ),
    *logit_loss("SigmoidCrossEntropyWithLogits"),
    *logit_loss("WeightedSigmoidCrossEntropyWithLogits", weights=floats("N", "C")),
]

CASES = [*DISTANCES, *ENTROPIES]
