"""Operators that call Python functions: "Python" and "PythonGradient"."""

import gc

import numpy as np
import pytest

from caffe2.graph.errors import GradientError
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace


def double(inputs, outputs):
    outputs[0].feed(inputs[0].data * 2)


def double_gradient(inputs, outputs):
    x, y, dy = (tensor.data for tensor in inputs)
    np.testing.assert_array_equal(y, 2 * x)
    outputs[0].reshape(dy.shape)
    outputs[0].data[...] = 2 * dy


@pytest.fixture(autouse=True)
def empty():
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.array([1, 2, 3], np.float32))


def test_a_function_and_its_gradient():
    net = core.Net("double")
    y = net.Python(double, double_gradient)(["x"], ["y"])
    gradients = net.AddGradientOperators([y])
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [2, 4, 6])
    np.testing.assert_array_equal(workspace.FetchBlob(gradients["x"]), [2, 2, 2])
    assert net.Proto().op[-1].type == "PythonGradient"
    assert list(net.Proto().op[-1].input) == ["x", "y", "y_autogen_grad"]


def test_only_some_gradients():
    def combine(inputs, outputs):
        outputs[0].feed(inputs[0].data + inputs[1].data)
        outputs[1].feed(inputs[1].data)

    def gradient(inputs, outputs):
        assert len(inputs) == 5 and len(outputs) == 1
        outputs[0].feed(inputs[4].data * 7)

    net = core.Net("some")
    make = net.Python(combine, gradient, grad_output_indices=[0], grad_input_indices=[1])
    a, _ = make(["x", "z"], ["a", "b"])
    workspace.FeedBlob("z", np.ones(3, np.float32))
    assert net.AddGradientOperators([a]).keys() == {"a", "z"}
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("z_grad"), [7, 7, 7])


def test_a_function_without_a_gradient_is_an_error():
    net = core.Net("none")
    y = net.Python(double)(["x"], ["y"])
    with pytest.raises(GradientError, match=r"the Python function double:\d+ has no gradient"):
        net.AddGradientOperators([y])


def test_the_workspace_is_passed():
    def count(inputs, outputs, ws):
        ws.feed_blob("seen", ws.fetch_blob("x") + 1)

    net = core.Net("ws")
    net.Python(count, pass_workspace=True)([], [])
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("seen"), [2, 3, 4])


def test_a_function_that_is_made():
    def make(factor, offset=0):
        return lambda inputs, outputs: outputs[0].feed(inputs[0].data * factor + offset)

    net = core.Net("made")
    net.Python((make, (10,), {"offset": 1}))(["x"], ["y"])
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [11, 21, 31])


def test_in_place():
    def add(inputs, outputs):
        outputs[0].data[...] += 1

    net = core.Net("inplace")
    net.Python(add)(["x"], ["x"])
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("x"), [2, 3, 4])


def test_an_exception_ends_the_net_and_is_the_cause():
    def fails(inputs, outputs):
        raise KeyError("wanted")

    net = core.Net("fails")
    net.Python(fails)(["x"], ["y"])
    with pytest.raises(RuntimeError, match="KeyError: 'wanted'") as error:
        workspace.RunNetOnce(net)
    assert isinstance(error.value.__cause__, KeyError)


def test_an_output_that_is_not_written():
    net = core.Net("nothing")
    net.Python(lambda inputs, outputs: None)(["x"], ["y"])
    with pytest.raises(RuntimeError, match=r"the Python function <lambda>:\d+ wrote no 'y'"):
        workspace.RunNetOnce(net)


def test_functions_live_as_long_as_their_net_or_what_was_created_from_it():
    net = core.Net("gone")
    net.Python(double)(["x"], ["y"])
    message, name = net.Proto().SerializeToString(), net.Name()
    workspace.CreateNet(net)
    del net
    gc.collect()
    workspace.RunNet(name)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [2, 4, 6])
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.ones(1, np.float32))
    with pytest.raises(RuntimeError, match="no Python function of this process, or its net is"):
        workspace.RunNetOnce(message)


def test_an_operator_without_a_net():
    op = core.CreatePythonOperator(double, ["x"], ["y"], grad_f=double_gradient)
    workspace.RunOperatorOnce(op)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), [2, 4, 6])


@pytest.mark.parametrize("argument", ["pickled_builder", "pickled_grad_builder"])
def test_pickled_code_is_refused(argument):
    op = core.CreatePythonOperator(double, ["x"], ["y"])
    op.arg.append(caffe2_pb2.Argument(name=argument, s=b"cos\nsystem\n."))
    with pytest.raises(RuntimeError, match="holds pickled code, which is never run from a net"):
        workspace.RunOperatorOnce(op)
