"""Iterations, accuracy and weight decay; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.training import accuracy, add_weight_decay, iter

__all__ = ["accuracy", "add_weight_decay", "iter"]
