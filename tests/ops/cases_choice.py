"""Harness cases of Pow, of extremes and means of several tensors, of choices and of checks."""

import math

import numpy as np

from caffe2.testing import (
    Bad,
    Case,
    any_shape,
    anything,
    exactly,
    floats,
    integers,
    like,
    result_of,
)

F4, F8, I4, I8 = np.float32, np.float64, np.int32, np.int64
INF, NAN = math.inf, math.nan
SIZES = {"N": (2, 0, 1), "C": (17, 1, 5)}
POSITIVE = {"low": 0.5, "high": 2}


def unlike(name, shape, dtype=F4):
    return Bad(f"{name} of shape {shape}", {name: np.ones(shape, dtype)})


POW = [
    *(
        Case("Pow", title=f"{exponent}", args={"exponent": exponent},
             X=floats(any_shape, **POSITIVE))
        for exponent in (2.0, 0.5, -1.0, 1.0, 3.5)
    ),
    Case("Pow", title="negative", args={"exponent": 3.0}, X=floats(any_shape, away=0.5)),
    Case("Pow", title="tensor", X=floats(any_shape, **POSITIVE), exponent=floats(any_shape),
         bad=[Bad("another rank", {"exponent": np.ones(3, F4)})]),
    Case("Pow", title="row", args={"broadcast": 1}, sizes=SIZES, in_place=False,
         mismatch={"X": 1, "exponent": 0}, X=floats("N", "C", **POSITIVE), exponent=floats("C"),
         bad=[Bad("no broadcast", args={"broadcast": 0})]),
    Case("Pow", title="axis", args={"broadcast": 1, "axis": 1}, sizes=SIZES, in_place=False,
         mismatch={"X": 1}, X=floats("N", 3, "C", **POSITIVE), exponent=floats(3, 1)),
    Case("Pow", title="one", args={"broadcast": 1}, in_place=False, mismatch={"X": None},
         X=floats(any_shape, **POSITIVE), exponent=floats(1),
         bad=[unlike("exponent", (4,))]),
    *(
        Case("SumReduceLike", title=title, args=args, sizes=SIZES, mismatch={"A": axis},
             A=floats(*a, dtype=dtype), B=anything(*b), bad=[unlike("B", (2, 3, 4, 5, 6))])
        for title, a, b, axis, dtype, args in (
            ("rows", ("N", "C"), ("C",), 1, "f4", {}),
            ("axis", (2, "N", 3, "C"), ("N", 3), 1, "f4", {"axis": 1}),
            ("axis_str", (2, 3, "N", "C"), (3,), 1, "f8", {"axis_str": "C"}),
            ("ones", ("N", 3, "C"), (1, 3, 1), 1, "f4", {}),
            ("same", ("N", "C"), ("N", "C"), 1, "f8", {}),
        )
    ),
    Case("SumReduceLike", title="one", A=floats(any_shape), B=exactly(1, F4),
         mismatch={"A": None, "B": None}),
]  # fmt: skip

SEVERAL = [
    *(
        Case(name, title=f"{count}", X=[floats(any_shape) for _ in range(count)])
        for name in ("Max", "Min")
        for count in (1, 2, 3)
    ),
    Case("Max", title="NaN", gradient=False, X=[exactly([1, NAN, 3, -INF], F4),
                                                exactly([2, 2, NAN, -INF], F4)]),
    *(
        Case(f"{name}Gradient", title=title, outputs=outputs, bad=[Bad("more outputs", outputs=3)],
             M=result_of(name, "X_0", "X_1"), dM=like("X_0"), X=[x, x])
        for name in ("Max", "Min")
        for title, outputs, x in (("", 2, integers(any_shape, low=0, high=3, dtype="f4")),
                                  ("first", 1, floats(any_shape)))
    ),
    Case("Mean", X=[floats(any_shape) for _ in range(3)]),
    Case("Mean", title="double", X=[floats(any_shape, dtype="f8") for _ in range(2)]),
    Case("Mean", title="one", X=[floats(any_shape)]),
    Case("MeanGradient", outputs=3, dM=floats(any_shape)),
    Case("MeanGradient", title="double", outputs=2, dM=floats(any_shape, dtype="f8")),
    *(
        Case("SumRelu", title=dtype, A=[integers(any_shape, dtype=dtype) for _ in range(3)])
        for dtype in ("f4", "f8", "i4")
    ),
    Case("SumInt", title="int", A=[integers(any_shape) for _ in range(2)]),
    Case("SumInt", A=[floats(any_shape) for _ in range(2)]),
]  # fmt: skip

CHOICES = [
    *(
        Case("Where", title=dtype, C=integers(any_shape, low=0, high=1, dtype="?"),
             X=integers(any_shape, low=0, high=1, dtype=dtype),
             Y=integers(any_shape, low=0, high=1, dtype=dtype),
             bad=[Bad("another type", {"Y": np.ones((2, 3), np.float16)})])
        for dtype in ("f4", "f8", "i4", "i8", "?")
    ),
    Case("Where", title="rows", args={"broadcast_on_rows": 1},
         C=integers("N", low=0, high=1, dtype="?"), X=floats("N", "C"), Y=floats("N", "C"),
         bad=[unlike("C", (2, 1), bool), Bad("no rows", args={"broadcast_on_rows": 0})]),
    *(
        Case("Conditional", title=dtype, Condition=integers("N", low=0, high=1, dtype="?"),
             DataT=integers("N", "C", 2, dtype=dtype), DataF=integers("N", "C", 2, dtype=dtype),
             bad=[unlike("Condition", (2, 1), bool), unlike("DataF", (2, 2, 2), I4)])
        for dtype in ("f4", "i8", "i2", "u1")
    ),
    Case("Conditional", title="strings", Condition=exactly([True, False]),
         DataT=exactly([[b"a"], [b"b"]], object), DataF=exactly([[b"c"], [b"d" * 40]], object),
         mismatch={"DataT": 0, "DataF": 0}),
]  # fmt: skip

