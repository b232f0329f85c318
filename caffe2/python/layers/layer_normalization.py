"""The layer LayerNormalization; see `caffe2.layers.normalization`."""

from caffe2.layers.normalization import LayerNormalization

__all__ = ["LayerNormalization"]
