"""Residual nets; see `caffe2.nn.residual`."""

from caffe2.nn.residual import (
    RESNEXT_BLOCK_CONFIG,
    RESNEXT_STRIDES,
    ResNetBuilder,
    create_resnet50,
    create_resnet_32x32,
    create_resnext,
)

__all__ = [
    "RESNEXT_BLOCK_CONFIG",
    "RESNEXT_STRIDES",
    "ResNetBuilder",
    "create_resnet50",
    "create_resnet_32x32",
    "create_resnext",
]
