"""The layer HomotopyWeight; see `caffe2.layers.weights`."""

from caffe2.layers.weights import HomotopyWeight

__all__ = ["HomotopyWeight"]
