"""Answers of the original Caffe2 (torch 1.10.2, CPU), asked once and written down."""

import math

import numpy as np
import pytest

from caffe2.testing import NumpyRunner, RefusedError

INF, NAN = math.inf, math.nan
F4, F8, I4, I8 = np.float32, np.float64, np.int32, np.int64
X25 = np.arange(25, dtype=F4).reshape(1, 1, 5, 5) - 12
X16, W9 = np.arange(16, dtype=F4).reshape(1, 1, 4, 4), np.arange(9, dtype=F4).reshape(1, 1, 3, 3)
P32 = F4([[0.2, 0.8], [0, 1], [0.5, 0.5]])
SOFTMAX = [[0.09003057330846786, 0.2447284758090973, 0.6652409434318542], [1 / 3, 1 / 3, 1 / 3]]
LOGITS = F4([[1, 2, 3], [0, 0, 0]])
P23 = F4([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])


def powers(n):
    return (2.0 ** np.arange(n)).astype(F4)


# (type, inputs, arguments, first output)
VALUES = [
    ("Relu", [F4([-INF, -1, 0, 1, INF, NAN])], {}, F4([0, 0, 0, 1, INF, NAN])),
    ("ReluGradient", [F4([-1, 0, 1, NAN]), np.ones(4, F4)], {}, F4([0, 0, 1, 0])),
    ("Sigmoid", [F4([-INF, -1, 0, 1, INF, NAN])], {}, F4([0, 0.26894143, 0.5, 0.7310586, 1, NAN])),
    ("SigmoidGradient", [F4([-1, 0, 1]), np.ones(3, F4)], {}, F4([-2, 0, 0])),
    ("Tanh", [F4([-INF, -1, INF, NAN])], {}, F4([-1, -0.7615942, 1, NAN])),
    ("TanhGradient", [F4([-1, 0, 1, 0.5]), np.ones(4, F4)], {}, F4([0, 1, 0, 0.75])),
    ("Softmax", [F4([[1, 2, 3], [1000, -1000, 0]])], {}, F4([SOFTMAX[0], [1, 0, 0]])),
    ("Softmax", [F4([[-INF, 0], [-INF, -INF]])], {}, F4([[0, 1], [NAN, NAN]])),
    ("Softmax", [np.zeros((2, 2, 2), F4)], {}, np.full((2, 2, 2), 0.25, F4)),
    ("Softmax", [np.zeros((2, 2, 2), F4)], {"axis": 2}, np.full((2, 2, 2), 0.5, F4)),
    ("Softmax", [np.zeros((2, 2, 2), F4)], {"axis": 0}, np.full((2, 2, 2), 0.125, F4)),
    ("LabelCrossEntropy", [P32, I4([1, 0, 1])], {}, F4([0.22314353, 46.0517, 0.6931472])),
    ("LabelCrossEntropy", [P32, I4([[1], [0], [1]])], {}, F4([0.22314353, 46.0517, 0.6931472])),
    ("LabelCrossEntropy", [P32[0], I4([1])], {}, F4([0.22314353])),
    ("LabelCrossEntropy", [P32.reshape(3, 2, 1), I4([1, 0, 1])], {},
     F4([0.22314353, 46.0517, 0.6931472])),
    ("LabelCrossEntropy", [F4([[0.5, -0.5], [NAN, 1], [INF, 1]]), I4([1, 0, 0])], {},
     F4([46.0517, NAN, -INF])),
    ("LabelCrossEntropyGradient", [P32, I4([1, 0, 1]), F4([1, 2, 3])], {},
     F4([[0, -1.25], [-2e20, 0], [0, -6]])),
    ("AveragedLoss", [F4([1, 2, 3])], {}, F4(2)),
    ("AveragedLoss", [F4([])], {}, F4(0)),
    ("AveragedLossGradient", [F4([0, 0, 0]), F4(2)], {}, F4([2 / 3] * 3)),
    ("AveragedLossGradient", [F4(7), F4([1])], {}, F4(1)),
    ("Accuracy", [P32, I4([1, 0, 1])], {}, F4(1 / 3)),
    ("Accuracy", [P32, I4([1, 0, 0])], {}, F4(2 / 3)),
    ("Accuracy", [P32, I4([1, 0, 0])], {"top_k": 2}, F4(1)),
    ("Accuracy", [np.empty((0, 2), F4), np.empty(0, I4)], {}, F4(NAN)),
    *(("Accuracy", [F4([[1, 1, 1, 0]]), I4([label])], {"top_k": k}, F4(label < k and label < 3))
      for k in (1, 2, 3) for label in range(4)),
    ("Accuracy", [F4([[NAN, 0, 1, 0]] * 4), I4([0, 1, 2, 3])], {}, F4(0.5)),
    ("Accuracy", [F4([[NAN, 0, 1, 0]] * 4), I4([0, 1, 2, 3])], {"top_k": 2}, F4(0.75)),
    ("Accuracy", [np.full((4, 10), NAN, F4), I4([0, 1, 2, 3])], {}, F4(1)),
    ("LearningRate", [I8([5])], {"policy": "poly", "base_lr": 1.0, "max_iter": 2, "power": 0.5},
     F4(NAN)),
    ("SoftmaxWithLoss", [LOGITS, I4([2, 0])], {}, F4(SOFTMAX)),
    ("FC", [F4([[1, 2]]), F4([[3, 4], [5, 6]]), F4([0.5, -0.5])], {}, F4([[11.5, 16.5]])),
    ("MatMul", [np.empty((2, 0), F4), np.empty((0, 4), F4)], {}, np.zeros((2, 4), F4)),
    ("Sum", [F4([1, 2]), F4([3, 4]), F4([5, 6])], {}, F4([9, 12])),
    ("Sum", [I4([2**31 - 1]), I4([1])], {}, I4([-(2**31)])),
    ("WeightedSum", [F4([1, 2]), F4([2]), F4([3, 4]), F4([-1])], {}, F4([-1, 0])),
    ("WeightedSum", [F4([1, 2]), F4([2]), F4([[3, 4]]), F4(1)], {}, F4([5, 8])),
    ("WeightedSum", [F4([NAN, 1]), F4([0])], {}, F4([NAN, 0])),
    ("Scale", [F8([1, 2])], {"scale": 2.5}, F8([2.5, 5])),
    ("Scale", [F4([1, 2])], {}, F4([1, 2])),
    ("Copy", [np.array([b"a", b"bc"], dtype=object)], {}, np.array([b"a", b"bc"], dtype=object)),
    ("Cast", [F4([1.7, -1.7, 0, 300.5])], {"to": 2}, I4([1, -1, 0, 300])),
    ("Cast", [F4([1.7, -1.7, 0])], {"to": "int32"}, I4([1, -1, 0])),
    ("Cast", [F4([1.7])], {}, F4([1.7])),
    ("Cast", [F4([NAN, 0, -0.0, 0.5])], {"to": 5}, np.array([True, False, False, True])),
    ("Cast", [I4([300, -1, 256])], {"to": 6}, np.uint8([44, 255, 0])),
    ("Cast", [I8([2**40])], {"to": 2}, I4([0])),
    ("Cast", [I4([2**24 + 1])], {"to": 1}, F4([2**24])),
    ("Add", [F4([[1, 2], [3, 4]]), F4([10, 20])], {}, F4([[11, 22], [13, 24]])),
    ("Add", [F4([[1, 2], [3, 4]]), F4([10, 20])], {"broadcast": 1, "axis": 0},
     F4([[11, 12], [23, 24]])),
    ("Add", [F4([[1, 2], [3, 4]]), F4([10, 20])], {"axis": 0}, F4([[11, 22], [13, 24]])),
    ("Add", [np.zeros((2, 2, 2), F4), F4([[1, 2]])], {"broadcast": 1, "axis": 0},
     F4([[[1, 1], [2, 2]], [[1, 1], [2, 2]]])),
    ("Add", [np.zeros((2, 3), F4), F4([[1], [2]])], {"broadcast": 1, "axis": 0},
     F4([[1, 1, 1], [2, 2, 2]])),
    ("Add", [np.zeros((2, 3), F4), F4([[[7]]])], {"broadcast": 1, "axis": 9},
     np.full((2, 3), F4(7))),
    ("Add", [np.zeros((1, 2, 1, 1), F4), F4([1, 2])],
     {"broadcast": 1, "axis_str": "C", "order": "NCHW"}, F4([1, 2]).reshape(1, 2, 1, 1)),
    ("Sub", [F4(10), F4([[1, 2], [3, 4]])], {}, F4([[9, 8], [7, 6]])),
    ("Sub", [F4([[1], [2]]), F4([[1, 2]])], {}, F4([[0, -1], [1, 0]])),
    ("Mul", [F4([[1, 2], [3, 4]]), F4([10])], {"broadcast": 1}, F4([[10, 20], [30, 40]])),
    ("Mul", [np.ones((0, 3), F4), F4([1, 2, 3])], {}, np.ones((0, 3), F4)),
    ("Div", [I4([7, -7]), I4([2, 2])], {}, I4([3, -3])),
    ("Div", [I8([-7, 7]), I8([2, -2])], {}, I8([-3, -3])),
    ("Div", [F4([1, 0, -1]), F4([0, 0, 0])], {}, F4([INF, NAN, -INF])),
    *((type, [F4([1, NAN, 2, NAN]), F4([1, 1, 1, NAN])], {}, np.array(right, dtype=bool))
      for type, right in (("EQ", [1, 0, 0, 0]), ("NE", [0, 1, 1, 1]), ("LT", [0, 0, 0, 0]),
                          ("LE", [1, 0, 0, 0]), ("GT", [0, 0, 1, 0]), ("GE", [1, 0, 1, 0]))),
    ("LT", [np.array([True, False]), np.array([False, True])], {}, np.array([False, True])),
    ("AddGradient", [F4([[1, 2], [3, 4]]), F4([[0, 0], [0, 0]]), F4([0, 0])], {},
     F4([[1, 2], [3, 4]])),
    ("MulGradient", [F4([[1, 2], [3, 4]]), F4([[1, 2], [3, 4]]), F4([10, 20])], {},
     F4([[10, 40], [30, 80]])),
    ("DivGradient", [F4([1, 2]), F4([4, 5]), F4([0.5, 0.25])], {}, F4([0.5, 0.125])),
    ("Flatten", [np.ones((2, 3, 4), F4)], {}, np.ones((2, 12), F4)),
    ("Flatten", [np.ones((2, 3, 4), F4)], {"axis": 3}, np.ones((24, 1), F4)),
    ("Flatten", [F4(1)], {"axis": 0}, F4([[1]])),
    ("Reshape", [np.ones((2, 3), F4)], {"shape": [1, 0, 2]}, np.ones((1, 3, 2), F4)),
    ("Reshape", [np.ones((0, 3), F4)], {"shape": [0, -1]}, np.ones((0, 0), F4)),
    ("Reshape", [np.ones((0, 3), F4)], {"shape": [-1, 5]}, np.ones((0, 5), F4)),
    ("Reshape", [np.ones((0, 3), F4)], {"shape": [3, -1]}, np.ones((3, 0), F4)),
    ("ConstantFill", [], {"shape": [2], "value": 1}, I8([1, 1])),
    ("ConstantFill", [], {"shape": [2], "value": 1.5}, F4([1.5, 1.5])),
    ("ConstantFill", [], {"value": 1.0}, F4(1)),
    ("ConstantFill", [], {"shape": [2], "value": 2, "dtype": 5}, np.array([True, True])),
    ("ConstantFill", [], {"shape": [2], "dtype": 4}, np.array([b"", b""], dtype=object)),
    ("ConstantFill", [], {"shape": [2], "value": 1e40}, F4([INF, INF])),
    ("ConstantFill", [F4([1, 2])], {"value": 1.0, "extra_shape": [3]}, np.ones((2, 3), F4)),
    ("ConstantFill", [I8([2, 3])], {"input_as_shape": 1, "extra_shape": [2]},
     np.zeros((2, 3, 2), F4)),
    ("ConstantFill", [F4([1, 2]), F4([7])], {}, F4([7, 7])),
    ("GivenTensorFill", [], {"values": [3.0], "shape": []}, F4(3)),
    ("GivenTensorFill", [F4([0, 0])], {"values": [3.0, 4.0]}, F4([3, 4])),
    ("GivenTensorFill", [], {"values": [1, 0], "shape": [2], "dtype": 9}, np.int16([1, 0])),
    ("GivenTensorBoolFill", [], {"values": [1, 0, 2], "shape": [3]}, np.array([True, False, True])),
    ("Iter", [I8([5])], {}, I8([6])),
    ("Conv", [X16, W9, F4([0.5])], {"kernel": 3}, F4([[[[258.5, 294.5], [402.5, 438.5]]]])),
    ("Conv", [X16, W9, F4([0.5])], {"kernel": 3, "pads": [0, 1, 0, 0]},
     F4([[[[171.5, 258.5, 294.5], [279.5, 402.5, 438.5]]]])),
    ("Conv", [X16, W9, F4([0.5])], {"kernel": 3, "pad_t": 1, "pad_l": 0, "pad_b": 0, "pad_r": 0},
     F4([[[[121.5, 154.5], [258.5, 294.5], [402.5, 438.5]]]])),
    ("Conv", [X16, W9, F4([0.5])], {"kernel": 3, "legacy_pad": 2, "stride": 3},
     F4([[[[73.5, 103.5], [139.5, 113.5]]]])),
    ("Conv", [X16, W9, F4([0.5])], {"kernel": 3, "pads": [0, 0, 1, 2], "stride": 2},
     F4([[[[258.5, 186.5], [187.5, 113.5]]]])),
    ("Conv", [X16, W9[:, :, :2, :2]], {"kernel": 2, "legacy_pad": 2, "stride": 3},
     F4([[[[33, 21], [13, 0]]]])),
    ("Conv", [np.ones((1, 1, 2, 2), F4), np.ones((1, 1, 2, 2), F4), F4([10])],
     {"kernel": 2, "no_bias": 1}, F4([[[[14]]]])),
    ("MaxPool", [X25], {"kernel": 3, "stride": 2, "pad": 1},
     F4([[[[-6, -4, -3], [4, 6, 7], [9, 11, 12]]]])),
    ("MaxPool", [X25], {"kernel": 2, "stride": 2, "legacy_pad": 3},
     F4([[[[-6, -4, -3], [4, 6, 7], [9, 11, 12]]]])),
    ("MaxPool", [X25], {"kernels": [2, 3], "strides": [2, 1], "pads": [1, 0, 0, 2]},
     F4([[[[-10, -9, -8, -8, -8], [0, 1, 2, 2, 2], [10, 11, 12, 12, 12]]]])),
    ("MaxPool", [F4([[[[-INF, -INF, -2]]]])], {"kernel_h": 1, "kernel_w": 2}, F4([[[[-INF, -2]]]])),
    ("AveragePool", [X25], {"kernel": 3, "stride": 2, "pad": 1},
     F4([[[[-9, -7.5, -6], [-1.5, 0, 1.5], [6, 7.5, 9]]]])),
    ("AveragePool", [X25], {"kernel": 3, "stride": 2, "pad": 1, "count_include_pad": 1},
     F4([[[[-4, -5, -8 / 3], [-1, 0, 1], [8 / 3, 5, 4]]]])),
    ("AveragePool", [X25], {"kernel": 2, "stride": 2, "legacy_pad": 3},
     F4([[[[-9, -7, -5.5], [1, 3, 4.5], [8.5, 10.5, 12]]]])),
    ("AveragePool", [X25], {"kernel": 2, "stride": 2, "legacy_pad": 2, "count_include_pad": 1},
     F4([[[[-9, -7, -2.75], [1, 3, 2.25], [4.25, 5.25, 3]]]])),
    ("AveragePool", [np.ones((1, 1, 5, 1), F4)],
     {"kernels": [2, 1], "strides": [2, 1], "legacy_pad": 3, "count_include_pad": 1},
     F4([1, 1, 0.5]).reshape(1, 1, 3, 1)),
    ("MaxPool", [F4([1, 2]).reshape(2, 1)], {"global_pooling": 1}, F4([[1], [2]])),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "expected"), VALUES)
