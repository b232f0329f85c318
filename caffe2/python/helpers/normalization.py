"""Normalization; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.activations import softmax
from caffe2.nn.helpers.normalization import (
    instance_norm,
    layer_norm,
    lrn,
    moments_with_running_stats,
    spatial_bn,
    spatial_gn,
)

__all__ = [
    "instance_norm",
    "layer_norm",
    "lrn",
    "moments_with_running_stats",
    "softmax",
    "spatial_bn",
    "spatial_gn",
]
