"""Answers of the original Caffe2 (torch 1.10.2, CPU) for indices and segments, written down."""

import numpy as np
import pytest

from caffe2.testing import RefusedError

F4, I4, I8 = np.float32, np.int32, np.int64
D = np.arange(24, dtype=F4).reshape(2, 3, 4)
X = np.arange(12, dtype=F4).reshape(6, 2)
W = F4([1, 2, 3, 4, 5, 6])
L, U, ROWS = I4([2, 0, 4]), I4([1, 0, 1, 3, 3, 0]), I8([5, 0, 1, 1])
T = F4([[1, 5, 3, 5], [2, 2, 9, -1]])
DY = F4([[1, 2], [3, 4], [5, 6]])
SPREAD = F4([[1, 2], [1, 2], [5, 6], [5, 6], [5, 6], [5, 6]])
WEIGHTED = F4([[1, 2], [2, 4], [15, 18], [20, 24], [25, 30], [30, 36]])

# (type, inputs, arguments, outputs)
VALUES = [
    ("Gather", [D[0], I4([-1])], {}, [D[0, 2:]]),
    ("Gather", [D, I8([3, 0])], {"axis": 2}, [D[:, :, [3, 0]]]),
    ("Gather", [D, I4([[2, 0], [1, 1]])], {"axis": 1, "match_outer": 1},
     [F4([[[8, 9, 10, 11], [0, 1, 2, 3]], [[16, 17, 18, 19], [16, 17, 18, 19]]])]),
    ("BatchGather", [D, I4([[2, 0]])], {}, [D[:, [[2, 0]]]]),
    ("BatchGatherGradient", [D, I4([2, 2]), np.ones((2, 2, 4), F4)], {},
     [np.tile(F4([[0], [0], [2]]), (2, 1, 4))]),
    ("SparseToDense", [I4([2, 0, 2]), X[:3]], {}, [F4([[2, 3], [0, 0], [4, 6]])]),
    ("OneHot", [I8([1, 0, 2]), I8(3)], {}, [F4([[0, 1, 0], [1, 0, 0], [0, 0, 1]])]),
    ("BooleanMask", [X[:3], np.array([True, False, True])], {}, [X[[0, 2]], I8([0, 2])]),
    ("TopK", [T], {"k": 2}, [F4([[5, 5], [9, 2]]), I8([[1, 3], [2, 0]]), I8([1, 3, 6, 4])]),
    ("TopK", [T], {"k": 5}, [F4([[5, 5, 3, 1, 0], [9, 2, 2, -1, 0]]),
                             I8([[1, 3, 2, 0, -1], [2, 0, 1, 3, -1]])]),
    ("TopK", [T.reshape(2, 2, 2)], {"k": 1, "axis": 1},
     [F4([[[3, 5]], [[9, 2]]]), I8([[[1, 0]], [[1, 0]]]), I8([2, 1, 6, 5])]),
    ("TopKGradient", [F4([[1, 2], [3, 4]]), I8([[1, 3], [2, 0]]), T], {"k": 2},
     [F4([[0, 1, 0, 2], [4, 0, 3, 0]])]),
    ("ArgMax", [T], {"axis": 0, "keepdims": 0}, [I8([1, 0, 1, 0])]),
    ("ArgMin", [T], {}, [I8([[0], [3]])]),
    ("Unique", [I8([3, 1, 3, 2])], {}, [I8([1, 2, 3]), I4([2, 0, 2, 1])]),
    ("LengthsSum", [X, L], {}, [F4([[2, 4], [0, 0], [28, 32]])]),
    ("LengthsMean", [X, L], {}, [F4([[1, 2], [0, 0], [7, 8]])]),
    ("LengthsMax", [X, L], {}, [F4([[2, 3], [0, 0], [10, 11]])]),
    ("LengthsWeightedSum", [X, W, L], {}, [F4([[4, 7], [0, 0], [136, 154]])]),
    ("UnsortedSegmentMean", [X, U], {}, [F4([[6, 7], [2, 3], [0, 0], [7, 8]])]),
    ("UnsortedSegmentWeightedSum", [X, W, U], {}, [F4([[64, 72], [12, 16], [0, 0], [64, 73]])]),
    ("SparseSortedSegmentWeightedSum", [X, W[:4], ROWS, I4([0, 0, 1, 2])], {},
     [F4([[10, 13], [6, 9], [8, 12]])]),
    ("SparseUnsortedSegmentSum", [X, ROWS, I4([0, 2, 2, 0])], {},
     [F4([[12, 14], [0, 0], [2, 4]])]),
    ("SparseLengthsSum", [X, ROWS, I4([1, 0, 3])], {}, [F4([[10, 11], [0, 0], [4, 7]])]),
    ("SparseLengthsWeightedSum", [X, W[:4], ROWS, I4([1, 0, 3])], {},
     [F4([[10, 11], [0, 0], [14, 23]])]),
    ("SparseLengthsPositionalWeightedSum", [X, F4([10, 20, 30]), ROWS, I4([1, 0, 3])], {},
     [F4([[100, 110], [0, 0], [100, 160]])]),
    ("SortedSegmentRangeMaxGradient", [F4([[1], [1]]), F4([[1]]), F4([[5]]), I4([0, 0])], {},
     [F4([[5], [5]])]),
    ("LengthsSumGradient", [DY, L], {}, [SPREAD]),
    ("LengthsMaxWithMainInputAndForwardOutputGradient",
     [F4([[2, 3], [0, 0], [10, 11]]), DY, L, X], {},
     [F4([[0, 0], [1, 2], [0, 0], [0, 0], [0, 0], [5, 6]])]),
    ("LengthsWeightedSumWithMainInputGradient", [W, DY, L, X], {},
     [WEIGHTED, F4([2, 8, 50, 72, 94, 116])]),
    ("SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient",
     [W, DY, L, X, I8([1, 2, 3, 4, 5, 0])], {}, [WEIGHTED, F4([8, 14, 72, 94, 116, 6])]),
    ("UnsortedSegmentMeanGradient", [F4([[1, 2], [9, 9], [3, 4], [5, 6]]), U], {},
     [F4([[4.5, 4.5], [0.5, 1], [4.5, 4.5], [2.5, 3], [2.5, 3], [0.5, 1]])]),
    ("LengthsToSegmentIds", [L], {}, [I4([0, 0, 2, 2, 2, 2])]),
    ("LengthsToRanges", [L], {}, [I4([[0, 2], [2, 0], [2, 4]])]),
    ("LengthsToOffsets", [L], {"include_last_offset": 1}, [I4([0, 2, 2, 6])]),
    ("LengthsToShape", [I4([3, 3])], {}, [I4([2, 3])]),
    ("LengthsRangeFill", [I4([2, 0, 3])], {}, [I4([0, 1, 0, 1, 2])]),
    ("SegmentIdsToLengths", [I8([0, 0, 2]), X], {}, [I4([2, 0, 1, 0, 0, 0])]),
    ("SegmentIdsToRanges", [I4([1, 1, 2])], {}, [I4([[0, 0], [0, 2], [2, 1]])]),
    ("LengthsTile", [X[:3], L], {}, [X[[0, 0, 2, 2, 2, 2]]]),
    ("PackSegments", [L, X[:, 0]], {"max_length": 3, "pad_minf": 1},
     [F4([[0, 2, -np.inf], [-np.inf] * 3, [4, 6, 8]])]),
    ("PackSegments", [I4([]), X[:0]], {"return_presence_mask": 1},
     [np.zeros((0, 0, 2), F4), np.zeros((0, 0), np.bool_)]),
    ("UnpackSegments", [L, D.reshape(3, 4, 2)[:, :3]], {"max_length": 3},
     [F4([[0, 1], [2, 3], [16, 17], [18, 19], [20, 21]])]),
    ("AddPadding", [X[:3], I4([2, 0, 1]), F4([9, 8]), F4([7, 6])], {},
     [F4([[9, 8], [0, 1], [2, 3], [7, 6], [9, 8], [7, 6], [9, 8], [4, 5], [7, 6]]),
      I4([4, 2, 3])]),
    ("RemovePadding", [X], {"end_padding_width": 2}, [X[1:4], I4([3])]),
    ("GatherPadding", [X, I4([2, 4])], {}, [F4([16, 20])]),
    ("GatherPadding", [X, I4([2, 4])], {}, [F4([4, 6]), F4([12, 14])]),
    ("ReversePackedSegs", [X.reshape(3, 2, 2), I4([3, 2])], {},
     [F4([[[8, 9], [6, 7]], [[4, 5], [2, 3]], [[0, 1], [10, 11]]])]),
    ("BatchPermutationGradient", [I4([5, 3, 4, 2, 1, 0]), X], {},
     [F4([[10, 11], [8, 9], [6, 7], [2, 3], [4, 5], [0, 1]])]),
    ("RemoveDataBlocks", [X, I4([1, 3, 3])], {}, [X[[0, 2, 4, 5]]]),
    ("Find", [I4([5, 6, 5]), I4([5, 7])], {}, [I4([2, -1])]),
    ("SegmentOneHot", [I4([2, 0, 1]), I8([0, 1, 2]), I8([3])], {},
     [F4([[1, 1, 0], [0, 0, 0], [0, 0, 1]])]),
    ("BatchOneHot", [I4([[1, 2], [3, 4]]), I4([2, 1]), I4([1, 3, 4])], {},
     [I4([[1, 0, 0], [0, 1, 1]])]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "outputs"), VALUES)
def test_value(run, type, inputs, args, outputs):
    found = run(type, inputs, len(outputs), **args)
    for value, expected in zip(found, outputs, strict=True):
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
        assert value.tolist() == expected.tolist()


def test_scattered_rows(run):
    """Numbers that repeat: the last counts, or each adds; out of range they are refused here."""
    assigned = run("ScatterAssign", [X[:2], I8([1, 1]), X[2:4]])[0]
    assert assigned.tolist() == [[0, 1], [6, 7]]
    weights = F4([0.5]), F4([2])
    inputs = [X[:2] + 1, weights[0], I4([1, 1]), X[:2], weights[1]]
    assert run("ScatterWeightedSum", inputs)[0].tolist() == [[1, 2], [4.75, 9]]
    with pytest.raises(RefusedError, match="ScatterAssign"):
        run("ScatterAssign", [X[:2], I8([2]), X[:1]])
