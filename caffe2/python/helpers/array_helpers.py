"""Joining blobs; see `caffe2.nn.helpers`."""

from caffe2.nn.helpers.arrays import concat, depth_concat

__all__ = ["concat", "depth_concat"]
