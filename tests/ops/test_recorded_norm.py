"""Answers of the original Caffe2 (torch 1.10.2, CPU) for normalization, asked once."""

import numpy as np
import pytest

from caffe2.python import core
from caffe2.testing import Operation, RefusedError, check_gradient

F4 = np.float32
X = np.arange(12, dtype=F4).reshape(2, 3, 2) % 5
DY = X[::-1] * 2 - 3
SCALE, BIAS = F4([1, 2, 3]), F4([0.5, 0, -1])
MEAN, VAR = F4([0.1, 0.2, 0.3]), F4([1, 2, 3])
SUMS, SQUARES = F4([9, 14, 24]), F4([60, 80, 150])
BN = [X, SCALE, BIAS, MEAN, VAR]
TRAIN = {"is_test": 0, "momentum": 0.75}
PICTURE = np.arange(10, 90, 10, dtype=np.uint8).reshape(1, 1, 2, 4)
COLORS = F4([[[[-10, 0.4, 1.5, 300, np.nan, 253.2]]]]).repeat(3, 1)
GRID = np.arange(1, 7, dtype=F4).reshape(1, 1, 2, 3)

# (type, inputs, arguments, outputs)
RECORDED = [
    ("SpatialBN", BN, TRAIN, [
        [[[-0.91419935, 0.5], [-2.8283987, 0], [4.0324435, -3.2874742]],
         [[0.5, 1.91419935], [0, 2.8283987], [-3.2874742, -1.4574947]]],
        [0.325, 0.9, 0.5375], [0.9166667, 1.6666666, 3.1458333],
        [1, 3, 1.25], [1.4141994, 1.4141994, 0.6099932]]),
    ("SpatialBN", BN, {"is_test": 1}, [
        [[[0.4000005, 1.3999956], [2.545578, 3.959788], [5.408577, -1.5196145]],
         [[1.3999956, 2.3999906], [3.959788, 5.3739977], [-1.5196145, 0.21243346]]]]),
    ("SpatialBN", [*BN, SUMS, SQUARES], {**TRAIN, "num_batches": 2}, [
        [[[0.04943681, 0.44993743], [0.1898315, 0.94915736], [-0.03923154, -3.8823056]],
         [[0.44993743, 0.85043806], [0.94915736, 1.7084831], [-3.8823056, -2.9215372]]],
        [0.35625, 0.5875, 0.975], [2.53125, 3.482143, 5.0357146],
        [1.125, 1.75, 3], [0.40050063, 0.3796629, 0.32025617]]),
    ("SpatialBN", [X[:0], *BN[1:]], TRAIN,
     [np.empty((0, 3, 2)), MEAN, VAR, [0, 0, 0], [0, 0, 0]]),
    ("SpatialBNGradient", [X, SCALE, DY, MEAN, VAR], {}, [
        [[[-0.08999997, 2.81], [-241.91998, -368.31998], [1056.42, -91.98001]],
         [[-1.1899998, 1.71], [-384.31998, -510.71997], [-37.98001, 181.62]]],
        [-3.6, 67.2, -43.2], [-4, 12, -2]]),
    ("SpatialBNGradient", [X, SCALE, DY, MEAN, VAR, SUMS, SQUARES], {"num_batches": 2}, [
        [[[-8.3875, -7.5125], [-53.2, -59.2], [-495.45, -153.45]],
         [[-11.5125, -10.6375], [-75.2, -81.2], [-99.45, -252.45]]],
        [4.5, 7, 12], [30, 40, 75]]),
    ("BatchMoments", [X], {}, [[1, 3, 1.25], [1.5, 9.5, 4.25]]),
    ("BatchMomentsGradient", [MEAN, VAR, X], {}, [
        [[[0.025, 0.525], [2.05, 3.05], [6.075, 0.075]],
         [[0.525, 1.025], [3.05, 4.05], [0.075, 1.575]]]]),
    ("ChannelStats", [X], {}, [[4, 12, 5], [6, 38, 17]]),
    ("ChannelBackpropStats", [X, MEAN, VAR, DY], {}, [[-3.6, 67.2, -43.2], [-4, 12, -2]]),
    ("AffineChannelGradient", [DY, X, SCALE], {"is_learnable": 1}, [
        [[[-1, 1], [6, 10], [-9, -3]], [[-3, -1], [2, 6], [15, -9]]],
        [-4, 36, -15], [-4, 12, -2]]),
    ("LayerNorm", [F4([[1, 2, 3], [0, 0, 6]])], {}, [
        [[-1.2247357, 0, 1.2247357], [-0.7071064, -0.7071064, 1.4142127]], [[2], [2]],
        [[0.8165027], [2.828429]]]),
    ("LayerNorm", [np.empty((2, 0), F4)], {}, [np.empty((2, 0)), [[0], [0]],
     [[0.0031622776], [0.0031622776]]]),
    ("RMSNorm", [F4([[1, 2, 3]]), F4([1, 1, 2]), F4([0, 1, 0])], {"eps": 1.0, "epsilon": 5.0},
     [[[0.420084, 1.840168, 2.520504]], [0.420084]]),
    ("GroupNorm", [X.repeat(2, 1), np.ones(6, F4), np.zeros(6, F4)], {"group": 3}, [
        [[[-0.99998, 0.99998]] * 4 + [[0.9999988, -0.9999988]] * 2,
         [[-0.99998, 0.99998]] * 4 + [[-0.99998, 0.99998]] * 2],
        [[0.5, 2.5, 2], [1.5, 3.5, 0.5]], [[1.99996, 1.99996, 0.49999937], [1.99996] * 3]]),
    ("LRN", [F4([[1, 2, 3, 4, 5]])], {"size": 4, "alpha": 1.0, "beta": 1.0}, [
        [[1 / 4.5, 2 / 8.5, 3 / 14.5, 4 / 13.5, 5 / 11.25]], [[4.5, 8.5, 14.5, 13.5, 11.25]]]),
    ("PadImage", [GRID], {"pad_t": 1, "pad_l": 2, "pad_b": 0, "pad_r": 1, "mode": "reflect"},
     [[[[[6, 5, 4, 5, 6, 5], [3, 2, 1, 2, 3, 2], [6, 5, 4, 5, 6, 5]]]]]),
    ("PadImage", [GRID], {"pad_t": -1, "pad_l": 0, "pad_b": 0, "pad_r": 0}, [[[[[4, 5, 6]]]]]),
    ("PadImageGradient", [np.arange(18, dtype=F4).reshape(1, 1, 3, 6)],
     {"pad_t": 1, "pad_l": 2, "pad_b": 0, "pad_r": 1, "mode": "edge"},
     [[[[[24, 12, 30], [39, 15, 33]]]]]),
    ("ResizeNearest", [GRID], {"width_scale": 0.7, "height_scale": 0.7}, [[[[[1, 2]]]]]),
    ("ResizeNearest", [GRID, F4([1.5, 2])], {"width_scale": 3.0},
     [[[[[1, 1, 2, 2, 3, 3], [1, 1, 2, 2, 3, 3], [4, 4, 5, 5, 6, 6]]]]]),
    ("ResizeNearest", [GRID], {"width_scale": 0.1, "height_scale": 0.1}, [np.empty((1, 1, 0, 0))]),
    ("UpsampleBilinear", [GRID], {"width_scale": 2.0, "height_scale": 1.5},
     [[[[[1, 1.4, 1.8, 2.2, 2.6, 3], [2.5, 2.9, 3.3, 3.7, 4.1, 4.5],
         [4, 4.4, 4.8, 5.2, 5.6, 6]]]]]),
    ("UpsampleBilinear", [GRID], {"width_scale": 0.7, "height_scale": 0.5}, [[[[[1, 3]]]]]),
    ("UpsampleBilinearGradient", [np.arange(1, 19, dtype=F4).reshape(1, 1, 3, 6), GRID],
     {"width_scale": 2.0, "height_scale": 1.5}, [[[[[9.6, 19.8, 20.1], [31.2, 48.6, 41.7]]]]]),
    ("ChannelShuffle", [np.arange(6, dtype=F4).reshape(1, 6)], {"group": 3},
     [[[0, 2, 4, 1, 3, 5]]]),
    ("SpaceToBatch", [np.arange(4, dtype=F4).reshape(1, 1, 1, 4)],
     {"pad_t": 1, "pad_l": 0, "pad_b": 0, "pad_r": 2}, [
         [[[[0, 0, 0]]], [[[0, 0, 0]]], [[[0, 2, 0]]], [[[1, 3, 0]]]]]),
    ("BatchToSpace", [np.arange(16, dtype=F4).reshape(4, 1, 2, 2)], {"pad": 1},
     [[[[[12, 9], [6, 3]]]]]),
    ("ConvTranspose", [GRID, np.ones((1, 1, 2, 2), F4), F4([1])],
     {"kernels": [2, 2], "strides": [2, 1], "pads": [1, 0, 0, 1], "adjs": [1, 0]},
     [[[[[2, 4, 6], [5, 10, 12], [5, 10, 12], [1, 1, 1]]]]]),
    ("Im2Col", [np.arange(12, dtype=F4).reshape(1, 2, 3, 2)], {"kernel": 2, "order": "NHWC"},
     [[[[[0, 1, 2, 3, 6, 7, 8, 9], [2, 3, 4, 5, 8, 9, 10, 11]]]]]),
    ("PackedInt8BGRANHWCToNCHWCStylizerPreprocess", [PICTURE, F4([1, 2, 3])], {"noise_std": 0.0},
     [[[[[9, 49]], [[18, 58]], [[27, 67]]]]]),
    ("BRGNCHWCToPackedInt8BGRAStylizerDeprocess", [COLORS, F4([1, 20, 30])], {},
     [[[[[0, 10, 20, 255], [1, 20, 30, 255], [2, 21, 31, 255], [255, 255, 255, 255],
         [0, 0, 0, 255], [254, 255, 255, 255]]]]]),
    ("DropoutGrad", [F4([[1, 2, 3, 4]]), np.array([[1, 0, 1, 0]], bool)], {"ratio": 0.25},
     [[[4 / 3, 0, 4, 0]]]),
    ("Dropout", [F4([[1, 2, 3, 4]])], {"is_test": 1}, [[[1, 2, 3, 4]]]),
    ("Dropout", [F4([[1, 2]])], {"is_test": 0, "ratio": 0.0}, [[[1, 2]], [[True, True]]]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "args", "expected"), RECORDED)
