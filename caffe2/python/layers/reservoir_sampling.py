"""The layer ReservoirSampling; see `caffe2.layers.sampling`."""

from caffe2.layers.sampling import ReservoirSampling

__all__ = ["ReservoirSampling"]
