"""Harness cases of joining, cutting, rearranging and reshaping."""

import math

import numpy as np

from caffe2.testing import Bad, Case, any_shape, anything, exactly, floats, integers

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

RESHAPING = [
    Case("FlattenToVec", input=anything("N", 3, "C"), bad=[Bad("a scalar", {"input": F4(1)})]),
    Case("FlattenToVec", title="strings", gradient=False, input=TEXTS),
    Case("ExpandDims", args={"dims": [0, 2, 2]}, data=anything("N", "C"),
         bad=[Bad("dims=[5]", args={"dims": [5]}), Bad("no dims", args={"dims": []})]),
    Case("ExpandDims", title="last", args={"dims": [1, 0]}, data=floats()),
    Case("ExpandDims", title="strings", args={"dims": [1]}, gradient=False, data=TEXTS),
    Case("Squeeze", args={"dims": [2, 0, 2]}, data=anything(1, "N", 1, "C"),
         bad=[Bad("dims=[4]", args={"dims": [4]}), Bad("no dims", args={"dims": []}),
              Bad("a size of 2", args={"dims": [1]})]),
    Case("Squeeze", title="scalar", args={"dims": [0]}, data=floats(1)),
    Case("PrependDim", args={"dim_size": 3}, data=anything(6, "N"),
         bad=[Bad("a size that does not divide", args={"dim_size": 4}),
              Bad("a scalar", {"data": F4(1)})]),
    Case("PrependDim", title="empty", args={"dim_size": 2}, data=floats(0, 3), gradient=False),
    Case("MergeDim", data=anything("N", 3, "C"), bad=[Bad("one dimension", {"data": F4([1])})]),
]  # fmt: skip

