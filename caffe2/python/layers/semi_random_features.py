"""The layer SemiRandomFeatures; see `caffe2.layers.random_features`."""

from caffe2.layers.random_features import SemiRandomFeatures

__all__ = ["SemiRandomFeatures"]
