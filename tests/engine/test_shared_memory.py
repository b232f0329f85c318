"""Blobs that share memory: a write through one of them is seen by whoever uses another."""

import numpy as np
import pytest

from caffe2.python import core, workspace
from caffe2.runtime import workspace as runtime

F4 = np.float32


def coalesce(*names):
    op = core.CreateOperator("UnsafeCoalesce", list(names), [*names, "all"])
    workspace.RunOperatorOnce(op)


def fully_connected(net, x, w):
    net.FC([x, w, "b"], "y")
    return lambda x, w: x @ w.T


def convolution(net, x, w):
    net.Conv([x, w, "b"], "y", kernel=1)
    return lambda x, w: np.einsum("nchw,kchw->nkhw", x, np.broadcast_to(w, (8, 4, 3, 3)))


LAYERS = {
    fully_connected: ((5, 4), (8, 4)),
    convolution: ((2, 4, 3, 3), (8, 4, 1, 1)),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_weights_that_are_written_as_a_part_of_others_are_used(layer):
    workspace.ResetWorkspace()
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(F4) for shape in LAYERS[layer])
    for name, value in {"x": x, "w": w, "b": np.zeros(8, F4)}.items():
        workspace.FeedBlob(name, value)
    coalesce("b", "w")
    net = core.Net("layer")
    expected = layer(net, "x", "w")
    workspace.CreateNet(net)

    def check(factor):
        for _ in range(2):  # the first run packs the weights
            workspace.RunNet(net)
            y = expected(x, factor * w)
            np.testing.assert_allclose(workspace.FetchBlob("y"), y, rtol=1e-5, atol=1e-4)

    everything = np.concatenate([np.zeros(8, F4), w.ravel()])
    check(1)
    workspace.RunOperatorOnce(core.CreateOperator("Scale", ["all"], ["all"], scale=2.0))
    check(2)
    workspace.FeedBlob("all", 3 * everything)
    check(3)
    view = runtime.current().view("all")
    view[:] = 4 * everything
    check(4)
    view[:] = 5 * everything
    check(5)
    del view
    workspace.FeedBlob("w", 6 * w)
    check(6)
    np.testing.assert_array_equal(workspace.FetchBlob("all"), 6 * everything)


def test_what_is_fed_in_another_size_or_type_shares_no_longer():
    workspace.ResetWorkspace()
    workspace.FeedBlob("a", F4([1, 2]))
    workspace.FeedBlob("b", F4([3, 4]))
    coalesce("a", "b")
    workspace.FeedBlob("a", np.int32([7, 8]))
    workspace.FeedBlob("b", F4([[9, 9, 9]]))
    assert workspace.FetchBlob("all").tolist() == [1, 2, 3, 4]
    assert workspace.FetchBlob("a").tolist() == [7, 8]
    assert workspace.FetchBlob("b").tolist() == [[9, 9, 9]]


def test_layers_write_shared_memory_in_plain_order():
    """Between two convolutions values lie in blocks of channels where nobody can see it."""
    workspace.ResetWorkspace()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 16, 3, 3)).astype(F4)
    w = rng.standard_normal((16, 16, 1, 1)).astype(F4)
    for name, value in {"x": x, "w": w, "b": np.zeros(16, F4), "y": x, "other": x}.items():
        workspace.FeedBlob(name, value)
    coalesce("y", "other")
    net = core.Net("layers")
    net.Conv(["x", "w", "b"], "y", kernel=1)
    net.Conv(["y", "w", "b"], "z", kernel=1)
    workspace.RunNetOnce(net)
    y = np.einsum("nchw,kc->nkhw", x, w[:, :, 0, 0])
    everything = workspace.FetchBlob("all")
    np.testing.assert_allclose(everything, np.concatenate([y, x]).ravel(), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(workspace.FetchBlob("y").ravel(), everything[:144])
