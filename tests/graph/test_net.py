"""core.Net: names, inputs and outputs, operators, whole nets."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from caffe2.graph.printer import net_text, operator_line
from caffe2.proto import caffe2_pb2
from caffe2.python import core


def new_net(name=""):
    """A net whose name no other test has taken."""
    return core.Net(f"{name}{uuid.uuid4().hex}")


def lines(net):
    return [operator_line(op) for op in net.Proto().op]


def inputs(net):
    return [str(blob) for blob in net.external_inputs]


# -- names ---------------------------------------------------------------------------------


def test_no_two_nets_have_one_name():
    base = uuid.uuid4().hex
    assert [core.Net(base).Name() for _ in range(3)] == [base, f"{base}_1", f"{base}_2"]
    assert core.Net(f"{base}_1").Name() == f"{base}_1_1"
    with core.NameScope("scope"):
        assert core.Net(base).Name() == f"{base}_3"
    message = caffe2_pb2.NetDef(name=base)
    assert core.Net(message).Name() == f"{base}_4"
    assert message.name == base
    assert core.Net(message, inplace=True).Proto() is message
    assert message.name == f"{base}_5"


def test_nets_without_a_name_get_one():
    names = [core.Net("").Name(), core.Net(caffe2_pb2.NetDef()).Name()]
    assert all(names) and names[0] != names[1]


@pytest.mark.parametrize("wrong", [3, None, b"x"])
def test_a_net_is_made_from_a_name_or_a_message(wrong):
    with pytest.raises(TypeError, match="a Net is made from a name or a NetDef"):
        core.Net(wrong)


def test_outputs_without_a_name_get_one():
    net = new_net()
    name = net.Name()
    assert [str(net.Relu("a")), str(net.Relu("a"))] == [f"{name}/Relu", f"{name}/Relu_2"]
    assert str(net.Relu("a", 1)) == f"{name}/Relu:0"
    assert [str(blob) for blob in net.Reshape("a", 2, shape=[1])] == [
        f"{name}/Reshape:0",
        f"{name}/Reshape:1",
    ]
    assert net.NextName("Relu", 0) == f"{name}/Relu_2:0"
    assert [net.NextName(), net.NextName()] == [f"{name}_blob_0", f"{name}_blob_1"]
    with core.NameScope("s"):
        assert str(net.Relu("a")) == f"s/{name}/Relu"
        assert net.NextName("p") == f"{name}/p"


def test_names_in_a_loaded_net_are_taken():
    message = caffe2_pb2.NetDef(name=uuid.uuid4().hex)
    message.op.add(type="Relu", input=["x"], output=[f"{message.name}/Relu"])
    net = core.Net(message)
    assert str(net.Relu("x")) == f"{message.name}/Relu_2"


def test_operators_with_several_needed_outputs_get_them_all():
    net = new_net()
    outputs = net.SoftmaxWithLoss(["x", "label"])
    assert [str(blob) for blob in outputs] == [f"{net}/SoftmaxWithLoss:{i}" for i in range(2)]


def test_next_blobs():
    net = new_net()
    assert [str(net.NextBlob("p")) for _ in range(3)] == ["p", "p_auto_0", "p_auto_1"]
    net.Relu("x", "y")
    assert str(net.NextBlob("x")) == "x_auto_0"
    with core.NameScope("s"):
        assert [str(net.NextBlob("p")), str(net.NextScopedBlob("p"))] == ["p_auto_2", "s/p"]
        assert str(net.NextScopedBlob()) == "s/unnamed"


# -- operators -----------------------------------------------------------------------------


def test_row_B5_layers_of_a_plain_net():
    net = new_net()
    conv1 = net.Conv(["data", "conv1_w", "conv1_b"], "conv1", kernel=5, stride=1, pad=0)
    relu1 = net.Relu(conv1, "relu1")
    pool1 = net.MaxPool(relu1, "pool1", kernel=2, stride=2)
    pred = net.Softmax(net.FC([pool1, "fc_w", "fc_b"], "fc"), "pred")
    assert isinstance(pred, core.BlobReference) and pred.Net() is net
    assert net_text(net) == (
        f"net {net}\n"
        "inputs: data, conv1_w, conv1_b, fc_w, fc_b\n"
        "outputs:\n"
        "conv1 = Conv(data, conv1_w, conv1_b, kernel=5, stride=1, pad=0)\n"
        "relu1 = Relu(conv1)\n"
        "pool1 = MaxPool(relu1, kernel=2, stride=2)\n"
        "fc = FC(pool1, fc_w, fc_b)\n"
        "pred = Softmax(fc)\n"
    )


def test_row_B5_sizes_stand_for_weights():
    net = new_net()
    with core.NameScope("s"):
        net.Conv("data", "conv", dim_in=4, num_output=6, kernels=[3, 5], group=2)
    net.Conv("x", "nhwc", dim_in=3, dim_out=6, kernel_h=3, kernel_w=5, order="NHWC", no_bias=1)
    net.FC("y", "fc", dim_in=8, dim_out=10)
    assert lines(net) == [
        "s/conv = Conv(s/data, s/conv_w, s/conv_b, kernels=[3, 5], group=2)",
        'nhwc = Conv(x, nhwc_w, kernel_h=3, kernel_w=5, order="NHWC", no_bias=1)',
        "fc = FC(y, fc_w, fc_b)",
    ]
    assert net.param_init.Name() == f"{net}_init"
    assert lines(net.param_init) == [
        "s/conv_w = XavierFill(shape=[6, 2, 3, 5])",
        "s/conv_b = ConstantFill(shape=[6])",
        "nhwc_w = XavierFill(shape=[6, 3, 5, 3])",
        "fc_w = XavierFill(shape=[10, 8])",
        "fc_b = ConstantFill(shape=[10])",
    ]
    with pytest.raises(ValueError, match="FC 'fc2' without weights needs dim_in and dim_out"):
        net.FC("y", "fc2", dim_out=10)
    with pytest.raises(ValueError, match="dim_in should be divisible by group, got 3 and 2"):
        net.Conv("y", "c2", dim_in=3, dim_out=10, kernel=3, group=2)


def test_with_weights_a_number_of_outputs_is_just_an_argument():
    net = new_net()
    net.Conv(["data", "w", "b"], "conv", kernel=5, num_output=20)
    assert lines(net) == ["conv = Conv(data, w, b, kernel=5, num_output=20)"]


def test_unknown_operators_are_named_with_near_ones():
    net = new_net()
    for name in ("Reluu", "relu"):
        with pytest.raises(AttributeError, match=rf"Method {name} .*Did you mean: \[.*Relu"):
            getattr(net, name)
    with pytest.raises(AttributeError, match="Attribute __foo not found"):
        _ = getattr(net, "__foo")
    assert {"Relu", "AddExternalInput"} <= set(dir(net))
    assert net.Relu.__doc__


def test_no_output_gives_none():
    assert new_net().StopGradient("x", []) is None


def test_op_sites_name_the_line_of_the_user():
    net = new_net()
    net.Relu("a", "b")
    net.Proto().op.extend([core.CreateOperator("Relu", "b", "c")])
    core.BlobReference("c", net).Relu([], "d")
    net.AddGradientOperators(["d"])
    first, between, by_reference, *gradients = net.op_sites
    assert first.startswith(__file__) and by_reference.startswith(__file__)
    assert int(by_reference.rpartition(":")[2]) == int(first.rpartition(":")[2]) + 2
    assert between == ""
    assert {site.rpartition(":")[0] for site in gradients} == {__file__}
    del net.Proto().op[1:]
    assert net.op_sites == [first]


# -- inputs and outputs ----------------------------------------------------------------------


def test_blobs_used_before_they_are_made_are_inputs():
    net = new_net()
    net.Sum(["a", "b"], "c")
    net.Relu("c", "a")
    net.Relu("a", "a")
    assert inputs(net) == ["a", "b"]


def test_row_B7_external_inputs_are_declared_unscoped():
    net = new_net()
    with core.NameScope("s"):
        assert net.AddExternalInput("data") == "data"
        assert net.AddScopedExternalInputs("data") == "s/data"
        net.Relu("data", "y")
    assert net.AddExternalInput("a", core.BlobReference("b")) == ["a", "b"]
    assert net.AddExternalInputs(["c"]) == "c"
    assert inputs(net) == ["data", "s/data", "a", "b", "c"]
    assert net.is_external_input("a") and not net.is_external_input("y")


def test_inputs_are_declared_once():
    net = new_net()
    net.Relu("a", "b")
    net.AddExternalInput("b")
    before = net.Proto().SerializeToString()
    for twice in (["a"], ["b"], ["q", "q"]):
        with pytest.raises(AssertionError, match=f"already contains an input named {twice[0]}"):
            net.AddExternalInput(*twice)
    with pytest.raises(ValueError, match="no external input"):
        net.AddExternalInput()
    with pytest.raises(TypeError, match="a blob's name is a string"):
        net.AddExternalInput(3)
    assert net.Proto().SerializeToString() == before


def test_outputs_have_to_exist():
    net = new_net()
    with core.NameScope("s"):
        net.Relu("a", "pred")
        net.AddScopedExternalOutputs("pred")
    net.AddExternalOutput(net.Relu("a", "b"), "a")
    assert [str(blob) for blob in net.external_outputs] == ["s/pred", "b", "a"]
    with pytest.raises(AssertionError, match=r"s/perd is not defined .*did you mean s/pred"):
        net.AddExternalOutput("s/perd")


def test_what_a_net_defines_and_uses():
    net = new_net()
    net.AddExternalInput("i")
    net.Relu("i", "o")
    assert [net.BlobIsDefined(blob) for blob in ("i", "o", core.BlobReference("o"), "z")] == [
        True, True, True, False,
    ]  # fmt: skip
    assert net.GetBlobRef("o").Net() is net
    with pytest.raises(KeyError, match="does not define blob outt"):
        net.GetBlobRef("outt")
    assert [net.UsesBlob(blob) for blob in ("i", "o", "z")] == [True, True, False]
    assert net.UsedBlobNames() == {"i", "o"}


def test_changes_of_the_message_are_noticed():
    net = new_net()
    net.Relu("a", "b")
    net.Proto().op.extend([core.CreateOperator("Relu", "b", "c")])
    net.Proto().external_input.append("z")
    assert net.BlobIsDefined("c") and net.BlobIsDefined("z")
    net.Relu(["c"], "d")
    net.Relu("z", "e")
    assert inputs(net) == ["a", "z"]
    del net.Proto().op[:]
    assert not net.BlobIsDefined("b")
    net.Relu("b", "f")
    assert inputs(net) == ["a", "z", "b"]


def test_a_net_of_a_message_declares_what_it_reads():
    message = caffe2_pb2.NetDef(name="loaded", external_input=["x"])
    message.op.add(type="FC", input=["x", "filter", "b"], output=["y"])
    message.op.add(type="Relu", input=["y"], output=["x"])
    assert inputs(core.Net(message)) == ["x", "filter", "b"]
    assert list(message.external_input) == ["x"]


def test_row_B4_arguments_written_in_two_steps_are_joined():
    message = caffe2_pb2.NetDef(name="init_by_hand")
    op = message.op.add(type="GaussianFill", output=["w1"])
    op.arg.add().name = "shape"
    op.arg.add().ints.extend([784, 256])
    op.arg.add().name = "mean"
    op.arg.add().f = 0.0
    op.arg.add(name="std", f=0.5)
    op.arg.add(name="seedless")
    message.op.add(type="ConstantFill", output=["b1"]).arg.add(name="shape", ints=[256])
    before = message.SerializeToString()
    with pytest.warns(UserWarning, match=r"#0 GaussianFill: the arguments shape, mean had name"):
        net = core.Net(message)
    assert lines(net) == [
        "w1 = GaussianFill(shape=[784, 256], mean=0, std=0.5, seedless=[])",
        "b1 = ConstantFill(shape=[256])",
    ]
    assert message.SerializeToString() == before


@pytest.mark.parametrize("kind", ["simple", "dag", "async_scheduling"])
def test_row_B3_net_types_stay(kind):
    net = new_net()
    net.Proto().type = kind
    assert net.Clone(uuid.uuid4().hex).Proto().type == core.Net(net.Proto()).Proto().type == kind


# -- whole nets ------------------------------------------------------------------------------


def test_append_net():
    net, other = new_net(), new_net()
    net.Relu("a", "b")
    other.Relu("b", "c")
    other.Relu("q", "b")
    other.AddExternalInput("z")
    other.AddExternalOutput("c")
    sites = [*net.op_sites, *other.op_sites]
    assert net.AppendNet(other) is net
    assert lines(net) == ["b = Relu(a)", "c = Relu(b)", "b = Relu(q)"]
    assert inputs(net) == ["a", "q", "z"]
    assert net.external_outputs == ["c"]
    assert net.op_sites == sites


def test_append_net_keeps_inputs_that_the_other_net_writes():
    first, second = new_net(), new_net()
    first.Sum(["in1", "in2"], "s")
    second.Sum(["in3", "in4"], "in1")
    first.AppendNet(second)
    assert inputs(first) == ["in1", "in2", "in3", "in4"]


def test_append_net_to_a_device():
    net, other = new_net(), new_net()
    other.Relu("a", "b")
    net.Relu("x", "y")
    net.AppendNet(other, device_option=core.DeviceOption(caffe2_pb2.CUDA, 1))
    assert lines(net)[1] == "b = Relu(a) device={device_type: 1 device_id: 1}"
    assert lines(other) == ["b = Relu(a)"]


def test_operators_are_appended_and_inserted():
    net = new_net()
    net.AppendNet([core.CreateOperator("Relu", "a", "b")])
    net.extend_ops([core.CreateOperator("Relu", "c", "d")])
    net.insert_op_at_idx(core.CreateOperator("Sigmoid", "a", "a2"), 1)
    assert lines(net) == ["b = Relu(a)", "a2 = Sigmoid(a)", "d = Relu(c)"]
    assert inputs(net) == ["a", "c"]
    assert len(net.op_sites) == 3 and net.BlobIsDefined("a2")


def test_clone():
    net = new_net()
    net.Relu("a", "b")
    net.Sum(["a", "b"], "c")
    net.AddExternalOutput("c")
    net.Proto().type = "dag"
    net.add_attribute("k", "v")
    name = uuid.uuid4().hex
    whole = net.Clone(name, blob_remap={"a": "A", "c": core.BlobReference("C")})
    assert net_text(whole) == (
        f"net {name} type=dag\ninputs: A\noutputs: C\nb = Relu(A)\nC = Sum(A, b)\n"
    )
    assert whole.op_sites == net.op_sites and whole.get_attributes("k") == ["v"]
    part = net.Clone(name, op_id_mask=[1], update_external_list=True)
    assert net_text(part) == (f"net {name}_1 type=dag\ninputs: a, b\noutputs: c\nc = Sum(a, b)\n")
    assert part.op_sites == net.op_sites[1:]


def test_arguments_devices_and_attributes_of_a_net():
    net = new_net()
    net.Relu("a", "b")
    net.AddArgument("a", 3)
    net.RunAllOnGPU(gpu_id=2, use_cudnn=True)
    assert (net.Proto().arg[0].name, net.Proto().arg[0].i) == ("a", 3)
    assert net.Proto().device_option == core.DeviceOption(caffe2_pb2.CUDA, 2)
    assert lines(net) == ["b = Relu(a) engine=CUDNN"]
    assert net.get_attributes("nothing") == []


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (2.5, "c = GivenTensorFill(shape=[], values=[2.5])"),
        ([1, 2], "c = GivenTensorInt64Fill(shape=[2], values=[1, 2])"),
        (np.array([[1.5, 2]]), "c = GivenTensorDoubleFill(shape=[1, 2], values=[1.5, 2])"),
        (np.array([True]), "c = GivenTensorBoolFill(shape=[1], values=[1])"),
        (["a", b"b"], 'c = GivenTensorStringFill(shape=[2], values=["a", "b"])'),
    ],
)
def test_constants(value, line):
    net = new_net()
    assert str(net.Const(value, "c")) == "c"
    assert lines(net) == [line]


def test_constants_of_another_type():
    net = new_net()
    net.Const(np.array([1, 2]), "a", dtype=core.DataType.FLOAT)
    net.Const([1, 2], dtype=np.int32)
    assert lines(net) == [
        "a = GivenTensorFill(shape=[2], values=[1, 2])",
        f"{net}/GivenTensorIntFill:0 = GivenTensorIntFill(shape=[2], values=[1, 2])",
    ]
    with pytest.raises(ValueError, match="no operator holds complex128 values; allowed are float"):
        net.Const(1j)


def test_ssa():
    net = new_net()
    net.Relu("x", "y")
    net.Relu("y", "y")
    ssa, versions = core.get_ssa(net)
    assert ssa == [([("x", 0)], [("y", 1)]), ([("y", 1)], [("y", 2)])]
    assert versions == {"x": 0, "y": 2}
    assert core.get_undefined_blobs(ssa) == {"x"}
    assert core.get_output_producers(ssa) == {("y", 1): 0, ("y", 2): 1}


def test_names_and_outputs_as_lists():
    net = new_net()
    assert core.get_net_name(net) == core.get_net_name(net.Proto()) == net.Name()
    assert core.get_net_name("a") == "a"
    assert [core.output_to_list(value) for value in (None, "a", ("a", "b"), ["a"])] == [
        [], ["a"], ["a", "b"], ["a"],
    ]  # fmt: skip
