"""The layer SparseFeatureHash; see `caffe2.layers.sparse`."""

from caffe2.layers.sparse import SparseFeatureHash

__all__ = ["SparseFeatureHash"]
