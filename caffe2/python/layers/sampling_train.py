"""The layer SamplingTrain; see `caffe2.layers.sampling`."""

from caffe2.layers.sampling import SamplingTrain

__all__ = ["SamplingTrain"]
