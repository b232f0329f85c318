"""The layer MapToRange; see `caffe2.layers.sparse`."""

from caffe2.layers.sparse import MapToRange

__all__ = ["MapToRange"]
