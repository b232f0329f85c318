"""The layer BlobWeightedSum; see `caffe2.layers.weights`."""

from caffe2.layers.weights import BlobWeightedSum

__all__ = ["BlobWeightedSum"]