TEXTS = exactly([[b"a", b""], [b"\xff\x00z", b"a longer text, on the heap"]], object)
CHECKS = [
    Case("IsEmpty", tensor=anything(any_shape)),
    Case("IsNaN", tensor=exactly([[1, NAN, INF]], F4)),
    Case("IsNaN", title="double", tensor=exactly([[1, NAN, -INF]], F8)),
    Case("ReplaceNaN", input=exactly([[1, NAN, INF]], F4)),
    Case("ReplaceNaN", title="double", args={"value": 2.1}, input=exactly([1, NAN], F8)),
    Case("NanCheck", tensor=floats(any_shape),
         bad=[Bad("a NaN", {"tensor": F4([1, NAN])}), Bad("infinity", {"tensor": F4([-INF])})]),
    Case("NanCheck", title="others", tensor=floats(any_shape), others=[anything(2), TEXTS],
         no_gradient=["others_0"], mismatch={"tensor": None, "others": None}, gradient=False),
    Case("EnforceFinite", input=floats(any_shape),
         bad=[Bad("a NaN", {"input": F4([1, NAN])}), Bad("infinity", {"input": F8([-INF])})]),
    Case("Assert", X=exactly([True, True])),
    Case("Assert", title="int", args={"error_msg": "why"}, X=integers(any_shape, low=1),
         bad=[Bad("a zero", {"X": I4([1, 0])}), Bad("false", {"X": np.array([[False]])})]),
    *(
        Case("IsMemberOf", title=dtype, args={"value": [1, -3, 7]},
             X=integers(any_shape, low=0 if dtype == "?" else -3, high=1, dtype=dtype),
             bad=[Bad("texts", args={"value": ["a"]}), Bad("numbers", args={"value": [1.5]}),
                  Bad("another dtype", args={"dtype": 4})])
        for dtype in ("i4", "i8", "?")
    ),
    Case("IsMemberOf", title="strings", args={"value": ["", "a longer text, on the heap"]},
         X=TEXTS, bad=[Bad("numbers", args={"value": [1]})]),
    Case("IsMemberOf", title="beyond int32", args={"value": [2**32 + 1]},
         X=integers(any_shape, low=0, high=2, dtype="i4")),
    Case("IsMemberOf", title="nothing", args={"dtype": 10}, X=integers(any_shape)),
]  # fmt: skip

COLUMNS = [
    *(
        case
        for title, x, columns, args in (
            ("", ("N", "C"), ("C",), {}),
            ("axis", ("N", 3, "C"), ("C",), {"axis": -1}),
            ("flat", ("N", 2, 3), (6,), {}),
        )
        for case in (
            Case("ElementwiseLinear", title=title, args=args, X=floats(*x), w=floats(*columns),
                 b=floats(*columns), mismatch={"X": 1 if title == "flat" else -1},
                 bad=[unlike("w", (1, 3)), Bad("axis=3", args={"axis": 3})]),
            Case("ElementwiseLinearGradient", title=title, args=args, dY=floats(*x), X=floats(*x),
                 w=floats(*columns)),
        )
    ),
    Case("RowMul", mat=floats("N", "C"), w=floats("N"), mismatch={"mat": 0},
         bad=[Bad("a scalar", {"mat": F4(1)})]),
    Case("RowMul", title="planes", mat=floats("N", 3, "C"), w=floats("N"), mismatch={"mat": 0}),
    # The gradient of w is a vector, whatever the shape of w, as in the original.
    Case("RowMul", title="column", gradient=False, mat=floats("N", "C"), w=floats("N", 1),
         mismatch={"mat": 0, "w": 0}),
    Case("ReduceTailSum", mat=floats("N", 3, "C"), bad=[Bad("a scalar", {"mat": F4(1)})]),
    *(
        Case("SquareRootDivide", title=dtype, data=floats("N", "C"), mismatch={"data": 0},
             no_gradient=["scale"], scale=integers("N", low=0, high=9, dtype=dtype),
             bad=[Bad("a negative scale", {"scale": np.array([1, -1], dtype)}),
                  unlike("scale", (2, 1))])
        for dtype in ("f4", "i4", "i8")
    ),
    *(
        Case("BatchBoxCox", title=dtype, data=floats("N", 3, 2, low=-1, high=9, dtype=dtype),
             lambda1=exactly([0, 1, 2, 0.5, -1, 1e-7], dtype),
             lambda2=exactly([2, 2, 3, 1.5, 2, 2], dtype),
             mismatch={"data": 1}, bad=[Bad("a scalar", {"data": F4(1)})])
        for dtype in ("f4", "f8")
    ),
    Case("MakeTwoClass", X=floats(any_shape)),
    Case("MakeTwoClassGradient", dY=floats("N", "C", 2), bad=[unlike("dY", (2, 3))]),
    Case("StumpFunc", args={"threshold": 0.2, "low_value": -1.0, "high_value": 2.0},
         X=floats(any_shape)),
    Case("StumpFuncIndex", args={"threshold": 0.2}, X=floats(any_shape)),
]  # fmt: skip

CASES = [*POW, *SEVERAL, *CHOICES, *CHECKS, *COLUMNS]
