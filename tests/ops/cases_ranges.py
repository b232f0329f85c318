"""Harness cases of largest elements of rows, Scatter and fills."""

import numpy as np

from caffe2.testing import Bad, Case, Integers, anything, distinct, exactly, floats

F4, I4, I8 = np.float32, np.int32, np.int64

CASES = [
    Case(
        "FlexibleTopK",
        outputs=2,
        X=distinct(2, 2, 5),
        K=exactly([[1, 5], [2, 3]], I8),
        mismatch={"X": None},
        bad=[
            Bad("too large", {"K": I8([1, 6, 2, 3])}),
            Bad("none", {"K": I8([1, 0, 2, 3])}),
            Bad("a scalar", {"X": F4(1)}),
        ],
    ),
    Case(
        "FlexibleTopK",
        title="equal ones",
        outputs=2,
        gradient=False,
        mismatch={"X": None},
        X=exactly([[1, np.nan, 1, 2, 2]], F4),
        K=exactly([5], I8),
    ),
    Case(
        "FlexibleTopKGradient",
        X=floats(2, "C"),
        K=exactly([1, 2], I8),
        dValues=floats(3),
        Indices=exactly([3, 0, 1], I8),
        sizes={"C": (4, 7)},
        mismatch={"X": None},
        bad=[
            Bad("too large", {"Indices": I8([4, 0, 1])}),
            Bad("negative", {"Indices": I8([-1, 0, 1])}),
        ],
    ),
    Case(
        "Scatter",
        DATA=anything(3, 4, "C"),
        INDICES=exactly(np.arange(8).reshape(2, 4, 1) % 4, I4),
        UPDATES=anything(2, 4, 1),
        mismatch={"DATA": None, "INDICES": 2},
        gradient=False,
        bad=[
            Bad("too large", {"INDICES": np.full((2, 4, 1), 4)}),
            Bad("negative", {"INDICES": np.full((2, 4, 1), -1)}),
            Bad("axis=3 of 3", args={"axis": 3}),
        ],
    ),
    Case(
        "Scatter",
        title="twice",
        args={"axis": -2},
        DATA=floats("N", 2),
        gradient=False,
        sizes={"N": (3, 7)},
        INDICES=exactly([[0, 2], [0, 1], [2, 0], [0, 2]], I8),
        UPDATES=floats(4, 2),
        mismatch={"DATA": None},
    ),
    Case(
        "Scatter",
        title="strings",
        args={"axis": 0},
        DATA=exactly(np.array([b"a", b"b"], object)),
        INDICES=exactly([1], I4),
        UPDATES=exactly(np.array([b"new"], object)),
        mismatch={"DATA": None},
    ),
    Case(
        "DiagonalFill",
        title="input",
        args={"value": 3.0, "input_as_shape": 1},
        input=exactly([2, 3], I8),
        mismatch={"input": None},
        bad=[
            Bad("1-d", {"input": I8([2])}),
            Bad("unequal", {"input": I8([2, 3, 2])}),
            Bad("strings", args={"dtype": 4}),
            Bad("not int32", args={"dtype": 2}),
        ],
    ),
    Case(
        "GivenTensorInt16Fill",
        args={"shape": [2], "values": [1, -2]},
        bad=[Bad("too few", args={"shape": [3]}), Bad("too large", args={"values": [1, 70000]})],
    ),
    Case(
        "GivenTensorByteStringToUInt8Fill",
        args={"shape": [3], "values": [b"ab\xff"]},
        bad=[Bad("too few", args={"shape": [4]}), Bad("two", args={"values": [b"ab", b"c"]})],
    ),
    Case(
        "UniqueUniformFill",
        args={"shape": [50, 100], "min": -(10**6), "max": 10**6},
        distribution=Integers(-(10**6), 10**6),
    ),
    Case(
        "UniqueUniformFill",
        title="avoid",
        args={"min": 0, "max": 30000, "dtype": 10, "input_as_shape": 1},
        distribution=Integers(10000, 30000),
        input=exactly([2500], I8),
        avoid=exactly(np.arange(-5, 10000), I8),
        mismatch={"input": None, "avoid": None},
        bad=[
            Bad("too many", args={"max": 10500}),
            Bad("min=max", args={"max": 0}),
            Bad("another type", {"avoid": I4([1])}),
            Bad("float", args={"dtype": 1}),
        ],
    ),
]

SPECIAL = {
    **dict.fromkeys(
        (
            "IntIndexCreate",
            "LongIndexCreate",
            "StringIndexCreate",
            "IndexGet",
            "IndexLoad",
            "IndexStore",
            "IndexSize",
            "IndexFreeze",
        ),
        "tests/engine/test_index.py",
    ),
}
