"""The layer BatchNormalization; see `caffe2.layers.normalization`."""

from caffe2.layers.normalization import BatchNormalization

__all__ = ["BatchNormalization"]
