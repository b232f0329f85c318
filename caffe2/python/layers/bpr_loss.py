"""The layer BPRLoss; see `caffe2.layers.losses`."""

from caffe2.layers.losses import BPRLoss

__all__ = ["BPRLoss"]
