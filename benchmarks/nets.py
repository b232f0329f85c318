"""Well-known nets with random weights, built with brew: for benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caffe2.proto import caffe2_pb2
from caffe2.python import brew, model_helper, workspace

Model = Any


def _conv_bn(model: Model, x: Any, name: str, c: int, k: int, kernel: int, **args: Any) -> Any:
    y = brew.conv(model, x, name, c, k, kernel, no_bias=True, pad=kernel // 2, **args)
    return brew.spatial_bn(model, y, f"{name}_bn", k, is_test=1)


def _bottleneck(model: Model, x: Any, name: str, c: int, k: int, stride: int) -> tuple[Any, int]:
    y = brew.relu(model, _conv_bn(model, x, f"{name}a", c, k, 1), f"{name}a_relu")
    y = brew.relu(model, _conv_bn(model, y, f"{name}b", k, k, 3, stride=stride), f"{name}b_relu")
    y = _conv_bn(model, y, f"{name}c", k, 4 * k, 1)
    if stride != 1 or c != 4 * k:
        x = _conv_bn(model, x, f"{name}d", c, 4 * k, 1, stride=stride)
    return brew.relu(model, brew.sum(model, [y, x], f"{name}_sum"), f"{name}_out"), 4 * k


def _basic(model: Model, x: Any, name: str, c: int, k: int, stride: int) -> tuple[Any, int]:
    y = brew.relu(model, _conv_bn(model, x, f"{name}a", c, k, 3, stride=stride), f"{name}a_relu")
    y = _conv_bn(model, y, f"{name}b", k, k, 3)
    if stride != 1 or c != k:
        x = _conv_bn(model, x, f"{name}d", c, k, 1, stride=stride)
    return brew.relu(model, brew.sum(model, [y, x], f"{name}_sum"), f"{name}_out"), k


def _resnet(model: Model, x: Any, depths: tuple[int, ...], block: Callable[..., Any]) -> Any:
    x = brew.relu(model, _conv_bn(model, x, "conv1", 3, 64, 7, stride=2), "conv1_relu")
    x, c = brew.max_pool(model, x, "pool1", kernel=3, stride=2, pad=1), 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            stride = 2 if stage > 0 and i == 0 else 1
            x, c = block(model, x, f"stage{stage}_{i}", c, 64 << stage, stride)
    x = brew.average_pool(model, x, "pool", global_pooling=True)
    return brew.fc(model, x, "fc", c, 1000)


def resnet18(model: Model) -> Any:
    """He and others, 2016, arXiv 1512.03385; (N, 3, 224, 224)."""
    return _resnet(model, "x", (2, 2, 2, 2), _basic)


def resnet50(model: Model) -> Any:
    """The same, with the stride in the 3x3 convolution."""
    return _resnet(model, "x", (3, 4, 6, 3), _bottleneck)


def mobilenet_v2(model: Model) -> Any:
    """Sandler and others, 2018, arXiv 1801.04381; (N, 3, 224, 224)."""

    def clipped(x: Any) -> Any:
        return model.net.Clip(x, f"{x}_clip", min=0.0, max=6.0)

    x, c = clipped(_conv_bn(model, "x", "first", 3, 32, 3, stride=2)), 32
    settings = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1)]
    for number, (factor, k, repeats, first) in enumerate(
        [*settings, (6, 160, 3, 2), (6, 320, 1, 1)]
    ):
        for i in range(repeats):
            name, stride, wide = f"block{number}_{i}", first if i == 0 else 1, c * factor
            y = x if factor == 1 else clipped(_conv_bn(model, x, f"{name}_expand", c, wide, 1))
            depthwise = _conv_bn(model, y, f"{name}_dw", wide, wide, 3, stride=stride, group=wide)
            y = _conv_bn(model, clipped(depthwise), f"{name}_project", wide, k, 1)
            x = brew.sum(model, [y, x], f"{name}_sum") if stride == 1 and c == k else y
            c = k
    x = clipped(_conv_bn(model, x, "last", c, 1280, 1))
    x = brew.average_pool(model, x, "pool", global_pooling=True)
    return brew.fc(model, x, "fc", 1280, 1000)


def squeezenet(model: Model) -> Any:
    """Version 1.1 of Iandola and others, 2016, arXiv 1602.07360; (N, 3, 224, 224)."""

    def fire(x: Any, name: str, c: int, squeeze: int, expand: int) -> Any:
        s = brew.relu(model, brew.conv(model, x, f"{name}_s", c, squeeze, 1), f"{name}_s_relu")
        one = brew.relu(model, brew.conv(model, s, f"{name}_1", squeeze, expand, 1), f"{name}_1r")
        three = brew.conv(model, s, f"{name}_3", squeeze, expand, 3, pad=1)
        three = brew.relu(model, three, f"{name}_3r")
        return brew.concat(model, [one, three], f"{name}_out")

    x = brew.relu(model, brew.conv(model, "x", "conv1", 3, 64, 3, stride=2), "conv1_relu")
    c = 64
    for number, (squeeze, expand) in enumerate(
        [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
    ):
        if number in (0, 2, 4):
            x = brew.max_pool(model, x, f"pool{number}", kernel=3, stride=2)
        x, c = fire(x, f"fire{number}", c, squeeze, expand), 2 * expand
    x = brew.relu(model, brew.conv(model, x, "last", c, 1000, 1), "last_relu")
    return brew.average_pool(model, x, "pool", global_pooling=True)


def lenet(model: Model) -> Any:
    """LeCun and others, 1998, as in Caffe's examples; (N, 1, 28, 28)."""
    x = brew.max_pool(model, brew.conv(model, "x", "conv1", 1, 20, 5), "pool1", kernel=2, stride=2)
    x = brew.max_pool(model, brew.conv(model, x, "conv2", 20, 50, 5), "pool2", kernel=2, stride=2)
    x = brew.relu(model, brew.fc(model, x, "fc3", 800, 500), "fc3_relu")
    return brew.fc(model, x, "pred", 500, 10)


def mlp(model: Model) -> Any:
    """784-256-10; (N, 784)."""
    x = brew.relu(model, brew.fc(model, "x", "fc1", 784, 256), "fc1_relu")
    return brew.fc(model, x, "fc2", 256, 10)


IMAGE = (3, 224, 224)
NETS: dict[str, tuple[Callable[[Model], Any], tuple[int, ...]]] = {
    "resnet18": (resnet18, IMAGE),
    "resnet50": (resnet50, IMAGE),
    "mobilenet_v2": (mobilenet_v2, IMAGE),
    "squeezenet": (squeezenet, IMAGE),
    "lenet": (lenet, (1, 28, 28)),
    "mlp": (mlp, (784,)),
}


def build(name: str) -> tuple[caffe2_pb2.NetDef, dict[str, Any]]:
    """The net that predicts, and its parameters as arrays."""
    workspace.ResetWorkspace()
    model = model_helper.ModelHelper(name=name)
    y = NETS[name][0](model)
    model.param_init_net.Proto().device_option.random_seed = 1
    workspace.RunNetOnce(model.param_init_net)
    net = caffe2_pb2.NetDef()
    net.CopyFrom(model.net.Proto())
    params = {str(p): workspace.FetchBlob(p) for p in model.GetAllParams()}
    del net.external_input[:], net.external_output[:]
    net.external_input.extend(["x", *params])
    net.external_output.append(str(y))
    return net, params
