"""The layer FCWithoutBias; see `caffe2.layers.dense`."""

from caffe2.layers.dense import FCWithoutBias

__all__ = ["FCWithoutBias"]
