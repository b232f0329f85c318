"""The layer BatchHuberLoss; see `caffe2.layers.losses`."""

from caffe2.layers.losses import BatchHuberLoss

__all__ = ["BatchHuberLoss"]
