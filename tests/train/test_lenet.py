"""LeNet and its training: the nets of the original, and what they learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from caffe2.graph.printer import net_text
from caffe2.graph.verify import verify
from caffe2.ops.declaration import Spec
from caffe2.python import brew, model_helper, optimizer
from caffe2.python.predictor import mobile_exporter

RECORDED = Path(__file__).parent / "recorded"


def lenet(channels, hidden):
    model = model_helper.ModelHelper(name="lenet", arg_scope={"order": "NCHW"})
    first, second = channels
    conv1 = brew.conv(model, "data", "conv1", dim_in=1, dim_out=first, kernel=5)
    pool1 = brew.max_pool(model, conv1, "pool1", kernel=2, stride=2)
    conv2 = brew.conv(model, pool1, "conv2", dim_in=first, dim_out=second, kernel=5)
    pool2 = brew.max_pool(model, conv2, "pool2", kernel=2, stride=2)
    fc3 = brew.fc(model, pool2, "fc3", dim_in=second * 4 * 4, dim_out=hidden)
    pred = brew.fc(model, brew.relu(model, fc3, fc3), "pred", hidden, 10)
    return model, brew.softmax(model, pred, "softmax")


def training_lenet(channels=(20, 50), hidden=500, **sgd):
    optimizer.reset_optimizer_instance_count()
    model, softmax = lenet(channels, hidden)
    brew.accuracy(model, [softmax, "label"], "accuracy")
    loss = model.AveragedLoss(model.LabelCrossEntropy([softmax, "label"], "xent"), "loss")
    model.AddGradientOperators([loss])
    optimizer.add_weight_decay(model, 1e-4)
    optimizer.build_sgd(model, **sgd)
    return model


SGD = {
    "sgd": {"base_learning_rate": 0.1, "policy": "step", "stepsize": 1, "gamma": 0.999},
    "momentum": {"base_learning_rate": 0.1, "policy": "fixed", "momentum": 0.9},
}


@pytest.mark.parametrize("rule", SGD)
def test_row_D7_training_nets_are_those_of_the_original(rule):
    """Operator by operator what torch 1.10.2 makes; it fills constants again for every use."""
    model = training_lenet(**SGD[rule])
    recorded = (RECORDED / f"lenet_{rule}.txt").read_text().splitlines()
    assert net_text(model.net).splitlines()[1:] == recorded[1:]
    recorded = (RECORDED / f"lenet_{rule}_init.txt").read_text().splitlines()
    assert net_text(model.param_init_net).splitlines()[1:] == list(dict.fromkeys(recorded))[1:]


def test_training_nets_are_sound():
    model = training_lenet(**SGD["momentum"])
    assert verify(model.InitProto()) == []
    float32 = np.dtype(np.float32)
    specs = {
        str(param): Spec(tuple(model.get_param_info(param).shape), float32)
        for param in model.params
    }
    specs["data"] = Spec((64, 1, 28, 28), float32)
    specs["label"] = Spec((64,), np.dtype(np.int32))
    assert verify(model.Proto(), specs=specs, sites=model.net.op_sites) == []
    specs["data"] = Spec((64, 1, 32, 32), float32)
    [first, *_] = verify(model.Proto(), specs=specs, sites=model.net.op_sites)
    assert f"FC ({__file__}:" in first and "800 features" in first and "1250" in first


@pytest.fixture
def workspace():
    engine = pytest.importorskip(
        "caffe2.python.workspace", reason="the native engine is not built", exc_type=ImportError
    )
    engine.SwitchWorkspace("default")
    engine.ResetWorkspace()
    return engine


def batch(count=32):
    """Bright squares, whose place in the image is their class."""
    labels = (np.arange(count) % 10).astype(np.int32)
    images = np.random.default_rng(3).random((count, 1, 28, 28), np.float32) * 0.2
    for image, label in zip(images, labels, strict=True):
        row, column = divmod(int(label), 5)
        image[0, 4 + 12 * row : 10 + 12 * row, 1 + 5 * column : 6 + 5 * column] += 0.8
    return images, labels


def train(workspace, steps, **sgd):
    """The losses of a small LeNet."""
    model = training_lenet(channels=(4, 6), hidden=16, **sgd)
    model.param_init_net.Proto().device_option.random_seed = 5
    workspace.RunNetOnce(model.param_init_net)
    images, labels = batch()
    workspace.FeedBlob("data", images)
    workspace.FeedBlob("label", labels)
    workspace.CreateNet(model.net)
    losses = []
    for _ in range(steps):
        workspace.RunNets([model.net])
        losses.append(float(workspace.FetchBlob("loss")))
    return model, losses


@pytest.mark.parametrize(
    "sgd",
    [
        {"base_learning_rate": 0.3},
        {"base_learning_rate": 0.05, "momentum": 0.9},
        {"base_learning_rate": 0.05, "momentum": 0.9, "nesterov": 0},
    ],
)
def test_row_D7_lenet_learns(workspace, sgd):
    _, losses = train(workspace, 60, policy="step", stepsize=30, gamma=0.9, **sgd)
    assert losses[0] == pytest.approx(np.log(10), abs=0.5)
    assert losses[-1] < 0.1
    assert workspace.FetchBlob("accuracy") == 1
    assert workspace.FetchBlob("optimizer_iteration") == [60]


def test_row_E1_steps_follow_the_formulas(workspace):
    """Two steps of momentum by hand, with the gradients that the net computed.

    Weight decay comes first: g += 1e-4 w.  Then v = 0.9 v + lr g and w -= v.
    """
    rule = {"base_learning_rate": 0.1, "momentum": 0.9, "nesterov": 0}
    model = training_lenet(channels=(4, 6), hidden=16, policy="step", stepsize=1, gamma=0.5, **rule)
    images, labels = batch()
    for name, value in (("data", images), ("label", labels)):
        workspace.FeedBlob(name, value)
    workspace.RunNetOnce(model.param_init_net)
    weights = {str(w): workspace.FetchBlob(w).astype(np.float64) for w in model.params}
    velocities = dict.fromkeys(weights, 0.0)
    gradients = model.net.Clone("gradients", op_id_mask=range(_first_update(model)))
    for step in (1, 2):
        workspace.RunNetOnce(gradients)
        rate = 0.1 * 0.5**step
        for name, weight in weights.items():
            grad = workspace.FetchBlob(f"{name}_grad").astype(np.float64)
            if name.endswith("_w"):
                grad += 1e-4 * weight
            velocities[name] = 0.9 * velocities[name] + rate * grad
            np.subtract(weight, velocities[name], out=weight)
        workspace.RunNetOnce(model.net)
        for name, expected in weights.items():
            np.testing.assert_allclose(workspace.FetchBlob(name), expected, rtol=1e-5, atol=1e-7)


def _first_update(model):
    """The number of operators before the optimizer's."""
    return next(index for index, op in enumerate(model.Proto().op) if op.type == "WeightedSum")


def test_a_trained_net_is_served(workspace):
    model, _ = train(workspace, 60, base_learning_rate=0.3)
    net, params = model_helper.ExtractPredictorNet(model.Proto(), ["data"], ["softmax"])
    assert sorted(params) == sorted(map(str, model.params))
    init_net, predict_net = mobile_exporter.Export(workspace, net, params)
    images, labels = batch()
    workspace.FeedBlob("data", images)
    workspace.RunNetOnce(net)
    expected = workspace.FetchBlob("softmax")
    workspace.ResetWorkspace()
    predictor = workspace.Predictor(init_net.SerializeToString(), predict_net.SerializeToString())
    [found] = predictor.run({"data": images})
    np.testing.assert_array_equal(found, expected)
    assert (found.argmax(axis=1) == labels).all()