def test_value(run, type, inputs, args, expected):
    found = run(type, inputs, **args)[0]
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    else:
        assert found.tolist() == expected.tolist()


def test_other_outputs(run):
    loss = run("SoftmaxWithLoss", [LOGITS, I4([2, 0])])[1]
    assert loss.shape == () and loss.dtype == F4
    weighted = [LOGITS, I4([2, 0]), F4([1, 3])]
    probable = [LOGITS, F4([[0, 0, 1], [0.5, 0.5, 0]])]
    losses = [
        (loss, 0.7531091),
        (run("SoftmaxWithLoss", [LOGITS, I4([2, 0])], scale=2.0)[1], 1.5062182),
        (run("SoftmaxWithLoss", weighted)[1], 0.9258607),
        (run("SoftmaxWithLoss", [LOGITS, I4([2, 0]), F4([0, 0])])[1], 0),
        (run("SoftmaxWithLoss", probable, label_prob=1)[1], 0.7531092),
        (run("SoftmaxWithLoss", [F4([[1000, 0, -1000]]), I4([2])])[1], 2000),
        (run("SoftmaxWithLoss", [F4([[1000, 0, -1000]]), F4([[0, 0, 1]])], label_prob=1)[1],
         46.0517),
        (run("SoftmaxWithLoss", [np.zeros((2, 3, 4), F4), I4([0, 11])])[1], 2.4849067),
        (run("SoftmaxWithLoss", [np.empty((0, 3), F4), np.empty(0, I4)])[1], 0),
    ]  # fmt: skip
    for found, expected in losses:
        assert found == pytest.approx(expected, rel=1e-6)
    rows = [F4([[1, 2], [3, 4]]), F4([[1, 2], [3, 4]]), F4([10, 20])]
    assert run("AddGradient", rows, broadcast=1, axis=0)[1].tolist() == [3, 7]
    assert run("SubGradient", rows)[1].tolist() == [-4, -6]
    assert run("MulGradient", rows)[1].tolist() == [10, 20]
    quotient = F4([[0.1, 0.1], [0.3, 0.2]])
    np.testing.assert_allclose(run("DivGradient", [*rows, quotient])[1], [-0.1, -0.05], rtol=1e-6)
    old_shape = run("Reshape", [np.ones((2, 3), F4), I4([3, 2])])[1]
    assert old_shape.dtype == I4 and old_shape.tolist() == [2, 3]
    old_shape = run("Reshape", [F4(1)], shape=[1])[1]
    assert old_shape.dtype == I8 and old_shape.shape == (0,)
    momentum = run("MomentumSGD", [F4([1, 2]), F4([10, 20]), F4([0.1])], momentum=0.9, nesterov=1)
    np.testing.assert_allclose(momentum, [[8.29, 16.58], [9.1, 18.2]], rtol=1e-6)
    updated = run(
        "MomentumSGDUpdate", [F4([1, 2]), F4([10, 20]), F4([0.1]), F4([100, 200])], momentum=0.9
    )
    np.testing.assert_allclose(updated, [[9.1, 18.2], [9.1, 18.2], [90.9, 181.8]], rtol=1e-6)


