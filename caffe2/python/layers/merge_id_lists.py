"""The layer MergeIdLists; see `caffe2.layers.sparse`."""

from caffe2.layers.sparse import MergeIdLists

__all__ = ["MergeIdLists"]
