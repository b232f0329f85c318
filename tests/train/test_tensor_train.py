"""Tensors and their cores."""

import numpy as np
import pytest

from caffe2.python import tt_core


def test_full_ranks_give_the_tensor_back():
    w = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    cores = tt_core.tt_svd(w, [2, 3, 4], [1, 2, 4, 1])
    assert cores.dtype == np.float32 and cores.size == 2 * 2 + 2 * 3 * 4 + 4 * 4
    first, second, third = np.split(cores, [4, 28])
    product = np.einsum(
        "ia,ajb,bk->ijk", first.reshape(2, 2), second.reshape(2, 3, 4), third.reshape(4, 4)
    )
    np.testing.assert_allclose(product, w, atol=1e-6)


def test_recorded_cores():
    cores = tt_core.tt_svd(np.arange(8.0).reshape(2, 2, 2), [2, 2, 2], [1, 1, 1, 1])
    recorded = [-0.29370412, -0.9558964, -0.5412189, -0.84088176, 7.386112, 9.113186]
    # The sign of a pair of singular vectors is not determined.
    np.testing.assert_allclose(np.abs(cores), np.abs(recorded), rtol=1e-5)


@pytest.mark.parametrize(
    ("sizes", "ranks", "text"),
    [
        ([2, 4], [1, 2], "2 sizes take 3 ranks"),
        ([2, 3], [1, 2, 1], r"sizes \[2, 3\] do not make 8 values"),
        ([2, 4], [1, 3, 1], "rank 3 is more than the 2 that there can be"),
    ],
)
def test_sizes_that_do_not_fit(sizes, ranks, text):
    with pytest.raises(ValueError, match=text):
        tt_core.tt_svd(np.arange(8.0), sizes, ranks)
