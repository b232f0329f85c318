"""Row D8: observers of nets."""

import numpy as np
import pytest

from caffe2.python import core, workspace


@pytest.fixture
def net():
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.float32([1, -4, 9]))
    net = core.Net("watched")
    net.Relu("x", "y")
    net.Sqrt("y", "y")
    net.Log("x", "z")
    return net


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_d8_the_hook_of_the_document(net, kind):
    found = []

    def debug_hook(blob_name, blob_value):
        if np.any(np.isnan(blob_value)):
            found.append(f"NaN detected in {blob_name}")
        elif np.max(blob_value) > 8:
            found.append(f"Large value in {blob_name}: {np.max(blob_value)}")

    net.Proto().type = kind
    net.AttachObserver(lambda op: debug_hook(op.output[0], workspace.FetchBlob(op.output[0])))
    workspace.CreateNet(net)
    workspace.RunNet(net)
    assert sorted(found) == ["Large value in y: 9.0", "NaN detected in z"]


def test_d8_several_before_and_after_and_while_the_net_exists(net):
    workspace.CreateNet(net)
    workspace.RunNet(net)
    told = []
    net.AttachObserver(lambda op: told.append(("before", op.type)), before=True)
    net.AttachObserver(lambda op: told.append(("after", op.type)))
    net.AttachObserver(lambda op: told.append(("last", op.output[0])))
    workspace.RunNet(net)
    assert told[:6] == [
        ("before", "Relu"),
        ("after", "Relu"),
        ("last", "y"),
        ("before", "Sqrt"),
        ("after", "Sqrt"),
        ("last", "y"),
    ]


def test_d8_what_an_observer_raises_ends_the_run(net):
    def stop(op):
        if op.type == "Sqrt":
            raise ValueError("enough")

    net.AttachObserver(stop)
    workspace.CreateNet(net)
    with pytest.raises(RuntimeError, match=r"Sqrt.*ValueError: enough|ValueError: enough"):
        workspace.RunNet(net)
    assert workspace.FetchBlob("y").tolist() == [1, 0, 3]


def test_d8_observers_by_name():
    net = core.Net("timed")
    net.Relu("x", "y")
    net.Relu("y", "z")
    workspace.FeedBlob("x", np.ones(3, np.float32))
    workspace.CreateNet(net)
    timer, counter = net.AddObserver("TimeObserver"), net.AddObserver("RunCountObserver")
    assert net.NumObservers() == 2 and timer.average_time() == 0
    workspace.RunNet(net, 3)
    assert counter.debug_info() == "6 operators ran"
    assert timer.average_time() == pytest.approx(2 * timer.average_time_children()) != 0
    net.RemoveObserver(counter)
    workspace.RunNet(net)
    assert net.NumObservers() == 1 and counter.debug_info() == "6 operators ran"
    with pytest.raises(ValueError, match="there is no Clock; there are RunCountObserver"):
        net.AddObserver("Clock")
