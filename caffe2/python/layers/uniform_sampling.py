"""The layer UniformSampling; see `caffe2.layers.sampling`."""

from caffe2.layers.sampling import UniformSampling

__all__ = ["UniformSampling"]
