"""Accumulate: what an output held counts in the next run."""

import numpy as np
import pytest

from caffe2.python import core, workspace

F4 = np.float32


@pytest.fixture(autouse=True)
def fresh_workspace():
    workspace.SwitchWorkspace("default")
    workspace.ResetWorkspace()


def test_what_the_output_held_counts():
    workspace.FeedBlob("x", F4([1, 2]))
    workspace.FeedBlob("y", F4([10, 20]))
    operator = core.CreateOperator("Accumulate", ["x"], ["y"], gamma=0.5)
    for expected in ([6, 12], [4, 8]):
        workspace.RunOperatorOnce(operator)
        assert workspace.FetchBlob("y").tolist() == expected
    workspace.FeedBlob("x", F4([1, 2, 3]))
    workspace.RunOperatorOnce(operator)
    assert workspace.FetchBlob("y").tolist() == [1, 2, 3]
    workspace.FeedBlob("y", np.array([1, 2, 3]))
    workspace.RunOperatorOnce(core.CreateOperator("Accumulate", ["x"], ["y"]))
    found = workspace.FetchBlob("y")
    assert (found.dtype, found.tolist()) == (F4, [1, 2, 3])
