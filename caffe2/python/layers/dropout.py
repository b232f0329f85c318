"""The layer Dropout; see `caffe2.layers.normalization`."""

from caffe2.layers.normalization import Dropout

__all__ = ["Dropout"]
