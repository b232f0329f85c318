"""Norms of blobs; see `caffe2.train.net_modifiers`."""

from caffe2.train.net_modifiers import ComputeNormForBlobs

__all__ = ["ComputeNormForBlobs"]
