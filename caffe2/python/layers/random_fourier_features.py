"""The layer RandomFourierFeatures; see `caffe2.layers.random_features`."""

from caffe2.layers.random_features import RandomFourierFeatures

__all__ = ["RandomFourierFeatures"]
