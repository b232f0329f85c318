"""Answers of the original Caffe2 (torch 1.10.2, CPU) for shapes: asked once and written down."""

import numpy as np
import pytest

F4, I4, I8 = np.float32, np.int32, np.int64
A = np.arange(6, dtype=F4).reshape(2, 3)
X = np.arange(8, dtype=F4).reshape(2, 4)
TEXTS = np.array([b"a", b"b"], dtype=object)

# (type, inputs, arguments, outputs)
VALUES = [
    ("Concat", [A, A], {}, [F4([[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]]), I4([3, 3])]),
    ("Concat", [A, A], {"axis": -1, "add_axis": 1},
     [F4([[[0, 0], [1, 1], [2, 2]], [[3, 3], [4, 4], [5, 5]]]), I4([1, 1])]),
    ("Concat", [A.reshape(1, 2, 3, 1)] * 2, {"order": "NHWC"},
     [F4([[[[0, 0], [1, 1], [2, 2]], [[3, 3], [4, 4], [5, 5]]]]), I4([1, 1])]),
    ("Split", [A, I4([1, 2])], {"axis": 1}, [F4([[0], [3]]), F4([[1, 2], [4, 5]])]),
    ("Split", [A], {"axis": 0, "add_axis": 1}, [F4([0, 1, 2]), F4([3, 4, 5])]),
    ("SplitByLengths", [np.arange(10, dtype=F4), I4([1, 0, 2, 3, 2, 2])], {"axis": 0},
     [F4([0]), F4([1, 2, 3, 4, 5]), F4([6, 7, 8, 9])]),
    ("SplitByLengths", [np.arange(10, dtype=F4), I4([1, 4])],
     {"axis": 0, "use_scaling_lengths": 1}, [F4([0, 1]), F4([2, 3, 4, 5, 6, 7, 8, 9])]),
    ("Slice", [X], {"starts": [0, -2], "ends": [-1, -1]}, [F4([[3], [7]])]),
    ("Slice", [X], {"starts": [0, -3], "ends": [-1, -2]}, [F4([[2], [6]])]),
    ("Slice", [X], {"starts": [0], "ends": [1]}, [F4([[0, 1, 2, 3]])]),
    ("Slice", [X], {"starts": [0, 5], "ends": [-1, -1]}, [np.zeros((2, 0), F4)]),
    ("Slice", [F4(3)], {"starts": [], "ends": []}, [F4(3)]),
    ("Slice", [TEXTS], {"starts": [1], "ends": [-1]}, [np.array([b"b"], dtype=object)]),
    ("SliceGradient", [X, I4([0, 1]), I4([-1, 3]), X[:, 1:3]], {},
     [F4([[0, 1, 2, 0], [0, 5, 6, 0]])]),
    ("Reshape", [np.zeros((1, 0), F4)], {"shape": [0]}, [np.zeros(0, F4), I8([1, 0])]),
    ("Reshape", [np.zeros((1, 0), F4), I8([0, 5])], {}, [np.zeros((0, 5), F4), I8([1, 0])]),
    ("Squeeze", [X.reshape(1, 2, 1, 4)], {"dims": [0, 0]}, [X.reshape(2, 1, 4)]),
    ("ExpandDims", [X], {"dims": [2, 0]}, [X.reshape(1, 2, 1, 4)]),
    ("PrependDim", [X[:0]], {"dim_size": 2}, [np.zeros((2, 0, 4), F4)]),
    ("Tile", [X, I4([3]), I4([1])], {"tiles": 9}, [np.tile(X, (1, 3))]),
    ("TileGradient", [X], {"tiles": 2, "axis": 1}, [F4([[2, 4], [10, 12]])]),
    ("Expand", [F4([[1], [2]]), I8([0, 3])], {}, [F4([[1, 1, 1], [2, 2, 2]])]),
    ("Expand", [F4([[1, 2]]), I8([-2, 2])], {}, [F4([[1, 2]])]),
    ("ExpandGradient", [F4([[1, 2, 3], [4, 5, 6]]), F4([1, 1, 1])], {}, [F4([5, 7, 9])]),
    ("Shape", [X], {"axes": [0, 0, 1]}, [I8([2, 2, 4])]),
    ("Size", [X], {}, [I8(8)]),
    ("FloatToHalf", [F4([1.5, 1e6, -1e6, 1e-8, 2049, 65519, 65520])], {},
     [np.float16([1.5, np.inf, -np.inf, 0, 2048, 65504, np.inf])]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "outputs"), VALUES)
def test_value(run, type, inputs, args, outputs):
    found = run(type, inputs, len(outputs), **args)
    for value, expected in zip(found, outputs, strict=True):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        assert value.tolist() == expected.tolist()
