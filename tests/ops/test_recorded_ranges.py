"""Answers of the original Caffe2 (torch 1.10.2, CPU) for Scatter, FlexibleTopK and fills."""

import numpy as np
import pytest

F4, I4, I8, U1 = np.float32, np.int32, np.int64, np.uint8
VALUES_3 = F4([[1, 2], [3, 4], [5, 6]])

# (type, inputs, arguments, outputs)
VALUES = [
    ("FlexibleTopK", [F4([[1, 3, 2], [4, 4, 0]]), I8([2, 1])], {}, [F4([3, 2, 4]), I8([1, 2, 0])]),
    ("FlexibleTopKGradient", [F4([[1, 3, 2], [4, 4, 0]]), I8([2, 1]), F4([10, 20, 30]),
                              I8([1, 2, 0])], {}, [F4([[0, 10, 20], [30, 0, 0]])]),
    ("Scatter", [VALUES_3, I4([[0, 2], [1, 0]]), F4([[10, 11], [20, 21]])], {"axis": 0},
     [F4([[10, 21], [20, 4], [5, 11]])]),
    ("Scatter", [VALUES_3, I4([[1, 0, 1]]), F4([[1, 2, 3]])], {}, [F4([[2, 3], [3, 4], [5, 6]])]),
    ("DiagonalFill", [], {"shape": [2, 2, 2], "value": 1.0},
     [F4([[[1, 0], [0, 0]], [[0, 0], [0, 1]]])]),
    ("DiagonalFill", [], {"shape": [2, 2], "value": 3}, [I8([[3, 0], [0, 3]])]),
    ("GivenTensorByteStringToUInt8Fill", [], {"shape": [3], "values": [b"ab\xff"]},
     [U1([97, 98, 255])]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "outputs"), VALUES)
def test_value(run, type, inputs, args, outputs):
    found = run(type, inputs, len(outputs), **args)
    for value, expected in zip(found, outputs, strict=True):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)
