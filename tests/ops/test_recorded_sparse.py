"""Answers of the original Caffe2 (torch 1.10.2, CPU) for sparse and quantized rows."""

import numpy as np
import pytest

F4, I4, I8, U1 = np.float32, np.int32, np.int64, np.uint8
X = np.arange(1, 17, dtype=F4).reshape(4, 4)
V = np.arange(1, 13, dtype=F4).reshape(6, 2)
L = I4([1, 3, 2])
INF = np.inf
VALUES_3 = F4([[1, 2], [3, 4], [5, 6]])
NINE = F4([9, 9])
MASK = {"mask": [5, 2, 7]}
DENSE_DY = np.arange(12, dtype=F4).reshape(2, 3, 2)
DATA, RANGES = F4([1, 2, 3, 4, 5, 6]), I4([[[0, 1], [2, 2]], [[4, 1], [5, 1]]])
KEYED = I4([[[0, 1], [2, 2]], [[4, 1], [0, 2]]])
ROWS = F4([[1, 2.5, -3, 4], [0, 0, 0, 0], [-1, 0.3, 0.7, 1.1]])
FUSED_8 = U1([
    [146, 200, 0, 255, 225, 224, 224, 60, 0, 0, 64, 192],
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [0, 158, 206, 255, 83, 237, 6, 60, 0, 0, 128, 191],
])  # fmt: skip
FUSED_4 = U1([[201, 240, 119, 55, 0, 194], [0, 0, 0, 60, 0, 0], [144, 252, 123, 48, 0, 188]])
KEYS = I8([0, 1, 2, 3, 5])
BUCKETS = F4([0.1, 2.5, 1, 3.1, 4.5])

