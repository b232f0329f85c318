"""The layer Conv; see `caffe2.layers.dense`."""

from caffe2.layers.dense import Conv

__all__ = ["Conv"]