def test_gradients_of_the_loss(run):
    def gradient(*inputs, **args):
        return run("SoftmaxWithLossGradient", inputs, **args)[0]

    np.testing.assert_allclose(
        gradient(LOGITS, I4([2, 0]), P23, F4(1), scale=3.0),
        [[0.15, 0.3, -0.45], [-0.75, 0.375, 0.375]],
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        gradient(LOGITS, I4([2, 0]), F4([1, 3]), P23, F4(1)),
        [[0.025, 0.05, -0.075], [-0.375, 0.1875, 0.1875]],
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        gradient(LOGITS, F4([[0, 0, 1], [0.5, 0.5, 0]]), P23, F4(1), label_prob=1),
        [[0.05, 0.1, -0.15], [0, -0.125, 0.125]],
        rtol=1e-5,
        atol=1e-8,
    )


def pool_gradient(run, type, X, **args):
    Y = run(type, [X], **args)[0]
    dY = np.arange(1, Y.size + 1, dtype=F4).reshape(Y.shape)
    return run(f"{type}Gradient", [X, Y, dY], **args)[0].reshape(5, 5)


def test_pooling_gradients(run):
    """Every element that ties for the maximum gets the whole gradient."""
    ties = pool_gradient(run, "MaxPool", np.zeros((1, 1, 5, 5), F4), kernel=3, stride=2, pad=1)
    assert ties.tolist() == [
        [1, 3, 2, 5, 3],
        [5, 12, 7, 16, 9],
        [4, 9, 5, 11, 6],
        [11, 24, 13, 28, 15],
        [7, 15, 8, 17, 9],
    ]
    caffe = pool_gradient(run, "AveragePool", X25, kernel=2, stride=2, legacy_pad=3)
    assert caffe.tolist() == [
        [0.25, 0.25, 0.5, 0.5, 1.5],
        [0.25, 0.25, 0.5, 0.5, 1.5],
        [1.0, 1.0, 1.25, 1.25, 3.0],
        [1.0, 1.0, 1.25, 1.25, 3.0],
        [3.5, 3.5, 4.0, 4.0, 9.0],
    ]
    uneven = pool_gradient(
        run, "AveragePool", X25, kernels=[2, 3], strides=[2, 1], pads=[1, 0, 0, 2]
    )
    np.testing.assert_allclose(uneven[1], [1, 13 / 6, 3.5, 4.75, 8.583333], rtol=1e-6)


