"""A scale and a shift for each column; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.activations import elementwise_linear

__all__ = ["elementwise_linear"]
