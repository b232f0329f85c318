"""Networks that convolution is measured with: AlexNet, OverFeat, VGG-A, GoogLeNet and a perceptron.

Each function adds a network with its loss to a new model, for `data` and `label` (int32, 1000
classes), and gives the model and the height and width of its pictures.  `order` is NCHW or NHWC;
`cudnn_ws` has no effect.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from caffe2.nn.brew import brew
from caffe2.nn.model_helper import ModelHelper

_CLASSES = 1000


class _Builder:
    """A model that is made layer by layer; `blob` has `channels` channels."""

    def __init__(self, name: str, order: str, channels: int = 3) -> None:
        self.model = ModelHelper(name=name, arg_scope={"order": order})
        self.order, self.blob, self.channels = order, "data", channels

    def conv(self, name: str, channels: int, kernel: int, stride: int = 1, pad: int = 0) -> None:
        self.blob = brew.conv(
            self.model,
            self.blob,
            name,
            self.channels,
            channels,
            kernel,
            weight_init=("XavierFill", {}),
            bias_init=("ConstantFill", {}),
            stride=stride,
            pad=pad,
        )
        self.blob = brew.relu(self.model, self.blob, self.blob)
        self.channels = channels

    def pool(self, name: str, kernel: int = 2, stride: int = 2, pad: int = 0) -> None:
        self.blob = brew.max_pool(
            self.model, self.blob, name, kernel=kernel, stride=stride, pad=pad
        )

    def fc(self, name: str, dim_in: int, dim_out: int, relu: bool = True) -> None:
        self.blob = brew.fc(self.model, self.blob, name, dim_in, dim_out)
        if relu:
            self.blob = brew.relu(self.model, self.blob, self.blob)

    def classify(self, *sizes: int) -> ModelHelper:
        """Fully connected layers of these sizes, the first that of what is there, and the loss."""
        for number, (dim_in, dim_out) in enumerate(itertools.pairwise(sizes), 1):
            self.fc(f"fc{number}", dim_in, dim_out)
        self.fc("logits", sizes[-1], _CLASSES, relu=False)
        probabilities = brew.softmax(self.model, self.blob, "pred")
        self.model.net.LabelCrossEntropy([probabilities, "label"], "xent")
        self.model.net.AveragedLoss("xent", "loss")
        return self.model


def MLP(order: str, cudnn_ws: Any) -> tuple[ModelHelper, int]:
    """A perceptron of eight layers, for `data` (batch, 256)."""
    net, width = _Builder("MLP", order), 256
    return net.classify(*[width] * 9), width


def AlexNet(order: str, cudnn_ws: Any) -> tuple[ModelHelper, int]:
    """AlexNet with one tower (Krizhevsky, 2014, arXiv 1404.5997)."""
    net = _Builder("alexnet", order)
    net.conv("conv1", 64, 11, stride=4, pad=2)
    net.pool("pool1", 3)
    net.conv("conv2", 192, 5, pad=2)
    net.pool("pool2", 3)
    for number, channels in ((3, 384), (4, 256), (5, 256)):
        net.conv(f"conv{number}", channels, 3, pad=1)
    net.pool("pool5", 3)
    return net.classify(256 * 6 * 6, 4096, 4096), 224


def OverFeat(order: str, cudnn_ws: Any) -> tuple[ModelHelper, int]:
    """The fast network of OverFeat (Sermanet et al., 2013, arXiv 1312.6229)."""
    net = _Builder("overfeat", order)
    net.conv("conv1", 96, 11, stride=4)
    net.pool("pool1")
    net.conv("conv2", 256, 5)
    net.pool("pool2")
    for number, channels in ((3, 512), (4, 1024), (5, 1024)):
        net.conv(f"conv{number}", channels, 3, pad=1)
    net.pool("pool5")
    return net.classify(1024 * 6 * 6, 3072, 4096), 231


def VGGA(order: str, cudnn_ws: Any) -> tuple[ModelHelper, int]:
    """VGG with eleven layers (Simonyan and Zisserman, 2014, arXiv 1409.1556)."""
    net, number = _Builder("vgg-a", order), 0
    for stage, widths in enumerate(((64,), (128,), (256, 256), (512, 512), (512, 512)), 1):
        for channels in widths:
            number += 1
            net.conv(f"conv{number}", channels, 3, pad=1)
        net.pool(f"pool{stage}")
    return net.classify(512 * 7 * 7, 4096, 4096), 224


# 1x1, 3x3 (reduced, then full), 5x5 (reduced, then full) and pooled channels of each module.
_MODULES: dict[str, Sequence[tuple[int, ...]]] = {
    "3": ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    "4": (
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
    ),
    "5": ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
}


def Inception(order: str, cudnn_ws: Any) -> tuple[ModelHelper, int]:
    """GoogLeNet with its last classifier (Szegedy et al., 2014, arXiv 1409.4842)."""
    net = _Builder("inception", order)
    net.conv("conv1", 64, 7, stride=2, pad=3)
    net.pool("pool1", 3, 2, 1)
    net.conv("conv2a", 64, 1)
    net.conv("conv2", 192, 3, pad=1)
    for stage, modules in _MODULES.items():
        net.pool(f"pool{stage}", 3, 2, 1)
        for letter, widths in zip("abcde", modules, strict=False):
            _inception_module(net, f"inc{stage}{letter}", widths)
    net.blob = brew.average_pool(net.model, net.blob, "pool6", kernel=7, stride=1)
    return net.classify(net.channels), 224


def _inception_module(net: _Builder, name: str, widths: Sequence[int]) -> None:
    source, channels = net.blob, net.channels
    one, three_reduced, three, five_reduced, five, pooled = widths
    branches = []
    for part, layers in (
        ("1x1", ((one, 1),)),
        ("3x3", ((three_reduced, 1), (three, 3))),
        ("5x5", ((five_reduced, 1), (five, 5))),
        ("pool", ((pooled, 1),)),
    ):
        net.blob, net.channels = source, channels
        if part == "pool":
            net.pool(f"{name}:pool", 3, 1, 1)
        for number, (width, kernel) in enumerate(layers):
            net.conv(f"{name}:{part}_{number}", width, kernel, pad=kernel // 2)
        branches.append(net.blob)
    net.blob = brew.concat(net.model, branches, name, axis=1 if net.order == "NCHW" else 3)
    net.channels = one + three + five + pooled


def AddParameterUpdate(model: ModelHelper) -> None:
    """Adds a step of gradient descent for all parameters of a model whose gradients are there."""
    counter = brew.iter(model, "iter")
    rate = model.net.LearningRate(
        counter, "LR", base_lr=-1e-8, policy="step", stepsize=10000, gamma=0.999
    )
    one = model.param_init_net.ConstantFill([], "ONE", shape=[1], value=1.0)
    for param in model.params:
        model.net.WeightedSum([param, one, model.param_to_grad[param], rate], param)
