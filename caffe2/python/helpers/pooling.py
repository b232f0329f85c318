"""Pooling; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.pooling import average_pool, max_pool

__all__ = ["average_pool", "max_pool"]
