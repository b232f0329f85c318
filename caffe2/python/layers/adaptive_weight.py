"""The layer AdaptiveWeight; see `caffe2.layers.weights`."""

from caffe2.layers.weights import AdaptiveWeight

__all__ = ["AdaptiveWeight"]
