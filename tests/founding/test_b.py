"""Rows B of the founding documents: the wire format and nets."""

import numpy as np
import pytest
from google.protobuf import text_format

from caffe2.graph.svg import to_svg
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, net_drawer, workspace
from caffe2.python.model_helper import ModelHelper


@pytest.fixture(autouse=True)
def empty():
    workspace.ResetWorkspace()


def init_net():
    net = caffe2_pb2.NetDef(name="init")
    for output, op_type, shape in (
        ("w1", "GaussianFill", [8, 6]),
        ("b1", "ConstantFill", [8]),
        ("w2", "GaussianFill", [3, 8]),
        ("b2", "ConstantFill", [3]),
    ):
        op = net.op.add(type=op_type, output=[output])
        op.arg.add(name="shape", ints=shape)
        if op_type == "GaussianFill":
            op.arg.add(name="mean", f=0.0)
            op.arg.add(name="std", f=0.01)
    return net


def simple_mlp(kind="async"):
    net = caffe2_pb2.NetDef()
    net.name = "simple_mlp"
    net.type = kind
    net.external_input.append("data")
    net.external_output.append("prob")
    for op_type, inputs, output in (
        ("FC", ["data", "w1", "b1"], "fc1_z"),
        ("Relu", ["fc1_z"], "fc1"),
        ("FC", ["fc1", "w2", "b2"], "fc2_z"),
        ("Softmax", ["fc2_z"], "prob"),
    ):
        op = net.op.add()
        op.type = op_type
        op.input.extend(inputs)
        op.output.extend([output])
    return net


def run_mlp(net):
    workspace.FeedBlob("data", np.ones((2, 6), np.float32))
    workspace.CreateNet(net)
    workspace.RunNet(net.name)
    return workspace.FetchBlob("prob")


def test_b1_messages_by_hand():
    op = caffe2_pb2.OperatorDef()
    op.type = "Relu"
    op.input.extend(["conv1_output"])
    op.output.extend(["relu1_output"])
    # Field 4 is the type, fields 1 and 2 are the inputs and outputs: the original's bytes.
    assert op.SerializeToString() == (b"\x0a\x0cconv1_output\x12\x0crelu1_output\x22\x04Relu")
    workspace.FeedBlob("conv1_output", np.array([-1, 2], np.float32))
    workspace.RunOperatorOnce(op)
    np.testing.assert_array_equal(workspace.FetchBlob("relu1_output"), [0, 2])
    workspace.RunNetOnce(init_net())
    np.testing.assert_allclose(run_mlp(simple_mlp()).sum(axis=1), [1, 1], rtol=1e-6)


def test_b2_a_model_groups_nets():
    model = caffe2_pb2.ModelDef(name="mlp", net=[init_net(), simple_mlp()])
    model.metadata["author"] = "someone"
    net = model.net[1]
    net.metadata["version"] = "1.0.3"
    loaded = caffe2_pb2.ModelDef.FromString(model.SerializeToString())
    assert [net.name for net in loaded.net] == ["init", "simple_mlp"]
    assert loaded.metadata["author"] == "someone"
    assert loaded.net[1].metadata["version"] == "1.0.3"
    workspace.RunNetOnce(loaded.net[0])
    assert run_mlp(loaded.net[1]).shape == (2, 3)


@pytest.mark.parametrize("kind", ["simple", "dag", "async", "async_dag", "async_scheduling"])
def test_b3_kinds_of_nets(kind):
    workspace.RunNetOnce(init_net())
    expected = run_mlp(simple_mlp("simple"))
    workspace.ResetWorkspace()
    for name, value in (("w1", 0.5), ("b1", 0.0), ("w2", 0.5), ("b2", 0.0)):
        shape = {"w1": (8, 6), "b1": (8,), "w2": (3, 8), "b2": (3,)}[name]
        workspace.FeedBlob(name, np.full(shape, value, np.float32))
    np.testing.assert_array_equal(run_mlp(simple_mlp(kind)), np.full((2, 3), 1 / 3, np.float32))
    assert expected.shape == (2, 3)


def test_b4_an_init_net_whose_arguments_come_in_two_calls():
    net = caffe2_pb2.NetDef(name="init")
    op = net.op.add()
    op.type = "GaussianFill"
    op.arg.add().name = "shape"
    op.arg.add().ints.extend([200, 50])
    op.arg.add().name = "mean"
    op.arg.add().f = 3.0
    op.arg.add().name = "std"
    op.arg.add().f = 0.01
    op.output.append("w1")
    with pytest.warns(UserWarning, match="the arguments shape, mean, std had name and value in"):
        init = core.Net(net)
    workspace.RunNetOnce(init)
    w1 = workspace.FetchBlob("w1")
    assert w1.shape == (200, 50)
    # 10000 numbers of deviation 0.01: their mean is within 6 deviations of 0.0001.
    assert abs(w1.mean() - 3) < 6e-4 and 0.009 < w1.std() < 0.011


