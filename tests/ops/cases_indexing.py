"""Harness cases of what takes and puts rows by their numbers."""

import numpy as np

from caffe2.testing import Bad, Case, anything, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
TEXTS = exactly(np.array([b"a", b"", b"a longer text, on the heap"], dtype=object))
MASK = exactly([True, False, True, True])

CASES = [
    Case("Gather", DATA=anything(5, "C", 2), INDICES=exactly([[4, 0], [0, -5]], I8),
         gradient=False, mismatch={"DATA": None, "INDICES": None},
         bad=[Bad("too large", {"INDICES": I8([5])}), Bad("too small", {"INDICES": I8([-6])}),
              Bad("a scalar", {"DATA": F4(1)})]),
    Case("Gather", title="rows", DATA=floats(4, "C"), INDICES=exactly([3, 0, 3, 1, 3], I4),
         mismatch={"DATA": None, "INDICES": None}),
    Case("Gather", title="dense_gradient", args={"dense_gradient": 1}, DATA=floats(4, "C"),
         INDICES=exactly([3, 0, 3, 1, 3], I4), mismatch={"DATA": None, "INDICES": None}),
    Case("Gather", title="axis", args={"axis": -1}, DATA=floats("N", 3, 4),
         INDICES=exactly([3, 0, 3], I8), mismatch={"DATA": None, "INDICES": None},
         bad=[Bad("axis=3 of 3", args={"axis": 3})]),
    Case("Gather", title="match_outer", args={"axis": 1, "match_outer": 1}, DATA=floats(3, 4, "C"),
         INDICES=integers(3, "D", low=0, high=3), mismatch={"DATA": 0, "INDICES": 0}),
    Case("Gather", title="strings", DATA=TEXTS, INDICES=exactly([2, 0, 2], I4), gradient=False,
         mismatch={"DATA": None, "INDICES": None}),
    Case("Gather", title="empty", DATA=floats(0, 3), INDICES=exactly([], I4), gradient=False,
         mismatch={"DATA": None, "INDICES": None}),
    Case("BatchGather", DATA=floats("N", 4, "C"), INDICES=exactly([[3, 0, 3]], I4),
         mismatch={"DATA": None, "INDICES": None},
         bad=[Bad("too large", {"INDICES": I4([4])}), Bad("negative", {"INDICES": I4([-1])}),
              Bad("1-d", {"DATA": F4([1])})]),
    Case("BatchGatherGradient", DATA=floats("N", 4, "C"), INDICES=exactly([3, 0, 3], I4),
         dY=floats("N", 3, "C"), mismatch={"DATA": 0},
         bad=[Bad("too large", {"INDICES": I4([4, 0, 0])}),
              Bad("negative", {"INDICES": I4([-1, 0, 0])})]),
    Case("BatchGatherGradient", title="match_outer", args={"match_outer": 1},
         DATA=integers(3, 4, 2, dtype="i4"), INDICES=integers(3, 5, low=0, high=3),
         dY=integers(3, 5, 2, dtype="i4"), mismatch={"DATA": 0}),
    Case("ScatterAssign", DATA=anything(5, "C"), INDICES=exactly([4, 0, 4], I8),
         SLICES=anything(3, "C"),
         bad=[Bad("too large", {"INDICES": I8([5, 0, 0])}),
              Bad("negative", {"INDICES": I8([-1, 0, 0])})]),
    Case("ScatterWeightedSum", X_0=floats(5, "C"), Weight_0=floats(1),
         INDICES=exactly([4, 0, 4], I4), X_1=floats(3, "C"), Weight_1=floats(1),
         others=[floats(3, "C"), floats()],
         bad=[Bad("too large", {"INDICES": I4([5, 0, 0])}),
              Bad("negative", {"INDICES": I4([-1, 0, 0])}),
              Bad("slices without weight", {"others_2": np.ones((3, 2), F4)})]),
    Case("ScatterWeightedSum", title="double", X_0=floats(5, 2, dtype="f8"),
         Weight_0=exactly([1], F4), INDICES=exactly([[4], [0]], I8),
         X_1=floats(2, 1, 2, dtype="f8"), Weight_1=floats(1)),
    Case("SparseToDense", indices=exactly([4, 0, 4], I8), values=floats(3, "C"),
         mismatch={"values": 0}, bad=[Bad("negative", {"indices": I8([-1, 0, 0])}),
                                      Bad("2-d", {"indices": I8([[1, 0, 0]])})]),
    Case("SparseToDense", title="size", indices=exactly([4, 0, 4], I4), values=floats(3, "C"),
         data_to_infer_dim=floats(6, 2), mismatch={"values": 0, "data_to_infer_dim": None},
         no_gradient=["data_to_infer_dim"],
         bad=[Bad("too few rows", {"data_to_infer_dim": F4([1, 2, 3, 4])})]),
    Case("SparseToDense", title="int64", indices=exactly([1, 1], I4), values=integers(2, 3),
         gradient=False, mismatch={"values": 0}),
    Case("BooleanMask", outputs=2, data=floats(4, "C"), mask=MASK, mismatch={"data": 0},
         gradient=False),
    Case("BooleanMask", title="gradient", data=floats(4, 3), mask=MASK, mismatch={"data": 0}),
    Case("BooleanMask", title="strings", data=TEXTS, mask=exactly([True, False, True]),
         gradient=False),
    Case("BooleanMaskGradient", mask=MASK, dY=anything(3, "C"), mismatch={"mask": 0, "dY": 0}),
    Case("OneHot", indices=exactly([1, 0, 2], I8), index_size_tensor=exactly([3], I8),
         mismatch={"indices": None},
         bad=[Bad("too large", {"indices": I8([3])}), Bad("negative", {"indices": I8([-1])}),
              Bad("2-d", {"indices": I8([[1]])}),
              Bad("a negative size", {"index_size_tensor": I8([-3])})]),
]  # fmt: skip

LOOSER = {
    "ScatterWeightedSum": "one pair of slices and weight at least",
}
