"""The layer Concat; see `caffe2.layers.structure`."""

from caffe2.layers.structure import Concat, get_concatenated_feature_to_index

__all__ = ["Concat", "get_concatenated_feature_to_index"]
