"""Networks that convolution is measured with: their shapes, in both orders."""

import pytest

from caffe2.python import convnet_benchmarks, workspace

# What comes before the fully connected layers, and the first of these.
MODELS = {
    "AlexNet": ("pool5", [2, 256, 6, 6], [4096, 9216]),
    "OverFeat": ("pool5", [2, 1024, 6, 6], [3072, 36864]),
    "VGGA": ("pool5", [2, 512, 7, 7], [4096, 25088]),
    "Inception": ("pool6", [2, 1024, 1, 1], [1000, 1024]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
def test_shapes(name, order):
    model, size = getattr(convnet_benchmarks, name)(order, None)
    blob, shape, weights = MODELS[name]
    channels_first = order == "NCHW"
    data = [2, 3, size, size] if channels_first else [2, size, size, 3]
    model.AddGradientOperators(["loss"])
    convnet_benchmarks.AddParameterUpdate(model)
    nets = [model.param_init_net, model.net]
    given, types = {"data": data, "label": [2]}, {"data": 1, "label": 2}
    shapes, _ = workspace.InferShapesAndTypes(nets, given, blob_types=types)
    n, c, h, w = shape
    assert shapes[blob] == ([n, c, h, w] if channels_first else [n, h, w, c])
    assert shapes["logits_w" if name == "Inception" else "fc1_w"] == weights
    assert shapes["pred"] == [2, 1000] and shapes["loss"] == []


def test_the_perceptron_learns_a_step():
    model, size = convnet_benchmarks.MLP("NCHW", None)
    model.AddGradientOperators(["loss"])
    convnet_benchmarks.AddParameterUpdate(model)
    model.param_init_net.GaussianFill([], "data", shape=[4, size])
    model.param_init_net.UniformIntFill([], "label", shape=[4], min=0, max=999)
    workspace.ResetWorkspace()
    workspace.RunNetOnce(model.param_init_net)
    before = workspace.FetchBlob("fc1_w")
    workspace.RunNetOnce(model.net)
    assert abs(workspace.FetchBlob("loss") - 6.9) < 1  # log 1000
    assert not (workspace.FetchBlob("fc1_w") == before).all()
