"""Harness cases of joining, cutting, rearranging and reshaping."""

import numpy as np

from caffe2.testing import Bad, Case, anything, exactly, floats

F4, I4, I8 = np.float32, np.int32, np.int64
TEXTS = exactly(np.array([[b"a", b""], [b"\xff\x00z", b"a longer text, on the heap"]], object))


def joins(type):
    return [
        Case(type, args={"axis": 1}, outputs=2, mismatch={"inputs": 0},
             inputs=[floats("N", 3, "C"), floats("N", "D", "C"), floats("N", 0, "C")],
             bad=[Bad("another type", {"inputs_1": np.ones((2, 4, 3), I4)}),
                  Bad("another rank", {"inputs_1": np.ones((2, 3), F4)}),
                  Bad("axis=3 of 3", args={"axis": 3}), Bad("axis=-4", args={"axis": -4})]),
        Case(type, title="any", args={"axis": -2}, outputs=2, mismatch={"inputs": -1},
             inputs=[anything("N", "C"), anything(3, "C")]),
        Case(type, title="one", outputs=2, inputs=[floats("N", "C")]),
        Case(type, title="NHWC", args={"order": "NHWC"}, outputs=2, mismatch={"inputs": 0},
             inputs=[floats("N", 2, 1, "C"), floats("N", 2, 1, 3)]),
        Case(type, title="add_axis", args={"axis": 2, "add_axis": 1}, outputs=2,
             inputs=[floats("N", "C"), floats("N", "C")],
             bad=[Bad("axis=3", args={"axis": 3})]),
        Case(type, title="strings", args={"axis": 1}, outputs=2, gradient=False,
             mismatch={"inputs": 0}, inputs=[TEXTS, TEXTS]),
    ]  # fmt: skip


def splits(type):
    return [
        Case(type, args={"axis": 1}, outputs=3, input=floats("N", 6, "C"),
             bad=[Bad("a size that does not divide", outputs=4),
                  Bad("axis=3 of 3", args={"axis": 3}),
                  Bad("another sum", args={"split": [1, 2, 4]}),
                  Bad("two sizes for three", args={"split": [1, 5]})]),
        Case(type, title="split", args={"axis": -1, "split": [3, 0, 4]}, outputs=3,
             input=anything("N", "C", 7)),
        Case(type, title="input split", args={"axis": 0}, outputs=2, mismatch={"input": 0},
             input=floats(7, "C"), split=exactly([2, 5], I4),
             bad=[Bad("another sum", {"split": I4([2, 4])}),
                  Bad("a negative size", {"split": I4([-1, 8])}),
                  Bad("2-d", {"split": I4([[2, 5]])}), Bad("both", args={"split": [2, 5]})]),
        Case(type, title="add_axis", args={"axis": 1, "add_axis": 1}, outputs=3,
             input=floats("N", 3, "C"), bad=[Bad("size 2", {"input": np.ones((2, 6, 2), F4)})]),
        Case(type, title="order", args={"order": "NHWC"}, outputs=2, input=anything("N", 1, 3, 4)),
        Case(type, title="strings", args={"axis": 1}, outputs=2, gradient=False, input=TEXTS),
    ]  # fmt: skip


JOINING = [
    *(case for type in ("Concat", "DepthConcat") for case in joins(type)),
    *(case for type in ("Split", "DepthSplit") for case in splits(type)),
    Case("SplitByLengths", args={"axis": 1}, outputs=2, mismatch={"input": 1},
         input=floats("N", 7, "C"), lengths=exactly([1, 2, 0, 4], I4),
         bad=[Bad("another sum", {"lengths": I4([1, 2, 0, 3])}),
              Bad("a negative length", {"lengths": I4([8, 2, 0, -3])}),
              Bad("3 lengths", {"lengths": I4([1, 2, 4])}), Bad("2-d", {"lengths": I4([[3, 4]])}),
              Bad("axis=3 of 3", args={"axis": 3})]),
    Case("SplitByLengths", title="scaling", args={"axis": 0, "use_scaling_lengths": 1}, outputs=2,
         mismatch={"input": 0}, input=anything(6, "C"), lengths=exactly([1, 2], I4),
         bad=[Bad("no multiple", {"lengths": I4([1, 3])})]),
]  # fmt: skip

CASES = [*JOINING]
