"""The layer GatherRecord; see `caffe2.layers.structure`."""

from caffe2.layers.structure import GatherRecord

__all__ = ["GatherRecord"]
