"""Dropout; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.dropout import dropout

__all__ = ["dropout"]
