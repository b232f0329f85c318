"""The layer Functional; see `caffe2.layers.structure`."""

from caffe2.layers.structure import Functional

__all__ = ["Functional"]