def test_recorded(run, type, inputs, args, expected):
    answers = map(np.asarray, expected)
    for found, right in zip(run(type, inputs, len(expected), **args), answers, strict=True):
        assert found.shape == right.shape
        scale = np.abs(right).max(initial=0)
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6 * scale)


REFUSED = [
    ("SpatialBN", BN, {"is_test": 0}, 1),
    ("SpatialBN", BN, {"is_test": 1, "momentum": 1.5}, 1),
    ("SpatialBN", BN, {"is_test": 1, "epsilon": 0.0}, 1),
    ("SpatialBN", BN, {"num_batches": 2}, 5),
    ("Dropout", [X], {"ratio": 1.0}, 2),
    ("Dropout", [X], {}, 1),
    ("DropoutGrad", [X], {}, 1),
]


@pytest.mark.parametrize(("type", "inputs", "args", "outputs"), REFUSED)
def test_refused(run, type, inputs, args, outputs):
    with pytest.raises(RefusedError, match=type):
        run(type, inputs, outputs, **args)


def test_one_element_has_no_variance(run):
    """The original makes the running variance a NaN, for good."""
    inputs = [F4([[3]]), F4([2]), F4([1]), F4([0]), F4([4])]
    y, mean, var, _, _ = run("SpatialBN", inputs, 5, is_test=0, momentum=0.5)
    assert (y.tolist(), mean.tolist(), var.tolist()) == ([[1]], [1.5], [2])


