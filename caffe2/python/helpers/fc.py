"""Fully connected layers; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.dense import fc

__all__ = ["fc"]
