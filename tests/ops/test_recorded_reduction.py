"""Answers of the original Caffe2 (torch 1.10.2) for reductions, asked once and written down."""

import math

import numpy as np
import pytest

from caffe2.python import core, workspace

INF, NAN = math.inf, math.nan
F4, F8, I4, I8 = np.float32, np.float64, np.int32, np.int64
X23 = F4([[-2, -1, 0], [1, 2, 3]])
LOGITS, TARGETS = F4([[1, -2, 0], [100, -100, 3]]), F4([[1, 0, 1], [0, 1, 0.5]])
LOWEST = np.finfo(F4).min

# (type, inputs, arguments, outputs)
VALUES = [
    ("ReduceSum", [X23], {}, [F4([[3]])]),
    ("ReduceSum", [X23], {"keepdims": 0}, [F4(3)]),
    ("ReduceSum", [X23], {"axes": [1, 1]}, [F4([[-3], [6]])]),
    ("ReduceSum", [X23.astype(I8)], {"axes": [-1]}, [I8([[-3], [6]])]),
    ("ReduceMean", [np.ones((0, 3), F4)], {"axes": [0]}, [F4([[0, 0, 0]])]),
    ("ReduceMean", [F4(3)], {}, [F4(3)]),
    ("ReduceMax", [np.ones((0, 3), F4)], {"axes": [0]}, [F4([[LOWEST] * 3])]),
    ("ReduceMin", [np.ones((0, 3), F4)], {}, [F4([[-LOWEST]])]),
    ("ReduceMax", [F4([[-INF, -INF]])], {}, [F4([[-INF]])]),
    ("ReduceMax", [X23], {"axes": []}, [F4([[3]])]),
    ("ReduceL1", [X23], {"axes": [1]}, [F4([[3], [6]])]),
    ("ReduceL2", [X23], {"axes": [1], "keepdims": 0}, [F4([math.sqrt(5), math.sqrt(14)])]),
    ("ReduceMeanGradient", [F4([1, 2]), X23, F4([[0], [0]])], {"axes": [1]},
     [F4([[1 / 3] * 3, [2 / 3] * 3])]),
    ("ReduceMaxGradient", [F4([[1], [1]]), F4([[2, 2, 0], [0, 0, 0]]), F4([[2], [0]])],
     {"axes": [1]}, [F4([[1, 1, 0], [1, 1, 1]])]),
    ("ReduceL1Gradient", [F4([[1], [2]]), X23, F4([[3], [6]])], {"axes": [1]},
     [F4([[-1, -1, 0], [2, 2, 2]])]),
    ("ReduceL2Gradient", [F4([[1], [2]]), X23, F4([[math.sqrt(5)], [math.sqrt(14)]])],
     {"axes": [1]}, [F4([[-0.8944272, -0.4472136, 0], [0.5345225, 1.069045, 1.6035674]])]),
    ("ReduceFrontSum", [X23, I4([1, 2, 0])], {}, [F4([-2, 1, 0])]),
    ("ReduceFrontMean", [X23.astype(I4)], {}, [I4([0, 0, 1])]),
    ("ReduceBackMean", [X23], {"num_reduce_dim": 2}, [F4(0.5)]),
    ("ReduceBackMax", [np.ones((3, 0), F4)], {}, [F4([0, 0, 0])]),
    ("ReduceFrontMax", [X23], {"num_reduce_dim": 0}, [X23]),
    ("ReduceBackMaxGradient", [F4([1, 1]), F4([[1, 2, 2], [1, 1, 2]]), F4([2, 2])], {},
     [F4([[0, 1, 1], [0, 0, 1]])]),
    ("ReduceFrontMeanGradient", [F4([1, 2, 3]), X23, I4([1, 2, 0])], {},
     [F4([[1, 1, 0], [0, 1, 0]])]),
    ("ReduceBackMeanGradient", [I4([1, 2]), I4([[1, 2], [3, 4]])], {}, [I4([[0, 0], [1, 1]])]),
    ("ReduceBackSumGradient", [F4([1, 2]), I8([2, 3])], {}, [F4([[1, 1, 1], [2, 2, 2]])]),
    ("ReduceFrontWeightedSum", [F4([[1, 2], [3, 4]]), F4([2, 3])], {}, [F4([11, 16])]),
    ("ReduceTailSum", [np.arange(8, dtype=F4).reshape(2, 2, 2)], {}, [F4([6, 22])]),
    ("RowwiseMaxGradient", [F4([[[1, 1], [2, 3]]]), F4([[1, 3]]), F4([[1, 1]])], {},
     [F4([[[1, 1], [0, 1]]])]),
    ("SumElements", [X23], {"average": 1}, [F4(0.5)]),
    ("SumElements", [F4([])], {"average": 1}, [F4(0)]),
    ("SumSqrElements", [X23], {}, [F4(19)]),
    ("LpNorm", [X23], {}, [F4([19])]),
    ("LpNorm", [X23], {"p": 1, "average": 1}, [F4([1.5])]),
    ("LpNormGradient", [X23, F4([2])], {"p": 2}, [F4([[-8, -4, 0], [4, 8, 12]])]),
    ("Normalize", [F4([[3, 4], [0, 0]])], {}, [F4([[0.6, 0.8], [0, 0]])]),
    ("Normalize", [F4([1e-13, 0])], {}, [F4([0.1, 0])]),
    ("NormalizeL1", [F4([-1, 1, 2])], {}, [F4([-0.25, 0.25, 0.5])]),
    ("NormalizeGradient", [F4([[3, 4], [0, 0]]), F4([[1, 2], [1, 2]])], {},
     [F4([[-0.064, 0.048], [1e12, 2e12]])]),
    ("Moments", [X23], {"axes": [1], "keepdims": 0}, [F4([-1, 2]), F4([2 / 3, 2 / 3])]),
    ("MomentsGradient", [F4([[1, 2, 3]]), F4([[1, 2, 3]]), X23, F4([[-0.5, 0.5, 1.5]])],
     {"axes": [0]}, [F4([[-1, -2, -3], [2, 4, 6]])]),
    ("BatchMatMul", [F4([1, 2]), F4([[1, 2], [3, 4]])], {"trans_b": 1}, [F4([5, 11])]),
    ("BatchMatMul", [F4([1, 2]), F4([3, 4])], {}, [F4([11])]),
    ("CrossEntropy", [F4([[0.2, 0.8], [0.5, 0.5], [0, 1]]), F4([[1, 0], [0.5, 0.5], [1, 0]])], {},
     [F4([1.6094379, 0.6931472, 46.0517])]),
    ("SigmoidCrossEntropyWithLogits", [LOGITS, TARGETS], {}, [F4([0.37777898, 67.18286])]),
    ("SigmoidCrossEntropyWithLogits", [LOGITS, TARGETS], {"log_D_trick": 1},
     [F4([-0.37350643, 33.333332])]),
    ("SigmoidCrossEntropyWithLogits", [LOGITS, TARGETS], {"unjoined_lr_loss": 1},
     [F4([-0.291024, 66.674767])]),
    ("SigmoidCrossEntropyWithLogits", [F4(1), F4(0)], {}, [F4(1.3132616)]),
    ("SigmoidCrossEntropyWithLogitsGradient", [F4([1, 2]), LOGITS, TARGETS], {"log_D_trick": 1},
     [F4([[-0.08964714, 0.29359904, -1 / 6], [0, -2 / 3, 0]])]),
    ("SigmoidCrossEntropyWithLogitsGradient", [F4([1, 2]), LOGITS, TARGETS],
     {"unjoined_lr_loss": 1}, [F4([[-1 / 3, 0.03973431, -1 / 3], [2 / 3, -2 / 3, -0.01580863]])]),
    ("WeightedSigmoidCrossEntropyWithLogits", [LOGITS, TARGETS, TARGETS + 1], {},
     [F4([0.71324855, 100.77429])]),
    ("DotProduct", [F4([1, 2]), F4([3, 4])], {}, [F4([3, 8])]),
    ("SquaredL2Distance", [X23, 0 * X23], {}, [F4([2.5, 7])]),
    ("CosineSimilarity", [np.ones((2, 0), F4)] * 2, {}, [F4([0, 0])]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "expected"), VALUES)
def test_value(run, type, inputs, args, expected):
    found = run(type, inputs, outputs=len(expected), **args)
    for value, right in zip(found, expected, strict=True):
        assert value.dtype == right.dtype
        assert value.shape == right.shape
        np.testing.assert_allclose(value, right, rtol=1e-6, atol=1e-6)


def test_one_number_where_a_list_is_wanted():
    """It is as good as none, as in the original: all axes are reduced."""
    workspace.FeedBlob("X", X23)
    workspace.RunOperatorOnce(core.CreateOperator("ReduceSum", "X", "Y", axes=1, keepdims=0))
    assert workspace.FetchBlob("Y") == X23.sum()


def test_l2_gradient_of_nothing(run):
    """0 where all of X is 0, instead of the original's 0 / 1e-12 and the like."""
    (found,) = run("ReduceL2Gradient", [F4([[1]]), F4([[0, 0]]), F4([[0]])], axes=[1])
    assert found.tolist() == [[0, 0]]
