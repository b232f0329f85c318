"""The layer PairwiseSimilarity; see `caffe2.layers.structure`."""

from caffe2.layers.structure import PairwiseSimilarity

__all__ = ["PairwiseSimilarity"]