@pytest.mark.parametrize(
    ("n", "kernel", "stride", "expected"),
    [
        (4, 1, 3, [1, 8]),
        (4, 4, 3, [7, 12]),
        (5, 3, 2, [3, 14, 24]),
        (5, 4, 3, [7, 28]),
        (7, 2, 3, [3, 24, 64]),
        (7, 3, 2, [3, 14, 56, 96]),
        (8, 3, 2, [7, 28, 112, 192]),
        (8, 4, 3, [7, 60, 224]),
    ],
)
def test_same_padding(run, n, kernel, stride, expected):
    data, ones = powers(n).reshape(1, 1, n), np.ones((1, 1, kernel), F4)
    found = run("Conv", [data, ones], kernels=[kernel], strides=[stride], legacy_pad=2)[0]
    assert found.reshape(-1).tolist() == expected


@pytest.mark.parametrize(
    ("n", "kernel", "stride", "pad", "expected"),
    [
        (4, 2, 3, 0, [2, 8]),
        (4, 2, 3, 1, [1, 8]),
        (4, 3, 2, 1, [2, 8, 8]),
        (4, 3, 4, 2, [1, 8]),
        (4, 2, 5, 1, [1]),
        (5, 2, 5, 1, [1, 16]),
        (6, 3, 2, 1, [2, 8, 32, 32]),
        (6, 2, 3, 1, [1, 8, 32]),
        (7, 3, 4, 2, [1, 16, 64]),
        (7, 2, 2, 1, [1, 4, 16, 64]),
    ],
)
def test_caffe_padding(run, n, kernel, stride, pad, expected):
    found = run(
        "MaxPool",
        [powers(n).reshape(1, 1, n, 1)],
        kernels=[kernel, 1],
        strides=[stride, 1],
        pads=[pad, 0, pad, 0],
        legacy_pad=3,
    )[0]
    assert found.reshape(-1).tolist() == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"kernel": 2, "kernels": [3, 4]}, (7, 6)),
        ({"kernels": [3, 4], "kernel_h": 2, "kernel_w": 2}, (7, 6)),
        ({"kernel": 2, "kernel_h": 3, "kernel_w": 4}, (8, 8)),
        ({"kernel": 3, "stride": 2, "strides": [3, 1]}, (3, 7)),
        ({"kernel": 3, "stride": 2, "stride_h": 1, "stride_w": 1}, (4, 4)),
        ({"kernel": 5, "pad": 1, "pads": [2, 2, 2, 2]}, (9, 9)),
        ({"kernel": 5, "pad": 1, "pad_t": 2, "pad_l": 2, "pad_b": 2, "pad_r": 2}, (7, 7)),
        ({"kernel": 3, "strides": []}, (7, 7)),
        ({"kernel": 3, "order": "nchw"}, (7, 7)),
    ],
)
def test_which_window_argument_counts(run, args, expected):
    assert run("MaxPool", [np.ones((1, 1, 9, 9), F4)], **args)[0].shape == (1, 1, *expected)