REARRANGING = [
    Case("Transpose", X=anything(any_shape), bad=[
        Bad("axes=[0, 0]", args={"axes": [0, 0]}), Bad("axes=[0]", args={"axes": [0]}),
        Bad("axes=[0, 2]", args={"axes": [0, 2]})]),
    *(Case("Transpose", title=f"{axes}", args={"axes": axes}, X=anything("N", "C", 3))
      for axes in ([0, 2, 1], [1, 0, 2], [2, 0, 1], [1, 2, 0], [0, 1, 2])),
    Case("Transpose", title="gradient", args={"axes": [2, 0, 3, 1]}, X=floats(2, 3, 4, 5)),
    Case("Transpose", title="2-d", X=anything("N", "C"), sizes={"N": (100, 33, 3), "C": (70, 1)}),
    Case("Transpose", title="strings", gradient=False, X=TEXTS),
    *(Case(type, data=anything("N", "C", 2, "W"), bad=[Bad("2-d", {"data": F4([[1]])})])
      for type in ("NCHW2NHWC", "NHWC2NCHW")),
    Case("NCHW2NHWC", title="rank 3", data=floats("N", "C", "W")),
    Case("Slice", args={"starts": [1, 0, -4], "ends": [-1, 2, -2]}, X=anything(3, "C", 6), bad=[
        Bad("an end before its start", args={"starts": [2], "ends": [1]}),
        Bad("before the beginning", args={"starts": [-9], "ends": [1]}),
        Bad("an end before the beginning", args={"starts": [0], "ends": [-9]}),
        Bad("one end for two starts", args={"starts": [0, 0], "ends": [1]}),
        Bad("4 of 3 dimensions", args={"starts": [0] * 4, "ends": [1] * 4}),
        Bad("starts without ends", {"starts": I8([0])})]),
    Case("Slice", title="gradient", args={"starts": [1, 0, -4], "ends": [-1, 2, -2]},
         X=floats(3, 4, 6)),
    Case("Slice", title="clipped", args={"starts": [7, 1], "ends": [-1, 99]}, X=floats("N", 3)),
    Case("Slice", title="strings", args={"starts": [1], "ends": [2]}, gradient=False, X=TEXTS),
    *(Case("Slice", title=f"inputs {dtype.__name__}", X=floats(4, "C"),
           starts=exactly([1, -2], dtype), ends=exactly([-2, -1], dtype), mismatch={"X": None},
           bad=[Bad("2-d", {"starts": dtype([[1]]), "ends": dtype([[2]])}),
                Bad("an end before its start", {"starts": dtype([2, 3]), "ends": dtype([1, 4])}),
                Bad("3 of 2 dimensions", {"starts": dtype([0] * 3), "ends": dtype([1] * 3)}),
                Bad("types that differ", {"starts": np.int16([1, 2])})])
      for dtype in (I4, I8)),
    Case("SliceGradient", args={"starts": [1], "ends": [-2]}, X=floats(4, "C"),
         starts_or_dY=floats(2, "C"),
         bad=[Bad("another type", {"starts_or_dY": np.ones((2, 2))}),
              Bad("3 inputs", {"ends": I4([1])})]),
    Case("SliceGradient", title="inputs", X=floats(4, 3), starts_or_dY=exactly([1], I4),
         ends=exactly([3], I4), dY=floats(2, 3),
         bad=[Bad("another type", {"dY": np.ones((2, 3))}),
              Bad("starts as floats", {"starts_or_dY": F4([1]), "ends": F4([3])})]),
    Case("Tile", args={"tiles": 3, "axis": -2}, X=anything("N", "C", 2),
         bad=[Bad("axis=3 of 3", args={"axis": 3}), Bad("two tiles", {"tiles": I4([1, 2])}),
              Bad("tiles=-1", {"tiles": I4([-1])})]),
    Case("Tile", title="gradient", args={"tiles": 3, "axis": 1}, X=floats(2, 3, 2)),
    Case("Tile", title="inputs", X=floats(3, "C"), tiles=exactly([2], I4), axis=exactly([1], I8),
         mismatch={"X": None}, bad=[Bad("axis=2 of 2", {"axis": I8([2])})]),
    Case("Tile", title="none", args={"tiles": 0, "axis": 0}, gradient=False, X=floats(3, "C"),
         bad=[Bad("no axis", {"X": F4(1)})]),
    Case("Tile", title="strings", args={"tiles": 2, "axis": 1}, gradient=False, X=TEXTS),
    Case("TileGradient", args={"tiles": 3, "axis": 1}, dY=floats("N", 6, "C"),
         bad=[Bad("a size that does not divide", args={"tiles": 4}),
              Bad("no tiles", args={"tiles": 0})]),
    *(Case("TileGradient", title=dtype, args={"axis": -1}, mismatch={"dY": None},
           dY=integers(2, "C", 4, low=-(2**31), high=2**31 - 1, dtype=dtype),
           tiles=exactly([2], I8)) for dtype in ("i4", "i8", "f8")),
    Case("NumpyTile", data=anything("N", 3, 2), repeats=exactly([2, 1, 3], I8),
         mismatch={"data": None}, bad=[Bad("a negative number", {"repeats": I8([2, -1, 1])}),
                                       Bad("2-d", {"repeats": I8([[2, 1, 1]])})]),
    Case("NumpyTile", title="strings", data=TEXTS, repeats=exactly([1, 2], I4),
         mismatch={"data": None}),
    Case("NumpyTile", title="none", data=floats(2, 3), repeats=exactly([0, 2], I4),
         mismatch={"data": None}),
    Case("Expand", gradient=False, X=anything("N", 1, 3), shape=exactly([2, 1, 4, -1], I8),
         mismatch={"X": None, "shape": None},
         bad=[Bad("no fit", {"shape": I8([2])}), Bad("2-d", {"shape": I8([[3]])})]),
    Case("Expand", title="gradient", X=floats(3, 1, 2), shape=exactly([2, 1, 4, 0], I4),
         mismatch={"X": None, "shape": None}),
    Case("ExpandGradient", dY=floats(2, "N", 4, 3), X=floats("N", 1, 3)),
    Case("ExpandGradient", title="int32", dY=integers(4, 3, dtype="i4"),
         X=integers(1, 1, dtype="i4"), mismatch={"dY": None},
         bad=[Bad("another type", {"X": I8([[1]])}), Bad("empty", {"dY": np.ones((0, 3), I4)})]),
]  # fmt: skip

HALVES = F4([0, -0.0, 1.5, 1e6, -1e6, 1e-8, 6e-8, 2.98e-8, 2.99e-8, math.nan, math.inf, 2049, 2051,
             65519, 65520, 6.1e-5, 6.0975e-5, -3.3e-6, 1 / 3])  # fmt: skip
COPYING = [
    *(Case(type, input=anything(any_shape)) for type in
      ("Alias", "EnsureDense", "EnsureCPUOutput", "CopyFromCPUInput",
       "CopyCPUToGPU", "CopyGPUToCPU")),
    Case("Alias", title="strings", gradient=False, input=TEXTS),
    Case("AliasWithName", args={"name": "mark"}, input=anything(any_shape)),
    Case("Shape", X=anything(any_shape), bad=[Bad("axes=[2] of 2", args={"axes": [2]})]),
    Case("Shape", title="axes", args={"axes": [1, 0, 1]}, X=anything("N", "C")),
    Case("Size", X=anything(any_shape)),
    Case("FloatToHalf", gradient=False, input=floats(any_shape)),
    Case("FloatToHalf", title="edges", gradient=False, input=exactly(HALVES)),
    Case("HalfToFloat", gradient=False, input=floats(any_shape, low=-9, high=9, dtype="f2")),
    # Every bit pattern that is a number.
    Case("HalfToFloat", title="all", gradient=False,
         input=exactly(np.arange(31745, dtype=np.uint16).view(np.float16))),
]  # fmt: skip

CASES = [*JOINING, *RESHAPING, *REARRANGING, *COPYING]

LOOSER = {
    "SliceGradient": "two or four inputs and one output",
    "NumpyTile": "one output",
}
