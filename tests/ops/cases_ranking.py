"""Harness cases of TopK, ArgMax, ArgMin and Unique."""

import numpy as np

from caffe2.testing import Bad, Case, distinct, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
NAN = np.nan
TIES = exactly([[1, 5, 3, 5], [2, 2, 9, -1], [NAN, 1, NAN, 2], [0, -0.0, 0, NAN]], F4)


def arg(type):
    return [
        Case(type, X=floats("N", 5, "C"), bad=[
            Bad("a scalar", {"X": F4(1)}), Bad("axis=3 of 3", args={"axis": 3}),
            Bad("no elements", {"X": np.ones((2, 0), F4)})]),
        Case(type, title="axis", args={"axis": 1, "keepdims": 0}, X=floats("N", 5, "C")),
        Case(type, title="ties", X=TIES),
        *(Case(type, title=dtype, args={"axis": 0}, X=integers(4, "C", low=-2, high=2,
                                                             dtype=dtype))
          for dtype in ("i4", "i8", "f8")),
    ]  # fmt: skip


CASES = [
    Case("TopK", args={"k": 3}, X=distinct("N", 5), outputs=3, bad=[
        Bad("k=0", args={"k": 0}), Bad("no k", args={"k": -1}), Bad("a scalar", {"X": F4(1)}),
        Bad("axis=2 of 2", args={"axis": 2}), Bad("two k", {"k": I8([1, 2])}),
        Bad("k=0 as input", {"k": I8([0])})]),
    Case("TopK", title="axis", args={"k": 2, "axis": 1}, outputs=3, X=distinct("N", 4, "C")),
    Case("TopK", title="few", args={"k": 5}, outputs=3, X=distinct("N", 3)),
    Case("TopK", title="ties", args={"k": 4}, outputs=3, gradient=False, X=TIES),
    Case("TopK", title="input", X=distinct(3, 5), k=exactly([2], I8), mismatch={"X": None}),
    Case("TopKGradient", args={"axis": 1}, dValues=floats(2, 3, "C"),
         Indices=exactly(np.moveaxis(I8([[[3, 0, -1]], [[1, 2, 3]]]), 1, 2)), X=floats(2, 4, "C"),
         sizes={"C": (1,)},
         bad=[Bad("too large", {"Indices": I8([[[4]] * 3] * 2).reshape(2, 3, 1)}),
              Bad("too small", {"Indices": I8([[[-2]] * 3] * 2).reshape(2, 3, 1)})]),
    *arg("ArgMax"),
    *arg("ArgMin"),
    Case("Unique", indices=exactly([3, 1, 3, -2], I8), outputs=2,
         bad=[Bad("2-d", {"indices": I8([[1]])})]),
    Case("Unique", title="int32", indices=integers("N", low=-3, high=3, dtype="i4"), outputs=2),
]  # fmt: skip