ITERATIONS = [0, 1, 2, 3, 5, 9, 10, 11, 12, 20, 21, 50, 100]
RATES = [
    ({"policy": "step", "stepsize": 10, "gamma": 0.5},
     [0.5] * 6 + [0.25] * 3 + [0.125] * 2 + [0.015625, 0.0004883]),
    ({"policy": "exp", "gamma": 0.9},
     [0.5, 0.45, 0.405, 0.3645, 0.295245, 0.1937102, 0.1743392, 0.1569052, 0.1412147, 0.0607883,
      0.0547095, 0.0025769, 1.33e-05]),
    ({"policy": "inv", "gamma": 0.9, "power": 2.0},
     [0.5, 0.1385042, 0.0637755, 0.036523, 0.0165289, 0.0060379, 0.005, 0.0042084, 0.0035909,
      0.001385, 0.0012626, 0.0002363, 6.04e-05]),
    ({"policy": "poly", "power": 2.0, "max_iter": 20},
     [0.5, 0.45125, 0.405, 0.36125, 0.28125, 0.15125, 0.125, 0.10125, 0.08, 0, 0.00125, 1.125, 8]),
    ({"policy": "linearWarmup", "start_multiplier": 0.1, "num_iter": 10},
     [0.05, 0.095, 0.14, 0.185, 0.275, 0.455] + [0.5] * 7),
    ({"policy": "constantWarmup", "multiplier": 0.5, "num_iter": 10}, [0.25] * 6 + [0.5] * 7),
    ({"policy": "alter", "active_first": 1, "active_period": 2, "inactive_period": 3},
     [0.5, 0.5, 0, 0, 0.5, 0, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0.5]),
    ({"policy": "alter", "active_first": 0, "active_period": 2, "inactive_period": 3},
     [0, 0, 0, 0.5, 0, 0.5, 0, 0, 0, 0, 0, 0, 0]),
    ({"policy": "hill", "num_iter": 10, "start_multiplier": 0.1, "gamma": 0.9, "power": 0.5},
     [0.05, 0.095, 0.14, 0.185, 0.275, 0.455, 0.5, 0.3627381, 0.2988071, 0.1581139, 0.1514456,
      0.0821995, 0.0552158]),
    ({"policy": "gate", "multiplier_1": 2.0, "multiplier_2": 0.5, "num_iter": 10},
     [1] * 6 + [0.25] * 7),
    ({"policy": "gate", "num_iter": 10}, [0.5] * 13),
    ({"policy": "slope", "multiplier_1": 2.0, "multiplier_2": 0.5, "num_iter_1": 10,
      "num_iter_2": 20}, [1] * 7 + [0.925, 0.85] + [0.25] * 4),
    ({"policy": "cyclical", "max_lr": 0.8, "stepsize": 10, "decay": 0.9},
     [0.5, 0.53, 0.56, 0.59, 0.65, 0.77, 0.8, 0.77, 0.74, 0.5, 0.527, 0.743, 0.5]),
    ({"policy": "cosine", "max_lr": 0.8, "period": 10, "lr_shrink": 0.9},
     [0.4, 0.3914349, 0.366578, 0.3278624, 0.225, 0.0585651, 0.36, 0.3522914, 0.3299202, 0.324,
      0.3170623, 0.236196, 0.1394713]),
    ({"policy": "cosine", "max_lr": 0.8, "period": 10, "t_mult": 2.0, "lr_shrink": 0.9},
     [0.4, 0.3914349, 0.366578, 0.3278624, 0.225, 0.0585651, 0.36, 0.3580609, 0.3522914, 0.2025,
      0.1778616, 0.18225, 0.2128458]),
    ({"policy": "constantThenLinearWarmup", "constant_warmup_num_iter": 5,
      "linear_warmup_num_iter": 10},
     [0.05] * 5 + [0.23, 0.275, 0.32, 0.365] + [0.5] * 4),
    ({"policy": "compositeCyclical", "constant_warmup_num_iter": 5, "linear_warmup_num_iter": 5,
      "cyclical_max_lr": 0.8, "cyclical_step_size": 10, "cyclical_decay": 0.9},
     [0.05] * 5 + [0.41, 0.5, 0.53, 0.56, 0.8, 0.77, 0.5, 0.69683]),
    ({"policy": "compositeCosine", "constant_warmup_num_iter": 5, "linear_warmup_num_iter": 5},
     [0.05] * 5 + [0.41, 0.25, 0.2498027, 0.2492115, 0.2309017, 0.2270513, 0.0690983, 0.0684073]),
]  # fmt: skip


