"""The layer BatchMSELoss; see `caffe2.layers.losses`."""

from caffe2.layers.losses import BatchMSELoss

__all__ = ["BatchMSELoss"]
