"""Harness cases of sparse values made dense and back."""

import numpy as np

from caffe2.testing import Bad, Case, anything, exactly, floats, integers

F4, I4, I8 = np.float32, np.int32, np.int64
TEXTS = exactly(np.array([b"a", b"", b"a longer text, on the heap"], dtype=object))
L3, IDS = exactly([2, 0, 1], I4), exactly([7, 2, 4], I8)
MASK = {"mask": [5, 2, 7]}
RANGES = exactly([[[0, 1], [2, 2]], [[4, 1], [4, 2]], [[6, 0], [1, 1]]], I4)
NUMBERS = {"lengths": exactly([2, 0, 3], I4), "indices": exactly([0, 2, 3, 1, 0], I8)}
BAD_NUMBERS = [
    Bad("too large", {"indices": I8([0, 2, 4, 1, 0])}),
    Bad("negative", {"indices": I8([0, 2, -1, 1, 0])}),
    Bad("a negative length", {"lengths": I4([6, -1, 0])}),
    Bad("too short", {"lengths": I4([2, 0, 2])}),
]
BAD_MASKS = [
    Bad("no mask", args={"mask": []}),
    Bad("an id twice", args={"mask": [5, 2, 5]}),
    Bad("a negative id", args={"mask": [5, 2, -7]}),
    Bad("negative ids", {"indices": I8([-1, -2, 4])}, {"max_skipped_indices": 1}),
]
BAD_RANGES = [
    Bad("behind the end", {"RANGES": I4([[[0, 1], [5, 2]]])}),
    Bad("negative", {"RANGES": I4([[[0, 1], [-1, 2]]])}),
    Bad("a negative length", {"RANGES": I4([[[0, 1], [2, -2]]])}),
    Bad("2-d", {"RANGES": I4([[0, 1], [2, 2]])}),
]

CASES = [
    Case("SparseToDenseMask", args=MASK, indices=IDS, values=floats(3, "C"),
         default_value=floats("C"), lengths=L3, no_gradient=["default_value"],
         mismatch={"values": 0, "default_value": 0, "lengths": None}, bad=[
             *BAD_MASKS, Bad("a negative length", {"lengths": I4([4, -1])}),
             Bad("too short", {"lengths": I4([2])}),
             Bad("another type", {"default_value": np.ones(2)})]),
    Case("SparseToDenseMask", title="present", args={**MASK, "return_presence_mask": 1}, outputs=2,
         gradient=False, indices=exactly([7, -9, 7], I4), values=floats(3, 2),
         default_value=floats(2), mismatch={"values": 0}, bad=[
             Bad("no mask of presence", args={"return_presence_mask": 0})]),
    Case("SparseToDenseMask", title="strings", args=MASK, gradient=False, indices=IDS, values=TEXTS,
         default_value=exactly(np.array(b"none", dtype=object)), lengths=L3,
         mismatch={"lengths": None}),
    Case("SparseToDenseMaskGradient", args=MASK, indices=exactly([2, 2, -4], I8),
         dY=anything(3, 3, "C"), lengths=L3, mismatch={"dY": 1, "lengths": None},
         bad=BAD_MASKS),
    Case("SparseToDenseMaskGradient", title="one row", args=MASK, indices=IDS, dY=floats(3, 2),
         mismatch={"indices": None, "dY": 0}),
    Case("BatchSparseToDense", args={"dense_last_dim": 4, "default_value": 0.5}, **NUMBERS,
         values=floats(5), mismatch={"lengths": None},
         bad=[*BAD_NUMBERS, Bad("no columns", args={"dense_last_dim": -1})]),
    Case("BatchSparseToDense", title="like", **NUMBERS, values=floats(5),
         output_shape_inference=floats(1, 4), no_gradient=["output_shape_inference"],
         mismatch={"lengths": None, "output_shape_inference": None},
         bad=[*BAD_NUMBERS, Bad("another width", args={"dense_last_dim": 5})]),
    Case("BatchDenseToSparse", **NUMBERS, dense=floats(3, 4),
         mismatch={"lengths": 0, "dense": 0}, bad=BAD_NUMBERS),
    Case("BooleanUnmask", mask=exactly([True, False, False, True]), data=floats(2),
         others=[exactly([True, True, True, False]), floats(2)], gradient=False, bad=[
             Bad("nobody", {"others_0": np.array([False, True, False, False])}),
             Bad("too many", {"others_1": F4([1, 2, 3])}),
             Bad("another type", {"others_1": I4([1, 2])}),
             Bad("2-d", {"others_1": F4([[1, 2]])})]),
    Case("BooleanUnmask", title="strings", mask=exactly([True, True, True]), data=TEXTS,
         gradient=False),
    Case("BooleanMaskLengths", lengths=exactly([1, 3, 0, 2], I4),
         mask=exactly([True, False, True, True, False, True]), mismatch={"lengths": None}, bad=[
             Bad("too short", {"lengths": I4([1, 3])}),
             Bad("negative", {"lengths": I4([7, -1])})]),
    Case("BooleanMaskLengths", title="int64", lengths=exactly([], I8), mask=exactly([], np.bool_),
         mismatch={"lengths": None, "mask": None}),
    Case("GatherRanges", outputs=2, DATA=anything(6), RANGES=RANGES, bad=BAD_RANGES,
         mismatch={"DATA": None}),
    Case("GatherRanges", title="strings", outputs=2, DATA=TEXTS, mismatch={"DATA": None},
         RANGES=exactly([[[1, 2]], [[0, 1]]], I8)),
    Case("GatherRangesToDense", args={"lengths": [1, 2]}, outputs=2, DATA=anything(6),
         RANGES=RANGES, gradient=False, mismatch={"DATA": None}, bad=[
             *BAD_RANGES, Bad("three", args={"lengths": [1, 2, 3]}),
             Bad("mismatched", args={"min_observation": 3}),
             Bad("empty", args={"min_observation": 3, "max_mismatched_ratio": 1.0,
                                "max_empty_ratio": 0.0})]),
    Case("GatherRangesToDense", title="key", args={"lengths": [1, 2]}, outputs=2, DATA=floats(6),
         RANGES=RANGES, KEY=integers(6, low=0, high=2), gradient=False),
]  # fmt: skip

LOOSER = {"BooleanUnmask": "one mask and its data at least"}
