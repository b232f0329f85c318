"""The layer ConstantWeight; see `caffe2.layers.weights`."""

from caffe2.layers.weights import ConstantWeight

__all__ = ["ConstantWeight"]
