"""Branches and loops; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.control_ops import cond, loop

__all__ = ["cond", "loop"]
