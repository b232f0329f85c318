"""Harness cases of the reductions."""

import numpy as np

from caffe2.testing import Bad, Case, distinct, exactly, floats, integers, result_of

F4, I4 = np.float32, np.int32
SIZES = {"N": (7, 0, 1, 33), "C": (17, 1, 7, 65)}


def reduction(type, make=floats):
    """One operator and its gradient, over several axes."""
    cases = []
    for title, dims, args in (
        ("all", ("N", "C"), {}),
        ("rows", ("N", "C"), {"axes": [1]}),
        ("columns", ("N", "C"), {"axes": [-2], "keepdims": 0}),
        ("outer", ("N", 2, "C"), {"axes": [0, 2]}),
        ("inner", (2, "N", 3, "C"), {"axes": [3, 1], "keepdims": 0}),
    ):
        bad = [Bad("an axis too large", args={"axes": [4]})] if title == "all" else []
        common = {"title": title, "args": args, "sizes": SIZES}
        cases.append(Case(type, bad=bad, **common, X=make(*dims)))
        cases.append(
            Case(
                f"{type}Gradient",
                **common,
                mismatch={"X": None},
                dY=result_of("ReduceSum", "X", **args),
                X=make(*dims),
                Y=result_of(type, "X", **args),
            )
        )
    scalar = Case(type, title="scalar", X=make(), bad=[Bad("an axis", args={"axes": [0]})])
    wide = Case(type, title="double", args={"axes": [1]}, X=floats("N", "C", 2, dtype="f8"))
    return [*cases, scalar, wide]


AXES = [
    *reduction("ReduceSum"),
    *reduction("ReduceMean"),
    *reduction("ReduceMax", distinct),
    *reduction("ReduceMin", distinct),
    *reduction("ReduceL1", lambda *dims: floats(*dims, away=0.1)),
    *reduction("ReduceL2", lambda *dims: floats(*dims, away=0.1)),
    *(
        Case(
            type,
            title=dtype,
            args={"axes": [0, 2]},
            gradient=False,
            X=integers("N", 5, "C", dtype=dtype),
        )
        for type in ("ReduceSum", "ReduceMax", "ReduceMin")
        for dtype in ("i4", "i8")
    ),
    Case(
        "ReduceMaxGradient",
        title="ties",
        args={"axes": [1]},
        dY=integers("N", 1, dtype="i4"),
        X=integers("N", 5, low=0, high=2, dtype="i4"),
        Y=result_of("ReduceMax", "X", axes=[1]),
        mismatch={"X": None},
    ),
]


def fold(type, make=floats):
    """A reduction of the first or last dimensions and its gradient, with and without lengths."""
    front = "Front" in type
    count = ("C",) if front else ("N",)
    maximum = type.endswith("Max")
    name = "X" if maximum else "X_or_shape"
    y = {"Y": floats(*count)} if maximum else {}
    lengths = integers(*count, low=0, high=2, dtype="i4")
    common = {"sizes": {"N": (7, 2, 33), "C": (17, 2, 65)}}
    gradient = f"{type}Gradient"
    return [
        Case(type, sizes=SIZES, X=make("N", "C"), bad=[Bad("3 of 2", args={"num_reduce_dim": 3})]),
        Case(type, title="2", args={"num_reduce_dim": 2}, sizes=SIZES, X=make(3, "N", 2, "C")),
        Case(
            type,
            title="lengths",
            **common,
            X=make("N", "C"),
            lengths=lengths,
            mismatch={"X": 1 if front else 0},
            bad=[
                Bad("too long", {"lengths": np.full(2, 9, I4)}),
                Bad("negative", {"lengths": np.full(2, -1, I4)}),
                Bad("2 dimensions", args={"num_reduce_dim": 2}),
            ],
        ),
        Case(
            gradient,
            sizes=SIZES,
            mismatch={name: 1 if front else 0},
            dY=floats(*count),
            **{name: make("N", "C")},
            **y,
        ),
        Case(
            gradient,
            title="lengths",
            **common,
            mismatch={name: 1 if front else 0},
            dY=floats(*count),
            **{name: make("N", "C")},
            **y,
            lengths=lengths,
            bad=[Bad("too long", {"lengths": np.full(2, 9, I4)})],
        ),
    ]


FOLDS = [
    *fold("ReduceFrontSum"),
    *fold("ReduceBackSum"),
    *fold("ReduceFrontMean"),
    *fold("ReduceBackMean"),
    *fold("ReduceFrontMax", distinct),
    *fold("ReduceBackMax", distinct),
    Case("ReduceFrontSumGradient", title="shape", dY=floats(3), X_or_shape=exactly([2, 3], "i8")),
    Case("ReduceFrontMean", title="i4", gradient=False, X=integers("N", "C", dtype="i4")),
    Case("ReduceBackSum", title="i8", gradient=False, X=integers("N", "C", dtype="i8")),
    *(
        case
        for type, dims in (("RowwiseMax", ("B", "N")), ("ColwiseMax", ("B", "C")))
        for case in (
            Case(
                type,
                sizes={"C": (7, 1, 33)},
                X=distinct("B", "N", "C") if dims[1] == "N" else distinct("B", "C", "N"),
            ),
            Case(
                f"{type}Gradient",
                sizes={"B": (2, 3), "N": (3, 7), "C": (5, 17)},
                mismatch={"X": 1 if dims[1] == "N" else 2},
                X=integers("B", "N", "C", low=0, high=2, dtype="f4"),
                Y=integers(*dims, low=0, high=2, dtype="f4"),
                dY=floats(*dims),
            ),
        )
    ),
    Case(
        "ReduceFrontWeightedSum",
        DATA=floats("N", "C", 2),
        SCALARS=floats("N"),
        mismatch={"DATA": 0},
        no_gradient=["SCALARS"],
        gradient=False,
    ),
    Case(
        "ReduceFrontWeightedSumGradient",
        SCALARS=floats(3),
        dOUTPUT=floats(2, 4),
        dims=exactly([3, 2, 4], "i8"),
    ),
]

CASES = [*AXES, *FOLDS]

LOOSER = {"ColwiseMaxGradient": "three inputs, one output"}
