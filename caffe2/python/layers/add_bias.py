"""The layer AddBias; see `caffe2.layers.dense`."""

from caffe2.layers.dense import AddBias

__all__ = ["AddBias"]
