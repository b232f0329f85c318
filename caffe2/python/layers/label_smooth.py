"""The layer LabelSmooth; see `caffe2.layers.weights`."""

from caffe2.layers.weights import LabelSmooth

__all__ = ["LabelSmooth"]
