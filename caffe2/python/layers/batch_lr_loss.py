"""The layer BatchLRLoss; see `caffe2.layers.losses`."""

from caffe2.layers.losses import BatchLRLoss

__all__ = ["BatchLRLoss"]
