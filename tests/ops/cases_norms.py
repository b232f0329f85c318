"""Harness cases of sums, norms and moments."""

from caffe2.testing import Bad, Case, any_shape, floats, integers, result_of

SIZES = {"N": (7, 1, 33, 0), "C": (17, 7, 65)}
EITHER = [{}, {"average": 1}]


def whole(type, args, make, **gradient):
    """An operator on all elements and its gradient, where it has one."""
    common = {"title": " ".join(f"{name}={value}" for name, value in args.items()), "args": args}
    cases = [Case(type, **common, X=make)]
    if gradient:
        name = f"{type}Gradient"
        cases.append(Case(name, **common, mismatch={"X": None}, X=make, **gradient))
    return cases


WHOLE = [
    case
    for args in EITHER
    for case in (
        *whole("SumElements", args, floats(any_shape), dsum=floats(1)),
        *whole("SumSqrElements", args, floats(any_shape)),
        *whole("LpNorm", {**args, "p": 1}, floats("C", 3, away=0.1), dout=floats(1)),
        *whole("LpNorm", {**args, "p": 2}, floats("C", 3), dout=floats(1)),
    )
]
WHOLE += [
    Case("SumSqrElements", title="double", X=floats(any_shape, dtype="f8")),
    Case("SumElementsInt", X=integers(any_shape, dtype="i4")),
]


def along(type, **inputs):
    return [
        Case(
            type,
            title=f"axis={axis}",
            args={"axis": axis},
            sizes=SIZES,
            bad=[Bad("axis=3", args={"axis": 3})],
            **inputs,
        )
        for axis in (-1, 0, 1)
    ]


X = floats("N", "C", 2, away=0.1)
ALONG = [
    *along("Normalize", X=X),
    *along("NormalizeL1", X=X),
    *along("NormalizeGradient", X=X, dY=floats("N", "C", 2)),
]

MOMENTS = [
    case
    for title, args in (
        ("all", {}),
        ("rows", {"axes": [1, 2]}),
        ("outer", {"axes": [0, -1], "keepdims": 0}),
    )
    for common in [{"title": title, "args": args, "sizes": SIZES}]
    for case in (
        Case("Moments", **common, data=X),
        Case(
            "MomentsGradient",
            **common,
            mismatch={"X": None},
            dmean=result_of("ReduceMax", "X", **args),
            dvariance=result_of("ReduceMin", "X", **args),
            X=X,
            mean=result_of("ReduceMean", "X", **args),
        ),
    )
]

CASES = [*WHOLE, *ALONG, *MOMENTS]
