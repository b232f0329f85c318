"""The state of random numbers in a blob."""

import numpy as np
import pytest

from caffe2.python import core, workspace


def net(kind="simple"):
    made = core.Net("dropout")
    made.Proto().type = kind
    made.GaussianFill([], "noise", shape=[3])
    made.Dropout("noise", ["kept", "mask"], ratio=0.5)
    made.KeepRandomState("state")
    return made


def run(made):
    workspace.RunNet(made)
    return workspace.FetchBlob("noise"), workspace.FetchBlob("mask")


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_a_net_goes_on_with_the_numbers_that_it_would_have_drawn(kind):
    workspace.ResetWorkspace()
    first = net(kind)
    workspace.CreateNet(first)
    run(first)
    saved = workspace.FetchBlob("state")
    assert saved.dtype == np.int64
    assert saved[1] == 1
    expected = [run(first) for _ in range(3)]
    assert not np.array_equal(expected[0][0], expected[1][0])

    workspace.ResetWorkspace()
    workspace.CreateNet(core.Net("other"))
    workspace.FeedBlob("state", saved)
    second = net(kind)
    workspace.CreateNet(second)
    for wanted in expected:
        for found, value in zip(run(second), wanted, strict=True):
            np.testing.assert_array_equal(found, value)
    assert workspace.FetchBlob("state").tolist() == [saved[0], 4]


@pytest.mark.parametrize("wrong", [np.float32([1, 2]), np.int64([1]), np.int64([1, -1]), "text"])
def test_what_is_no_state_is_refused(wrong):
    workspace.ResetWorkspace()
    made = net()
    workspace.CreateNet(made)
    workspace.FeedBlob("state", wrong)
    with pytest.raises(RuntimeError, match=r"'dropout.*'state'.*two int64: seed and number"):
        workspace.RunNet(made)
