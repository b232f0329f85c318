"""The layer PositionWeighted; see `caffe2.layers.sparse`."""

from caffe2.layers.sparse import PositionWeighted

__all__ = ["PositionWeighted"]
