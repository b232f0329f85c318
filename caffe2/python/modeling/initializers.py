"""How parameters begin; see `caffe2.nn.parameters`."""

from caffe2.nn.parameters import ExternalInitializer, Initializer, update_initializer

__all__ = ["ExternalInitializer", "Initializer", "update_initializer"]
