"""The layer SparseDropoutWithReplacement; see `caffe2.layers.sparse`."""

from caffe2.layers.sparse import SparseDropoutWithReplacement

__all__ = ["SparseDropoutWithReplacement"]
