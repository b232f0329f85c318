"""Statistics of blobs; see `caffe2.train.net_modifiers`."""

from caffe2.train.net_modifiers import ComputeStatisticsForBlobs

__all__ = ["ComputeStatisticsForBlobs"]
