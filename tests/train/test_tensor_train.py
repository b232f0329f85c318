"""Tensors and their cores."""

import numpy as np
import pytest

from caffe2.python import core, tt_core, workspace


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


def test_init_tt_cores():
    """Values of the original for its seed, 1234."""
    cores = tt_core.init_tt_cores([3, 2, 2], [2, 5, 2], [1, 2, 3, 1])
    assert cores.shape == (84,)
    assert cores.dtype == np.float32
    np.testing.assert_allclose(
        cores[:4], [-5.14254e-03, 8.95867e-03, -1.56283e-02, -7.45199e-05], rtol=1e-5
    )
    np.testing.assert_allclose(
        cores[-4:], [-0.10964658, 0.8413735, -0.31192315, -0.03603724], rtol=1e-5
    )


def test_matrix_to_tt_is_what_fc_does():
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(20, 6)).astype(np.float32), rng.normal(size=(3, 6)).astype(np.float32)
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("b", np.arange(20, dtype=np.float32))
    sizes = {"inp_sizes": [2, 3], "out_sizes": [4, 5], "tt_ranks": [1, 8, 1]}
    workspace.FeedBlob("cores", tt_core.matrix_to_tt(w, **sizes))
    workspace.RunOperatorOnce(core.CreateOperator("TT", ["x", "b", "cores"], "y", **sizes))
    np.testing.assert_allclose(
        workspace.FetchBlob("y"), x @ w.T + np.arange(20), rtol=1e-4, atol=1e-4
    )
