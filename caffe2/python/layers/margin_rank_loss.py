"""The layer MarginRankLoss; see `caffe2.layers.losses`."""

from caffe2.layers.losses import MarginRankLoss

__all__ = ["MarginRankLoss"]