def test_b5_a_net_of_operators():
    net = core.Net("conv_net")
    conv1 = net.Conv(["data", "conv1_w", "conv1_b"], "conv1", kernel=5, stride=1, pad=0,
                     num_output=20)  # fmt: skip
    relu1 = net.Relu(conv1, "relu1")
    conv2 = brew.conv(net, relu1, "conv2", dim_in=20, dim_out=50, kernel=5)
    relu2 = net.Relu(conv2, "relu2")
    pool2 = net.MaxPool(relu2, "pool2", kernel=2, stride=2)
    fc = net.FC(pool2, "fc", dim_in=50 * 4 * 4, dim_out=10)
    net.Softmax(fc, "pred")
    assert [op.type for op in net.param_init.Proto().op] == [
        "XavierFill", "ConstantFill", "XavierFill", "ConstantFill"
    ]  # fmt: skip
    workspace.FeedBlob("data", np.zeros((1, 3, 16, 16), np.float32))
    workspace.FeedBlob("conv1_w", np.zeros((20, 3, 5, 5), np.float32))
    workspace.FeedBlob("conv1_b", np.zeros(20, np.float32))
    workspace.RunNetOnce(net.param_init)
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(workspace.FetchBlob("pred"), np.full((1, 10), 0.1), rtol=1e-6)


def lenet5(model):
    data = model.net.AddExternalInput("data")
    conv1 = brew.conv(model, data, "conv1", dim_in=1, dim_out=20, kernel=5)
    pool1 = brew.max_pool(model, conv1, "pool1", kernel=2, stride=2)
    conv2 = brew.conv(model, pool1, "conv2", dim_in=20, dim_out=50, kernel=5)
    pool2 = brew.max_pool(model, conv2, "pool2", kernel=2, stride=2)
    fc1_input = brew.flatten(model, pool2, "flatten")
    fc1 = brew.fc(model, fc1_input, "fc1", dim_in=1250, dim_out=500)
    relu1 = brew.relu(model, fc1, "relu1")
    fc2 = brew.fc(model, relu1, "fc2", dim_in=500, dim_out=10)
    return brew.softmax(model, fc2, "pred")


def test_b6_layers_on_models_and_nets():
    for model in (ModelHelper(name="layers"), core.Net("plain")):
        init = model.param_init if isinstance(model, core.Net) else model.param_init_net
        pool = brew.average_pool(model, "data", "pool", kernel=2, stride=2)
        brew.fc(model, pool, "fc", dim_in=4, dim_out=2)
        assert [op.output[0] for op in init.Proto().op] == ["fc_w", "fc_b"]


def test_b7_lenet5(tmp_path):
    model = ModelHelper(name="lenet5", init_params=True)
    lenet5(model)
    assert sorted(map(str, model.params)) == [
        "conv1_b", "conv1_w", "conv2_b", "conv2_w", "fc1_b", "fc1_w", "fc2_b", "fc2_w"
    ]  # fmt: skip
    train, init = tmp_path / "lenet5_train.pbtxt", tmp_path / "lenet5_init.pbtxt"
    train.write_text(str(model.net.Proto()))
    init.write_text(str(model.param_init_net.Proto()))
    nets = [text_format.Parse(path.read_text(), caffe2_pb2.NetDef()) for path in (init, train)]
    assert nets[1] == model.net.Proto()
    workspace.FeedBlob("data", np.ones((2, 1, 32, 32), np.float32))
    for net in nets:
        workspace.RunNetOnce(net)
    np.testing.assert_allclose(workspace.FetchBlob("pred").sum(axis=1), [1, 1], rtol=1e-5)


def test_b7_weights_are_used_again():
    model = ModelHelper(name="twice")
    for blob in ("a", "b"):
        brew.fc(model, blob, "shared", dim_in=2, dim_out=2)
    assert len(model.param_init_net.Proto().op) == 2


def test_b8_a_picture():
    pytest.importorskip("pydot")
    model = ModelHelper(name="drawn")
    lenet5(model)
    dot = net_drawer.GetPydotGraph(model.net, rankdir="LR").to_string()
    assert "conv1" in dot and "MaxPool" in dot
    assert to_svg(model.net).startswith("<svg")


def test_b12_nets_in_files(tmp_path):
    net = simple_mlp()
    binary, text = tmp_path / "net.pb", tmp_path / "net.pbtxt"
    binary.write_bytes(net.SerializeToString())
    text.write_text(text_format.MessageToString(net))
    assert caffe2_pb2.NetDef.FromString(binary.read_bytes()) == net
    assert text_format.Parse(text.read_text(), caffe2_pb2.NetDef()) == net
    # A field that nobody knows survives: number 500, text "later".
    later = net.SerializeToString() + b"\xa2\x1f\x05later"
    assert caffe2_pb2.NetDef.FromString(later).SerializeToString() == later
    net.op[0].type, net.op[1].type = "FullyConected", "Rellu"
    with pytest.raises(RuntimeError) as error:
        workspace.RunNetOnce(net)
    for part in ("'FullyConected'", "'Rellu'", "Relu"):
        assert part in str(error.value)
