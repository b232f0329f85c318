"""Histograms of blobs; see `caffe2.train.net_modifiers`."""

from caffe2.train.net_modifiers import ComputeHistogramForBlobs

__all__ = ["ComputeHistogramForBlobs"]
