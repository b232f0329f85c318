"""The layer FeatureSparseToDense; see `caffe2.layers.sparse`."""

from caffe2.layers.sparse import FeatureSparseToDense

__all__ = ["FeatureSparseToDense"]
