"""Harness cases of the reductions."""

import numpy as np

from caffe2.testing import Bad, Case, distinct, floats, integers, result_of

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

CASES = [*AXES]
