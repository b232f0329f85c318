"""Conditional random fields; see `caffe2.nn.crf`."""

from caffe2.nn.crf import CRFWithLoss

__all__ = ["CRFWithLoss"]
