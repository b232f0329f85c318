"""The layer ArcCosineFeatureMap; see `caffe2.layers.random_features`."""

from caffe2.layers.random_features import ArcCosineFeatureMap

__all__ = ["ArcCosineFeatureMap"]
