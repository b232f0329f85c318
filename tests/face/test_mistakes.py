"""The classic mistakes: the whole text of each error, which has to say what to do."""

import inspect

import numpy as np
import pytest

from caffe2.graph.errors import GradientError
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace


@pytest.fixture(autouse=True)
def empty():
    workspace.ResetWorkspace()


def feed(**blobs):
    for name, value in blobs.items():
        workspace.FeedBlob(name, value)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def here():
    """The line above the call."""
    frame = inspect.currentframe().f_back
    return f"{__file__}:{frame.f_lineno - 1}"


def error_of(run, *arguments):
    with pytest.raises(RuntimeError) as error:
        run(*arguments)
    return str(error.value)


def test_a_blob_that_nobody_wrote():
    net = core.Net("nobody")
    net.Relu("dta", "y")
    line = here()
    feed(data=zeros(1))
    assert error_of(workspace.RunNetOnce, net) == (
        f"Net '{net}' reads 1 blob(s) that do not exist and that no earlier operator writes:\n"
        f"  'dta' (operator 0, Relu, {line}). Did you mean data?"
    )


def test_a_wrong_shape():
    net = core.Net("shape")
    net.Copy("x", "z")
    net.FC(["x", "w", "b"], "y")
    line = here()
    feed(x=zeros(2, 5), w=zeros(3, 4), b=zeros(3))
    assert error_of(workspace.RunNetOnce, net) == (
        f"Operator 1 (FC) of net '{net}': input 0 (X) 'x' has shape (2, 5), 5 features from axis 1 "
        "on, but input 1 (W) 'w' has shape (3, 4), which takes 4\n"
        f"  created at {line}"
    )


def test_an_unknown_operator():
    with pytest.raises(AttributeError) as error:
        core.Net("unknown").AveragedLos("x", "y")
    text = str(error.value)
    # Further names that are near may come behind.
    assert text.startswith(
        "Method AveragedLos is not a registered operator. Did you mean: [AveragedLoss"
    )
    op = core.CreateOperator("AveragedLos", "x", "y")
    assert error_of(workspace.RunOperatorOnce, op).startswith(
        "The net has unknown operator types: 'AveragedLos'. Did you mean AveragedLoss"
    )


def test_an_argument_out_of_range():
    net = core.Net("range")
    net.Conv(["x", "w"], "y", kernel=3, stride=0)
    line = here()
    feed(x=zeros(1, 1, 4, 4), w=zeros(1, 1, 3, 3))
    assert error_of(workspace.CreateNet, net) == (
        f"Operator 0 (Conv) of net '{net}': argument 'stride' = 0 is below the least allowed "
        f"value 1\n  created at {line}"
    )


def test_an_operator_alone():
    feed(x=zeros(2, 5), w=zeros(3, 4), b=zeros(3))
    op = core.CreateOperator("FC", ["x", "w", "b"], ["y"])
    error = error_of(workspace.RunOperatorOnce, op)
    assert error.startswith("Operator (FC): input 0 (X) 'x' has shape (2, 5)")
    assert f"\n  created at {__file__}:" in error
    op.debug_info = "elsewhere.py:3"
    for run in (workspace.RunOperatorOnce, workspace.C.Workspace.current.run):
        assert error_of(run, op).endswith("\n  created at elsewhere.py:3")


def test_a_device_that_is_no_number():
    with pytest.raises(TypeError, match=r"device_type is 'gpu'; .*CPU = 0, CUDA = 1, "):
        core.DeviceOption("gpu")
    assert core.DeviceOption(np.int64(1), 2).device_type == caffe2_pb2.CUDA


def test_a_label_out_of_range():
    net = core.Net("label")
    net.LabelCrossEntropy(["p", "l"], "y")
    line = here()
    feed(p=np.full((2, 3), 1 / 3, np.float32), l=np.array([0, 7], np.int32))
    assert error_of(workspace.RunNetOnce, net) == (
        f"Operator 0 (LabelCrossEntropy) of net '{net}': label 7 at position 1 of input 1 (label) "
        f"'l' is outside of [0, 3)\n  created at {line}"
    )


def test_a_wrong_type():
    net = core.Net("type")
    net.FC(["x", "w", "b"], "y")
    line = here()
    feed(x=np.zeros((2, 5)), w=zeros(3, 5), b=zeros(3))
    assert error_of(workspace.RunNetOnce, net) == (
        f"Operator 0 (FC) of net '{net}': input 0 (X) 'x' has type double; allowed: float. "
        f"A NumPy array of float64 becomes one of float by .astype(np.float32)\n"
        f"  created at {line}"
    )


def test_two_nets_of_one_name():
    net = core.Net("same")
    net.ConstantFill([], "x", shape=[1])
    workspace.CreateNet(net)
    assert error_of(workspace.CreateNet, net) == (
        f"a net '{net}' exists already in this workspace; overwrite=True replaces it"
    )
    workspace.CreateNet(net, overwrite=True)


def test_in_place_where_it_is_not_allowed():
    net = core.Net("inplace")
    net.FC(["x", "w", "b"], "x")
    line = here()
    feed(x=zeros(2, 3), w=zeros(3, 3), b=zeros(3))
    assert error_of(workspace.RunNetOnce, net) == (
        f"Operator 0 (FC) of net '{net}': blob 'x' is both input 0 and output 0, and this operator "
        f"cannot run in-place there\n  created at {line}"
    )


def test_the_gradient_of_something_that_has_none():
    net = core.Net("gradient")
    y = net.FC(["x", "w", "b"], "y")
    net.Accuracy([y, "label"], "accuracy")
    line = here()
    with pytest.raises(GradientError) as error:
        net.AddGradientOperators(["accuracy"])
    assert str(error.value) == (
        "Exception when creating gradient for [Accuracy]: operator Accuracy is in the way of a "
        "gradient: it should not be differentiated\n"
        f"The operator is #1 Accuracy ({line})"
    )


def test_a_blob_and_a_net_that_do_not_exist():
    feed(weights=zeros(1))
    assert error_of(workspace.FetchBlob, "weigths") == (
        "there is no blob 'weigths' in this workspace. Did you mean weights?"
    )
    assert error_of(workspace.RunNet, "nobody") == "there is no net 'nobody' in this workspace"


def test_the_line_survives_saving_and_loading():
    net = core.Net("saved")
    net.Relu("x", "y")
    line = here()
    feed(x=np.zeros(2, np.int64))
    net.SaveSites()
    loaded = core.Net(type(net.Proto()).FromString(net.Proto().SerializeToString()))
    assert loaded.op_sites == [line]
    for saved in (net.Proto(), loaded):
        assert error_of(workspace.RunNetOnce, saved).endswith(f"created at {line}")
    net.StripSites()
    assert net.op_sites == [""] and not net.Proto().op[0].HasField("debug_info")
    assert "created at" not in error_of(workspace.RunNetOnce, net.Proto())
