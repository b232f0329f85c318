"""Activations; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.activations import prelu, relu, tanh

__all__ = ["prelu", "relu", "tanh"]
