"""The layer BatchSigmoidCrossEntropyLoss; see `caffe2.layers.losses`."""

from caffe2.layers.losses import BatchSigmoidCrossEntropyLoss

__all__ = ["BatchSigmoidCrossEntropyLoss"]
