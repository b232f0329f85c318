"""Harness cases of distances and losses."""

from caffe2.testing import Case, floats

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

CASES = [*DISTANCES]
