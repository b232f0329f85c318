"""Random choices: WeightedSample, WeightedMultiSampling and lists of ids that are dropped."""

import numpy as np
import pytest

from caffe2.testing.runners import RefusedError

F4, I4, I8 = np.float32, np.int32, np.int64


def test_weighted_sample(run):
    weights, values = F4([[0, 0, 1], [0, 1, 0], [0, 0, 0]]), F4([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    found, chosen = run("WeightedSample", [weights, values], outputs=2)
    assert found.dtype == I4
    assert found.tolist() == [[2], [1], [0]]
    assert chosen.tolist() == [[3], [5], [7]]
    for shape in ((0, 3), (2, 0)):
        (none,) = run("WeightedSample", [np.zeros(shape, F4)])
        assert none.shape == (0,)


def test_weighted_sample_draws_by_weight(run):
    weights = np.tile(F4([1, 0, 2, 5, 0]), (4000, 1))
    (found,) = run("WeightedSample", [weights])
    shares = np.bincount(found[:, 0], minlength=5) / 4000
    # Five standard deviations.
    np.testing.assert_allclose(shares, [1 / 8, 0, 2 / 8, 5 / 8, 0], atol=5 * 0.5 / 4000**0.5)
    assert shares[1] == shares[4] == 0


def test_weighted_sample_refuses(run):
    for inputs, outputs in (
        ([F4([[-1, 0, 1]])], 1),
        ([F4([0, 1])], 1),
        ([F4([[0, 1]])], 2),
        ([F4([[0, 1]]), F4([[1]])], 2),
    ):
        with pytest.raises(RefusedError):
            run("WeightedSample", inputs, outputs=outputs)


def test_weighted_multi_sampling(run):
    for inputs, args, expected in (
        ([F4([0, 1, 1])], {"num_samples": 4}, [1, 1, 1, 1]),
        ([F4([0, 1, 1]), F4([[1, 2]])], {}, [[1, 1]]),
        ([F4([])], {"num_samples": 3}, []),
        ([F4([0, 0])], {"num_samples": 3}, [0, 0, 0]),
    ):
        (found,) = run("WeightedMultiSampling", inputs, **args)
        assert found.dtype == I4
        assert found.tolist() == expected
    (found,) = run("WeightedMultiSampling", [np.cumsum(F4([1, 0, 2, 5]))], num_samples=4000)
    shares = np.bincount(found, minlength=4) / 4000
    np.testing.assert_allclose(shares, [1 / 8, 0, 2 / 8, 5 / 8], atol=5 * 0.5 / 4000**0.5)


@pytest.mark.parametrize(
    ("type", "ids", "lengths"),
    [
        ("SparseDropoutWithReplacement", [-1, -1, -1], [1, 1, 1]),
        ("SparseItemwiseDropoutWithReplacement", [-1, -1, -1], [2, 0, 1]),
    ],
)
def test_sparse_dropout(run, type, ids, lengths):
    inputs = [I8([1, 2, 3]), I4([2, 0, 1])]
    kept = run(type, inputs, outputs=2, ratio=0.0)
    assert [each.tolist() for each in kept] == [[1, 2, 3], [2, 0, 1]]
    dropped = run(type, inputs, outputs=2, ratio=1.0, replacement_value=-1)
    assert [each.tolist() for each in dropped] == [ids, lengths]
    many = [np.arange(4000, dtype=I8), np.ones(4000, I4)]
    found, _ = run(type, many, outputs=2, ratio=0.25, replacement_value=-1)
    assert abs((found == -1).mean() - 0.25) < 5 * 0.44 / 4000**0.5
    for wrong in (I4([2, 2]), I4([4, -1])):
        with pytest.raises(RefusedError, match=r"sums to|holds"):
            run(type, [inputs[0], wrong], outputs=2)


@pytest.mark.parametrize(
    ("bits", "rows"),
    [
        (1, [[0, 0, 0, 0, 0, 0, 128, 64, 24], [0, 0, 128, 191, 0, 0, 128, 63, 28]]),
        (2, [[0, 0, 0, 0, 0, 0, 128, 64, 56, 9], [0, 0, 128, 191, 0, 0, 128, 63, 56, 13]]),
        (4, [[0] * 6 + [128, 64, 176, 244, 7], [0, 0, 128, 191, 0, 0, 128, 63, 208, 244, 10]]),
        (8, [[0] * 6 + [128, 64, 0, 64, 127, 191, 255],
             [0, 0, 128, 191, 0, 0, 128, 63, 0, 64, 166, 217, 255]]),
    ],
)  # fmt: skip
def test_rows_quantized_to_the_nearest(run, bits, rows):
    x = F4([[0, 1, 2, 3, 4], [-1, -0.5, 0.3, 0.7, 1]])
    (found,) = run("FloatToFusedRandRowwiseQuantized", [x], bitwidth=bits, random=0)
    assert found.dtype == np.uint8
    assert found[:, 0].tolist() == [bits, bits]
    assert found[:, 2:].tolist() == rows
    (back,) = run("FusedRandRowwiseQuantizedToFloat", [found])
    step = np.ptp(x, axis=1, keepdims=True) / (2**bits - 1)
    assert (abs(back - x) <= 0.5001 * step).all()


def test_random_rounding_keeps_the_mean(run):
    x = np.tile(F4([0, 1, 0.3]), (1, 3000))
    (found,) = run("FloatToFusedRandRowwiseQuantized", [x], bitwidth=1)
    (back,) = run("FusedRandRowwiseQuantizedToFloat", [found])
    means = back.reshape(3000, 3).mean(axis=0)
    np.testing.assert_allclose(means, [0, 1, 0.3], atol=5 * 0.46 / 3000**0.5)


def test_float16_uniform_fill(run):
    (found,) = run("Float16UniformFill", [], shape=[40, 50], min=1.0, max=3.0)
    assert found.dtype == np.float16
    assert found.shape == (40, 50)
    assert 1 <= found.min() < 1.05
    assert 2.95 < found.max() <= 3
    assert abs(found.mean(dtype=np.float64) - 2) < 5 * 0.58 / 2000**0.5
    with pytest.raises(RefusedError, match="min is 1"):
        run("Float16UniformFill", [], shape=[2], min=1.0, max=1.0)
