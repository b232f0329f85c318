"""The layer SamplingTrainableMixin; see `caffe2.layers.dense`."""

from caffe2.layers.dense import SamplingTrainableMixin

__all__ = ["SamplingTrainableMixin"]
