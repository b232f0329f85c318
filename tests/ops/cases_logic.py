"""Harness cases of comparisons and logic."""

import numpy as np

from caffe2.testing import Bad, Case, any_shape, integers

PAIRS = {
    "same": ((any_shape,), (any_shape,), {}),
    "rows": (("N", "C", 3), ("C", 1), {}),
    "both": (("N", 1, "C"), (3, 1), {}),
    "old axis": (("N", 3, "C"), (3,), {"broadcast": 1, "axis": 1}),
}


def binary(type, dtypes, titles=PAIRS, low=-2, high=2):
    """An operator on few different values, so that equal ones are among them."""
    for title in titles:
        a, b, args = PAIRS[title]
        for dtype in dtypes if title == "same" else dtypes[:1]:
            limits = {"low": 0, "high": 1} if dtype == "?" else {"low": low, "high": high}
            yield Case(
                type,
                title=f"{title} {dtype}",
                args=args,
                sizes={"N": (2, 0, 1), "C": (17, 1, 5)},
                in_place=False,
                mismatch={} if title == "same" else {"A": None, "B": None},
                bad=[Bad("another type", {"B": np.ones((2, 3), np.int8)})],
                A=integers(*a, dtype=dtype, **limits),
                B=integers(*b, dtype=dtype, **limits),
            )


CASES = [
    *(
        case
        for type in ("EQ", "NE", "LT", "LE", "GT", "GE")
        for case in binary(type, ["f4", "f8", "i4", "i8", "?"], ["same", "both"])
    ),
    *(case for case in binary("LT", ["i8"], ["rows", "old axis"])),
    *(case for type in ("And", "Or", "Xor") for case in binary(type, ["?"], ["same", "both"])),
    *(
        case
        for type in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for case in binary(type, ["i4", "i8", "?"], ["same"], low=-9, high=99)
    ),
    Case("Not", X=integers(any_shape, low=0, high=1, dtype="?")),
]
