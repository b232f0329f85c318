"""Models of layers; see `caffe2.layers.model`."""

from caffe2.layers.model import LayerModelHelper

__all__ = ["LayerModelHelper"]