def test_dropout_is_its_mask(run):
    x = np.linspace(-1, 1, 300, dtype=F4).reshape(3, 100)
    y, mask = run("Dropout", [x], 2, ratio=0.25)
    assert mask.dtype == np.bool_ and 180 < mask.sum() < 270
    np.testing.assert_allclose(y, np.where(mask, x / 0.75, 0), rtol=1e-6)


# (type, inputs, outputs, arguments, gradient operator, its inputs, its outputs): gradients come in
# as output_grad, for the first output alone
GRADIENTS = [
    ("LayerNorm", "x", "y m s", {}, "LayerNormGradient", "y_grad y m s x", "x_grad"),
    ("LayerNorm", "x a b", "y m s", {"elementwise_affine": 1},
     "LayerNormGradient", "y_grad y m s x a", "x_grad a_grad b_grad"),
    ("InstanceNorm", "x a b", "y", {}, "InstanceNormGradient", "x a b y_grad",
     "x_grad a_grad b_grad"),
    ("InstanceNorm", "x a b", "y m s", {}, "InstanceNormGradient", "x a b y_grad m s",
     "x_grad a_grad b_grad"),
    ("ResizeNearest", "x", "y", {}, "ResizeNearestGradient", "y_grad x", "x_grad"),
    ("UpsampleNearest", "x", "y", {"scale": 3}, "UpsampleNearestGradient", "x y_grad", "x_grad"),
    ("UpsampleBilinear", "x s", "y", {}, "UpsampleBilinearGradient", "y_grad x s", "x_grad"),
    ("ConvTranspose", "x w", "y", {"kernel": 2}, "ConvTransposeGradient", "x w y_grad",
     "w_grad x_grad"),
    ("SpatialBN", "x s b m v", "y m v sm si", {"is_test": 0},
     "SpatialBNGradient", "x s y_grad sm si", "x_grad s_grad b_grad"),
    ("SpatialBN", "x s b m v", "y", {"is_test": 1},
     "SpatialBNGradient", "x s y_grad m v", "x_grad s_grad b_grad"),
    ("SpatialBN", "x s b m v sums squares", "y m v sm si", {"num_batches": 2},
     "SpatialBNGradient", "x s y_grad sm si s_grad b_grad", "x_grad s_grad b_grad"),
    ("Dropout", "x", "y mask", {"is_test": 0}, "DropoutGrad", "y_grad mask", "x_grad"),
    ("Dropout", "x", "y mask", {"is_test": 1}, "DropoutGrad", "y_grad", "x_grad"),
    ("AffineChannel", "x s b", "y", {}, "AffineChannelGradient", "y_grad s", "x_grad"),
    ("AffineChannel", "x s b", "y", {"is_learnable": 1},
     "AffineChannelGradient", "y_grad x s", "x_grad s_grad b_grad"),
]  # fmt: skip


@pytest.mark.parametrize(("type", "inputs", "outputs", "args", *"gio"), GRADIENTS)
def test_gradient_operators(type, inputs, outputs, args, g, i, o):
    op = core.CreateOperator(type, inputs.split(), outputs.split(), **args)
    gradients = [f"{name}_grad" if not n else None for n, name in enumerate(op.output)]
    (made,), _ = core.GradientRegistry.GetGradientForOp(op, gradients)
    assert (made.type, list(made.input), list(made.output)) == (g, i.split(), o.split())


def test_learnable_affine_channel():
    inputs = {"X": X, "scale": SCALE, "bias": BIAS}
    check_gradient(Operation("AffineChannel", tuple(inputs), ("Y",), {"is_learnable": 1}), inputs)