# (type, inputs, arguments, outputs)
VALUES = [
    ("SparseToDenseMask", [I8([2, 7, 4]), VALUES_3, NINE], MASK, [F4([[9, 9], [1, 2], [3, 4]])]),
    ("SparseToDenseMask", [I8([2, 7, 4]), VALUES_3, NINE, I4([2, 1])],
     {**MASK, "return_presence_mask": 1},
     [F4([[[9, 9], [1, 2], [3, 4]], [[9, 9]] * 3]),
      np.array([[False, True, True], [False, False, False]])]),
    ("SparseToDenseMask", [I4([2, 2, -4]), VALUES_3, NINE], MASK,
     [F4([[9, 9], [3, 4], [9, 9]])]),
    ("SparseToDenseMask", [I8([2**40, 5]), F4([1, 2]), F4(0)], {"mask": [5, 2**40]}, [F4([2, 1])]),
    ("SparseToDenseMaskGradient", [I8([2, 2, 4]), DENSE_DY, I4([2, 1])], MASK,
     [F4([[0, 0], [2, 3], [0, 0]])]),
    ("BatchSparseToDense", [I8([2, 3]), I8([0, 2, 0, 1, 3]), F4([6, 7, 8, 9, 10])],
     {"dense_last_dim": 4, "default_value": 0.5}, [F4([[6, 0.5, 7, 0.5], [8, 9, 0.5, 10]])]),
    ("BatchSparseToDense", [I8([2, 3]), I8([0, 0, 0, 1, 3]), F4([6, 7, 8, 9, 10]),
                            np.zeros((3, 6), F4)], {},
     [F4([[7, 0, 0, 0, 0, 0], [8, 9, 0, 10, 0, 0]])]),
    ("BatchDenseToSparse", [I4([2, 3]), I8([0, 0, 0, 1, 3]), DENSE_DY.reshape(2, 6)], {},
     [F4([0, 0, 6, 7, 9])]),
    ("BooleanUnmask", [np.array([True, False, False]), F4([1]), np.array([False, True, True]),
                       F4([2, 3])], {}, [F4([1, 2, 3])]),
    ("BooleanMaskLengths", [I8([1, 3, 0, 2]), np.array([True, False, True, True, False, True])], {},
     [I8([1, 2, 0, 1])]),
    ("GatherRanges", [DATA, RANGES], {}, [F4([1, 3, 4, 5, 6]), I4([3, 2])]),
    ("GatherRangesToDense", [DATA, RANGES], {"lengths": [1, 2]},
     [F4([[1], [5]]), F4([[3, 4], [0, 0]])]),
    ("GatherRangesToDense", [DATA, KEYED, I8([6, 5, 4, 3, 2, 1])], {"lengths": [1, 2]},
     [F4([[1], [5]]), F4([[4, 3], [2, 1]])]),
    ("LengthsPad", [I4(V[:, 0]), L], {"target_length": 3, "padding_value": -1.5},
     [I4([1, -1, -1, 3, 5, 7, 9, 11, -1])]),
    ("LengthsSplit", [I4([5, 0, 2])], {"n_split": 2}, [I4([3, 2, 0, 0, 1, 1])]),
    ("LengthsSplit", [I4([8]), I4([3])], {"n_split": 2}, [I4([3, 3, 2])]),
    ("LengthsGather", [V, L, I4([2, 0, 2])], {}, [V[[4, 5, 0, 4, 5]]]),
    ("LengthsTopK", [F4([3, 1, 2, 2, 5, 0]), I4([3, 1, 2, 0])], {"k": 2},
     [F4([[3, 2], [2, 0], [5, 0], [0, 0]]), I4([[0, 2], [0, -1], [0, 1], [-1, -1]])]),
    ("LengthsTopKGradient", [I4([3, 1]), I4([[0, 2], [0, -1]]), F4([[10, 20], [30, 40]])],
     {"k": 2}, [F4([10, 0, 20, 30])]),
    ("LengthsToWeights", [I4([1, 4, 0, 3])], {"power": 1.0}, [F4([1, *[0.25] * 4, *[1 / 3] * 3])]),
    ("PackRNNSequence", [V, L], {},
     [F4([[[1, 2], [3, 4], [9, 10]], [[0, 0], [5, 6], [11, 12]], [[0, 0], [7, 8], [0, 0]]])]),
    ("UnpackRNNSequence", [np.arange(18, dtype=F4).reshape(3, 3, 2), L], {},
     [F4([[0, 1], [2, 3], [8, 9], [14, 15], [4, 5], [10, 11]])]),
    ("Partition", [KEYS], {"pack_first_input": 1}, [I8([0, 1]), I8([0, 1, 2])]),
    ("Partition", [I8([[0, 1, -3]]), VALUES_3[np.newaxis]], {"pack_first_input": 1},
     [I8([0]), F4([[1, 2]]), I8([0, -2]), F4([[3, 4], [5, 6]])]),
    ("LengthsPartition", [I4([2, 0, 3]), KEYS], {},
     [I4([1, 0, 1]), I8([0, 2]), I4([1, 0, 2]), I8([1, 3, 5])]),
    ("GatherByKey", [KEYS, F4([0, 20]), F4([10, 30, 50])], {}, [F4([0, 10, 20, 30, 50])]),
    ("Bucketize", [F4([-1, 0, 0.5, 1, 2, np.nan])], {"boundaries": [0.0, 1.0]},
     [I4([0, 0, 1, 1, 2, 0])]),
    ("BatchBucketOneHot", [F4([[2, 3], [4, 1], [2, 5]]), I4([2, 3]), BUCKETS], {},
     [F4([[0, 1, 0, 0, 1, 0, 0], [0, 0, 1, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 1]])]),
    ("IndexHash", [I8([0, 1, 2, 1000, -5])], {"seed": 5, "modulo": 100},
     [I8([39, 68, 97, 74, 11])]),
    ("IndexHash", [I4([0, 1, 2, 1000, -5])], {"seed": 5, "modulo": 100},
     [I4([51, 60, 69, 54, 95])]),
    ("IndexHash", [I8([0, 2**40, -(2**50)])], {"seed": -3, "modulo": 1000000007},
     [I8([399729422, 694827763, 399467273])]),
    ("FindDuplicateElements", [F4([1, 2, 1, 3, 2, 1])], {}, [I8([2, 4, 5])]),
    ("SequenceMask", [X], {"mode": "upper"},
     [F4([[1, -INF, -INF, -INF], [5, 6, -INF, -INF], [9, 10, 11, -INF], [13, 14, 15, 16]])]),
    ("SequenceMask", [X], {"mode": "lowerdiag", "fill_val": 0.0},
     [F4([[0, 2, 3, 4], [0, 0, 7, 8], [0, 0, 0, 12], [0, 0, 0, 0]])]),
    ("SequenceMask", [X, I4([1, 2, 3, 0])], {"mode": "window", "radius": 1, "grad": 1},
     [F4([[1, 2, 3, 0], [0, 6, 7, 8], [0, 0, 11, 12], [13, 14, 0, 0]])]),
    ("SequenceMask", [X.reshape(2, 2, 4), I4([1, 2])],
     {"mode": "sequence", "axis": 2, "batch": 1, "grad": 1},
     [F4([[[1, 0, 0, 0], [5, 0, 0, 0]], [[9, 0, 0, 0], [13, 0, 0, 0]]])]),
    ("SequenceMask", [X.reshape(2, 2, 2, 2) - 1, I4([1, 2])],
     {"mode": "sequence", "axis": 1, "repeat_from_axis": -1, "grad": 1},
     [F4([[[[0, 1], [0, 0]], [[0, 0], [0, 0]]], [[[8, 9], [10, 11]], [[0, 0], [0, 0]]]])]),
    ("FloatToFused8BitRowwiseQuantized", [ROWS], {}, [FUSED_8]),
    ("FloatToFused8BitRowwiseQuantizedHalfScaleBias", [ROWS], {},
     [U1([[146, 200, 0, 255, 7, 39, 0, 194], [0, 0, 0, 0, 0, 60, 0, 0],
          [0, 158, 207, 255, 55, 32, 0, 188]])]),
    ("FloatToFused8BitRowwiseQuantizedHalfScaleBias", [F4([[1.0006, 1.0006]])], {},
     [U1([[253, 253, 25, 128, 1, 60]])]),
    ("FloatToFused4BitRowwiseQuantized", [ROWS], {}, [FUSED_4]),
    ("FloatToFused2BitRowwiseQuantized", [ROWS], {},
     [U1([[202, 171, 64, 0, 194], [0, 0, 60, 0, 0], [232, 154, 57, 0, 188]])]),
    ("HalfToFused2BitRowwiseQuantized", [ROWS.astype(np.float16)], {},
     [U1([[202, 171, 64, 0, 194], [0, 0, 60, 0, 0], [232, 153, 57, 0, 188]])]),
    ("FloatToFused4BitFakeRowwiseQuantized", [ROWS[:1]], {},
     [U1([[9, 12, 0, 15, 0, 224, 238, 62, 0, 0, 64, 192]])]),
    ("FloatToRowwiseQuantized8Bits", [V[:4].reshape(2, 2, 2) - 1], {},
     [U1([[[0, 85], [170, 255]]] * 2), F4([[3 / 255, 0], [3 / 255, 4]])]),
    ("SparseLengthsSumFused8BitRowwise", [FUSED_8, I8([2, 0]), I4([2, 0])], {},
     [F4([[0.0078431703, 2.7913725, -2.3035295, 5.1], [0, 0, 0, 0]])]),
    ("SparseLengthsWeightedSumFused4BitRowwise", [FUSED_4, F4([2, -1]), I8([0, 2]), I4([1, 1])], {},
     [F4([[2.3979492, 5.1972656, -6, 7.996582], [1, -0.26013184, -0.68017578, -1.1002197]])]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "outputs"), VALUES)
def test_value(run, type, inputs, args, outputs):
    found = run(type, inputs, len(outputs), **args)
    for value, expected in zip(found, outputs, strict=True):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-6)