@pytest.mark.parametrize(("args", "expected"), RATES, ids=lambda value: str(value)[:30])
def test_learning_rate(run, args, expected):
    found = [run("LearningRate", [I8([i])], base_lr=0.5, **args)[0] for i in ITERATIONS]
    assert {rate.shape for rate in found} == {()}
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=6e-8)


REFUSED = [
    ("Relu", [F8([1])], {}, "DOUBLE"),
    ("Relu", [I4([1])], {}, "INT32"),
    ("FC", [np.ones((2, 3), F4), np.ones((4, 3), F4), np.ones(4, F4)], {"axis": 0}, "6 from axis"),
    ("FC", [np.ones(6, F4), np.ones((4, 6), F4), np.ones(4, F4)], {}, "axis"),
    ("Softmax", [np.ones(3, F4)], {}, "axis"),
    ("LabelCrossEntropy", [P32, I4([1, 0, 2])], {}, "holds 2 at position 2"),
    ("LabelCrossEntropy", [P32, I4([1, 0, -1])], {}, "holds -1 at position 2"),
    ("LabelCrossEntropy", [P32, I8([1, 0, 1])], {}, "INT64"),
    ("SoftmaxWithLoss", [LOGITS, I4([0, 7])], {}, "holds 7 at position 1"),
    ("SoftmaxWithLoss", [LOGITS, I4([0, 1])], {"scale": -1.0}, "scale"),
    ("Sum", [F4([1, 2]), F4([3])], {}, "shape"),
    ("Sum", [np.array([True])], {}, "BOOL"),
    ("Sum", [np.uint8([1])], {}, "UINT8"),
    ("Add", [I4([7]), F4([2])], {}, "float32"),
    ("Add", [F4([[1, 2], [3, 4]]), F4([1, 2, 3])], {}, "cannot be broadcast"),
    ("Sub", [F4([[1], [2]]), F4([[1, 2]])], {"broadcast": 1}, "A has (2, 1)"),
    ("Mul", [np.uint8([1]), np.uint8([1])], {}, "UINT8"),
    ("Div", [I4([1, 2]), I4([0, 1])], {}, "a 0"),
    ("WeightedSum", [F4([1, 2]), F4([2, 3])], {}, "weight 0"),
    ("Scale", [I4([1])], {"scale": 2.0}, "INT32"),
    ("Cast", [F4([1])], {"to": 0}, "allowed are"),
    ("Cast", [F4([1])], {"to": "foo"}, "'foo'"),
    ("Flatten", [np.ones((2, 3), F4)], {"axis": -1}, "axis"),
    ("Flatten", [np.ones((2, 3), F4)], {"axis": 3}, "axis"),
    ("Flatten", [F4(1)], {}, "axis"),
    ("ResizeLike", [np.ones(6, F4), np.ones(5, F4)], {}, "6 elements"),
    ("Reshape", [np.ones((2, 3), F4)], {"shape": [-1, -1]}, "one -1"),
    ("Reshape", [np.ones((2, 3), F4)], {"shape": [4]}, "6 elements"),
    ("Reshape", [np.ones((2, 3), F4)], {}, "shape"),
    ("Reshape", [np.ones((2, 3), F4)], {"shape": [2, 1, 1, 3, 0]}, "6 elements"),
    ("ConstantFill", [], {"shape": [2], "value": 1.5, "dtype": 2}, "1.5"),
    ("ConstantFill", [], {"shape": [2], "value": 300, "dtype": 6}, "0 to 255"),
    ("ConstantFill", [], {"shape": [-1]}, "shape"),
    ("ConstantFill", [F4([1])], {"shape": [3]}, "together with an input"),
    ("GivenTensorFill", [], {"values": [1.0, 2.0, 3.0, 4.0, 5.0], "shape": [1]}, "5 values"),
    ("GivenTensorFill", [], {"shape": [2]}, "values"),
    ("UniformFill", [], {"shape": [2], "min": 2.0, "max": 1.0}, "less than max"),
    ("GaussianFill", [], {"shape": [2], "std": -1.0}, "std"),
    ("Conv", [X16, W9], {}, "kernel"),
    ("Conv", [X16, W9], {"kernel": 2}, "kernel is"),
    ("Conv", [X16, W9], {"kernel": 3, "dilation": 2}, "spans 5"),
    ("Conv", [X16, W9], {"kernel": 3, "strides": [2]}, "strides"),
    ("Conv", [X16, W9], {"kernel": 3, "pads": [1, 2]}, "pads"),
    ("Conv", [X16, W9], {"kernel": 3, "order": "FOO"}, "order"),
    ("Conv", [X16, W9], {"kernel": 3, "legacy_pad": 2, "dilation": 2}, "dilation"),
    ("Conv", [X16, W9], {"kernel": 3, "legacy_pad": 1, "pad": 1}, "pads"),
    ("Conv", [X16, W9], {"kernel": 3, "legacy_pad": 4}, "legacy_pad"),
    ("Conv", [X16, W9], {"kernel": 3, "stride": 0}, "stride"),
    ("MaxPool", [X16], {"kernel": 2, "pad": 2}, "pads"),
    *(("MaxPool", [X16], {"kernel": 2, "stride": 3, "pads": pads, "legacy_pad": 3}, "pads")
      for pads in ([1, 1, 2, 2], [0, 0, 2, 2], [2, 2, 0, 0])),
    ("MaxPool", [X16], {"kernel": 2, "dilation": 2}, "dilation"),
    ("MaxPool", [X16], {"global_pooling": 1, "stride": 2}, "stride"),
    ("LearningRate", [I8([1])], {"policy": "fixed"}, "base_lr"),
    ("LearningRate", [I8([1])], {"base_lr": 0.5}, "policy"),
    ("LearningRate", [I8([1])], {"base_lr": 0.5, "policy": "foo"}, "'foo'"),
    ("LearningRate", [I4([1])], {"base_lr": 0.5, "policy": "fixed"}, "INT32"),
    ("Iter", [I8([-3])], {}, "-3"),
    ("Iter", [I8([2**63 - 1])], {}, "allowed"),
    ("MomentumSGDUpdate", [F4([1, 2]), F4([1]), F4([1]), F4([1, 2])], {}, "moment"),
    ("MomentumSGDUpdate", [F4([1, 2]), F4([1, 2]), F4([1, 2]), F4([1, 2])], {}, "lr"),
    # The original reads past its memory, divides by zero or writes garbage; here they are errors.
    ("Accuracy", [P32, I4([1, 2, 1])], {}, "holds 2 at position 1"),
    ("Accuracy", [P32, I4([-1, 1, 1])], {}, "holds -1 at position 0"),
    ("Accuracy", [P32, I4([1, 1, 1])], {"top_k": 0}, "top_k"),
    ("AveragedLossGradient", [F4([1, 2]), F4([])], {}, "one element"),
    ("LabelCrossEntropyGradient", [P32, I4([1, 0, 2]), F4([1, 1, 1])], {}, "holds 2"),
    ("FCGradient", [np.ones((2, 3), F4), np.ones((4, 3), F4), np.ones((2, 5), F4)], {}, "2 x 4"),
    ("ReluGradient", [np.ones((2, 3), F4), np.ones(3, F4)], {}, "shape"),
    ("SoftmaxGradient", [np.ones((2, 3), F4), np.ones((3, 2), F4)], {}, "shape"),
    ("Reshape", [np.empty((0, 3), F4)], {"shape": [2, 2]}, "0 elements"),
    ("MaxPool", [powers(4).reshape(1, 1, 4)], {"kernels": [1], "strides": [5], "legacy_pad": 3},
     "begin at 5"),
    ("XavierFill", [], {}, "dimensions"),
    ("MSRAFill", [], {"shape": [5]}, "dimensions"),
    ("LearningRate", [I8([1])], {"base_lr": 0.5, "policy": "step", "gamma": 0.5}, "stepsize"),
    ("LearningRate", [I8([])], {"base_lr": 0.5, "policy": "fixed"}, "one element"),
    ("Conv", [X16, W9[:0]], {"kernel": 3}, "channels"),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "text"), REFUSED)
def test_refused(run, type, inputs, args, text):
    outputs = 3 if type == "FCGradient" else None
    with pytest.raises(RefusedError) as caught:
        run(type, inputs, outputs, **args)
    assert type in str(caught.value)
    if isinstance(run.runner, NumpyRunner):  # the engine has words of its own
        assert text in str(caught.value)
