"""Harness cases of rows of segments, and of rows parted by keys."""

import numpy as np

from caffe2.testing import Bad, Case, anything, distinct, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
L = exactly([2, 0, 4], I4)
TEXTS = exactly(np.array([b"a", b"", b"a longer text, on the heap"], dtype=object))
BAD_LENGTHS = [
    Bad("negative", {"LENGTHS": I4([2, -1, 5])}),
    Bad("too short", {"LENGTHS": I4([2, 0, 3])}),
    Bad("2-d", {"LENGTHS": I4([[6]])}),
]
KEYS = exactly([4, -3, 0, 7, -4], I8)
TABLES = [exactly([[1, 2]], F4), exactly([[3, 4], [5, 6]], F4)]

CASES = [
    Case("LengthsPad", args={"target_length": 4}, DATA=floats(6, "C"), LENGTHS=L, gradient=False,
         mismatch={"DATA": 0}, bad=[*BAD_LENGTHS, Bad("too long", {"LENGTHS": I4([1, 5])})]),
    Case("LengthsPad", title="integers", args={"target_length": 5, "padding_value": -1.5},
         DATA=integers(6, dtype="i4"), LENGTHS=L,
         bad=[Bad("no int32", args={"padding_value": 1e10})]),
    Case("LengthsPad", title="double", args={"target_length": 4}, DATA=floats(6, 2, dtype="f8"),
         LENGTHS=L, gradient=False, mismatch={"DATA": 0}),
    Case("LengthsSplit", args={"n_split": 3}, LENGTHS=exactly([8, 0, 7], I4),
         mismatch={"LENGTHS": None}, bad=[Bad("negative", {"LENGTHS": I4([-1])}),
                                          Bad("no parts", args={"n_split": 0})]),
    Case("LengthsSplit", title="input", args={"n_split": 3}, LENGTHS=exactly([5], I4),
         n_split=exactly([2], I4), mismatch={"LENGTHS": None},
         bad=[Bad("no parts", {"n_split": I4([0])})]),
    Case("LengthsGather", ITEMS=anything(6, "C"), LENGTHS=L, INDICES=exactly([2, 0, 2, 1], I8),
         gradient=False, mismatch={"ITEMS": 0, "INDICES": None},
         bad=[*BAD_LENGTHS, Bad("too large", {"INDICES": I8([3])}),
              Bad("below 0", {"INDICES": I8([-1])})]),
    Case("LengthsGather", title="strings", ITEMS=TEXTS, LENGTHS=exactly([1, 2], I4),
         INDICES=exactly([1], I4), mismatch={"INDICES": None}),
    Case("LengthsTopK", args={"k": 3}, outputs=2, DATA=distinct(6), LENGTHS=L, bad=BAD_LENGTHS),
    Case("LengthsTopK", title="equal ones", args={"k": 3}, outputs=2, gradient=False,
         DATA=exactly([1, np.nan, 1, 2, -np.inf, 2], F4), LENGTHS=exactly([6], I4)),
    Case("LengthsTopKGradient", args={"k": 2}, LENGTHS=L,
         TopKIndices=exactly([[1, 0], [-1, -1], [3, 1]], I4), dTopKValue=floats(3, 2),
         bad=[Bad("too large", {"TopKIndices": I4([[2, 0], [-1, -1], [3, 1]])}),
              Bad("below -1", {"TopKIndices": I4([[-2, 0], [-1, -1], [3, 1]])}),
              Bad("a negative length", {"LENGTHS": I4([2, -1, 4])})]),
    Case("LengthsToWeights", lengths=exactly([1, 4, 0, 3], I4), mismatch={"lengths": None},
         bad=[Bad("below 0", {"lengths": I4([-1])}), Bad("2-d", {"lengths": I4([[1]])})]),
    Case("LengthsToWeights", title="power", args={"power": 1.5}, lengths=exactly([2, 5], I8),
         mismatch={"lengths": None}),
    Case("PackRNNSequence", values=floats(6, "C"), lengths=L, mismatch={"values": 0}, bad=[
        Bad("below 0", {"lengths": I4([2, -1, 5])}), Bad("too short", {"lengths": I4([2, 3])}),
        Bad("1-d", {"values": F4([1, 2, 3, 4, 5, 6])})]),
    Case("PackRNNSequence", title="none", values=floats(0, 2), lengths=exactly([], I4),
         gradient=False, mismatch={"values": None, "lengths": None}),
    Case("UnpackRNNSequence", values=floats(4, 3, "C"), lengths=L, mismatch={"values": 1}, bad=[
        Bad("below 0", {"lengths": I4([2, -1, 4])}), Bad("too long", {"lengths": I4([2, 0, 5])})]),
    Case("Partition", outputs=6, keys=exactly([[4, -3, 0, 7, -4]], I8),
         others=[anything(1, 5, "C")], gradient=False,
         mismatch={"keys": None, "others": 1}, bad=[Bad("an output too many", outputs=5)]),
    Case("Partition", title="packed", outputs=2, args={"pack_first_input": 1},
         keys=exactly([4, -3, 0, 7, -4], I4), mismatch={"keys": None}),
    Case("Partition", title="strings", outputs=4, keys=exactly([1, 0, 1], I4), others=[TEXTS]),
    Case("LengthsPartition", outputs=6, args={"pack_first_input": 1},
         lengths=exactly([2, 0, 3], I4), keys=KEYS, others=[floats(5, "C")],
         mismatch={"lengths": 0, "others": 0}, gradient=False, bad=[
             Bad("negative", {"lengths": I4([6, -1, 0])}), Bad("too short", {"lengths": I4([2])}),
             Bad("2-d", {"keys": I8([[1, 2, 3, 4, 5]])})]),
    Case("GatherByKey", keys=exactly([3, -2, 1], I8), sharded_values=TABLES, gradient=False,
         mismatch={"sharded_values": 0}, bad=[
             Bad("all to one", {"keys": I8([1, 3, 5])}),
             Bad("another type", {"sharded_values_1": np.ones((2, 2))})]),
    Case("GatherByKey", title="gradient", keys=exactly([3, -2, 1], I8), mismatch={
        "sharded_values": 0}, sharded_values=[floats(1, "C"), floats(2, "C")]),
]  # fmt: skip

LOOSER = {
    "Partition": "keys at least",
    "LengthsPartition": "lengths and keys at least",
}
