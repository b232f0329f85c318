"""The layer SparseItemwiseDropoutWithReplacement; see `caffe2.layers.sparse`."""

from caffe2.layers.sparse import SparseItemwiseDropoutWithReplacement

__all__ = ["SparseItemwiseDropoutWithReplacement"]
