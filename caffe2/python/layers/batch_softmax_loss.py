"""The layer BatchSoftmaxLoss; see `caffe2.layers.losses`."""

from caffe2.layers.losses import BatchSoftmaxLoss

__all__ = ["BatchSoftmaxLoss"]
