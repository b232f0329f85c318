"""ModelHelper: nets, parameters, gradients."""

from __future__ import annotations

import pytest

from caffe2.graph.printer import net_text, operator_line
from caffe2.proto import caffe2_pb2
from caffe2.python import brew, core, model_helper
from caffe2.python.modeling.initializers import (
    ExternalInitializer,
    Initializer,
    update_initializer,
)
from caffe2.python.modeling.parameter_info import ParameterInfo, ParameterTags


def new_model(**options):
    return model_helper.ModelHelper(name="model", **options)


def lines(net):
    return [operator_line(op) for op in net.Proto().op]


def test_row_B7_a_model_has_two_nets():
    model = model_helper.ModelHelper(name="unique_lenet", init_params=True)
    assert (model.net.Name(), model.param_init_net.Name()) == ("unique_lenet", "unique_lenet_init")
    assert model.Proto() is model.net.Proto()
    assert model.InitProto() is model.param_init_net.Proto()
    assert model.net.AddExternalInput("data") == model.net.external_inputs[0]
    assert model.AddExternalInput("label") == "label"
    assert model_helper.ModelHelper().name == "model"


def test_row_B7_parameters_are_named_after_their_layer():
    model = new_model()
    with core.NameScope("a"):
        brew.conv(model, "x", "conv1", dim_in=1, dim_out=2, kernel=3)
    brew.fc(model, "y", "fc", 3, 4)
    assert model.params == ["a/conv1_w", "a/conv1_b", "fc_w", "fc_b"]
    assert (model.weights, model.biases) == (["a/conv1_w", "fc_w"], ["a/conv1_b", "fc_b"])
    assert all(isinstance(param, core.BlobReference) for param in model.params)
    info = model.get_param_info(model.params[0])
    assert (info.name, info.shape, info.size, str(info)) == (
        "a/conv1_w", [2, 1, 3, 3], 18, "a/conv1_w",
    )  # fmt: skip
    assert model.get_param_info(core.BlobReference("other")) is None


def test_row_B7_parameters_are_used_again():
    model = new_model()
    brew.fc(model, "x", "fc", 4, 4)
    brew.fc(model, "fc", "fc", 4, 4)
    assert model.params == ["fc_w", "fc_b"]
    assert lines(model.param_init_net) == [
        "fc_w = XavierFill(shape=[4, 4])",
        "fc_b = ConstantFill(shape=[4])",
    ]
    with pytest.raises(AssertionError, match=r"'fc_w' exists with shape \[4, 4\]; .* \[5, 4\]"):
        brew.fc(model, "fc", "fc", 4, 5)


def test_parameters_can_come_from_elsewhere():
    model = new_model(init_params=False)
    brew.fc(model, "x", "fc", 3, 4)
    assert model.params == ["fc_w", "fc_b"]
    assert lines(model.param_init_net) == []


def test_models_can_share_parameters():
    first = new_model()
    second = model_helper.ModelHelper(name="second", param_model=first)
    brew.fc(first, "x", "fc", 3, 4)
    brew.fc(second, "x", "fc", 3, 4)
    assert second.params is first.params and len(first.params) == 2
    assert len(second.param_init_net.Proto().op) == 2


def test_parameters_of_a_scope():
    model = new_model()
    brew.fc(model, "x", "f", 1, 1)
    with core.NameScope("a"):
        brew.fc(model, "x", "f", 1, 1)
        with core.NameScope("b"):
            brew.fc(model, "x", "f", 1, 1)
        assert model.GetParams() == ["a/f_w", "a/f_b", "a/b/f_w", "a/b/f_b"]
        assert model.GetParams("") == model.params
    assert model.GetParams("a/b") == model.GetParams("a/b/") == ["a/b/f_w", "a/b/f_b"]
    assert model.GetParams("zz") == []


def test_parameters_have_tags():
    model = new_model()
    fill = Initializer("ConstantFill")
    model.create_param("w", [2], fill, tags=ParameterTags.WEIGHT)
    model.create_param(core.BlobReference("b"), [2], fill, tags=[ParameterTags.BIAS])
    model.create_param("mean", [2], fill, tags=ParameterTags.COMPUTED_PARAM)
    model.AddParameter(core.BlobReference("more"))
    assert model.params == ["w", "b", "more"]
    assert (model.weights, model.biases) == (["w"], ["b"])
    assert model.GetComputedParams() == ["mean"]
    assert model.GetAllParams() == ["w", "b", "more", "mean"]
    with pytest.raises(TypeError, match="a parameter is a BlobReference"):
        model.AddParameter("name")
    with pytest.raises(TypeError, match="Unsupported type for param_name"):
        model.create_param(3, [2], fill)


def test_parameters_do_not_occur_twice():
    model = new_model()
    brew.fc(model, "x", "fc", 3, 4)
    model.Validate()
    model.params.append(core.BlobReference("fc_w"))
    with pytest.raises(AssertionError, match=r"Duplicate params: \['fc_w'\]"):
        model.Validate()
    with pytest.raises(AssertionError, match="Duplicate params"):
        model.AddGradientOperators(["fc"])


