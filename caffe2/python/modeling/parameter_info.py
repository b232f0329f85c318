"""Parameters; see `caffe2.nn.parameters`."""

from caffe2.nn.parameters import ParameterInfo, ParameterTags

__all__ = ["ParameterInfo", "ParameterTags"]
