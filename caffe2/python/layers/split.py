"""The layer Split; see `caffe2.layers.structure`."""

from caffe2.layers.structure import Split

__all__ = ["Split"]