def test_gradients_of_parameters():
    model = new_model()
    brew.fc(model, "x", "fc", 3, 4)
    brew.fc(model, "x", "side", 3, 4)
    with pytest.raises(RuntimeError, match="Need to call AddGradientOperators first"):
        model.GetOptimizationParamInfo()
    grad_map = model.AddGradientOperators(["fc"])
    assert grad_map["x"] == "x_grad" and model.grad_map is grad_map
    assert model.param_to_grad == {"fc_w": "fc_w_grad", "fc_b": "fc_b_grad"}
    assert [(info.name, info.grad) for info in model.GetOptimizationParamInfo()] == [
        ("fc_w", "fc_w_grad"), ("fc_b", "fc_b_grad"),
    ]  # fmt: skip
    assert [i.name for i in model.GetOptimizationParamInfo(model.weights)] == ["fc_w"]
    with pytest.raises(RuntimeError, match="cannot run AddGradientOperators twice"):
        model.AddGradientOperators(["fc"])


def test_gradients_can_be_added_after_a_failure():
    model = new_model()
    brew.fc(model, "x", "fc", 3, 4)
    with pytest.raises(ValueError, match="no blob 'loss'"):
        model.AddGradientOperators(["loss"])
    model.AddGradientOperators(["fc"])
    assert len(model.param_to_grad) == 2


def test_operators_are_methods():
    model = new_model()
    with core.NameScope("s"):
        model.Relu("x", "y")
    assert lines(model.net) == ["s/y = Relu(s/x)"]
    with pytest.raises(AttributeError, match="Method Reluu is not a registered operator"):
        model.Reluu("x", "y")
    with pytest.raises(AttributeError, match="Attribute _foo not found"):
        _ = model._foo
    assert {"Relu", "create_param"} <= set(dir(model))


def test_only_known_operators_on_request():
    model = new_model(allow_not_known_ops=False)
    model.AveragedLoss("x", "loss")
    brew.relu(model, "x", "y")
    with pytest.raises(AttributeError, match="Operator Relu is not known to be safe"):
        model.Relu("x", "y")


def test_row_D7_the_chain_of_operators():
    model = new_model()
    data, label = model.net.AddExternalInput("data"), model.net.AddExternalInput("label")
    pred = model.FC(data, "pred", dim_in=784, dim_out=10)
    loss = model.LabelCrossEntropy([pred, label], ["loss"])
    average = model.Averaged(loss, "avg_loss")
    model.Conv(data, "conv", dim_in=1, dim_out=2, kernel=3)
    model.FC(["conv", "w", "b"], "plain")
    assert model.params == ["pred_w", "pred_b", "conv_w", "conv_b"]
    assert [line.partition("(")[0] for line in lines(model.net)] == [
        "pred = FC", "loss = LabelCrossEntropy", "avg_loss = AveragedLoss", "conv = Conv",
        "plain = FC",
    ]  # fmt: skip
    model.AddGradientOperators([average])
    assert set(model.param_to_grad) == {"pred_w", "pred_b"}


def test_both_nets_go_to_a_gpu():
    model = new_model()
    model.RunAllOnGPU(gpu_id=1)
    device = core.DeviceOption(caffe2_pb2.CUDA, 1)
    assert model.Proto().device_option == model.InitProto().device_option == device


def test_initializers():
    net = core.Net("init")
    info = Initializer("GaussianFill", std=0.1).create_param(core.BlobReference("w"), net, [2])
    assert isinstance(info, ParameterInfo) and info.parameter == "w"
    assert lines(net) == ["w = GaussianFill(shape=[2], std=0.1)"]
    ExternalInitializer().create_param(core.BlobReference("e"), net, [2])
    assert len(net.Proto().op) == 1
    with pytest.raises(ValueError, match="'w' names no operator"):
        Initializer().create_param(core.BlobReference("w"), net, [2])
    default = ("XavierFill", {})
    chosen = [
        update_initializer(None, None, default),
        update_initializer(None, ("A", {"s": 1}), default),
        update_initializer(Initializer, None, default),
        update_initializer(lambda: Initializer("Own"), ("A", {}), default),
    ]
    assert [(one.operator_name, one.operator_kwargs) for one in chosen] == [
        ("XavierFill", {}), ("A", {"s": 1}), ("XavierFill", {}), ("Own", {}),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="overwrites are not allowed"):
        chosen[0].update("B", {})


def test_row_B6_a_plain_net_is_a_model_too():
    net = core.Net("plain")
    conv = brew.conv(net, "data", "conv2", dim_in=20, dim_out=50, kernel=5)
    brew.relu(net, brew.fc(net, brew.flatten(net, conv, "flat"), "fc", 800, 10), "fc")
    brew.fc(net, "fc", "fc", 800, 10)
    assert net_text(net).splitlines()[1:4] == [
        "inputs: data, conv2_w, conv2_b, fc_w, fc_b",
        "outputs:",
        'conv2 = Conv(data, conv2_w, conv2_b, kernel=5, order="NCHW", exhaustive_search=0) '
        "engine=CUDNN",
    ]
    assert [line.partition("(")[0] for line in lines(net.param_init)] == [
        "conv2_w = XavierFill", "conv2_b = ConstantFill",
        "fc_w = XavierFill", "fc_b = ConstantFill",
    ]  # fmt: skip
